/*
 * `commtrace digest`: a digest of each trace, for those who report on all of
 * them where they do not lie together. Any number of processes may share the
 * work; each file is one process's alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/commands.h"
#include "report/units.h"
#include "trace/arena.h"
#include "trace/db.h"
#include "trace/digest.h"
#include "trace/files.h"
#include "trace/intern.h"
#include "trace/parallel.h"
#include "trace/progress.h"

#define MOST_PATH 4096

struct piece { /* of the work: one file */
    const char *path;
    bool named;
    char target[MOST_PATH];
    const char *reason; /* nothing is to be done; NULL: it is */
    enum ct_digest_result result;
    struct ct_digested done;
};

struct work {
    int n;
    struct piece *pieces;
};

struct digested {
    int digests, refused;
    int before; /* digests among the files */
    int64_t ops;
    uint64_t trace_bytes, digest_bytes;
    const char *dir;
};

static const struct out_column columns[] = {
    OUT_COL(struct digested, digests, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct digested, refused, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct digested, ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct digested, trace_bytes, "", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct digested, digest_bytes, "", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct digested, dir, "", OUT_TEXT, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct digested, columns);

/* Two traces of one name would be one digest. */
static void name_target(struct piece *piece, const char *dir,
                        struct ct_intern *targets)
{
    const char *slash = strrchr(piece->path, '/');
    const int n = targets->n;
    size_t length;

    length = (size_t)snprintf(piece->target, sizeof piece->target,
                              "%s/%s" CT_DIGEST_SUFFIX, dir,
                              slash ? slash + 1 : piece->path);
    if (length >= sizeof piece->target)
        piece->reason = "name too long";
    else if (ct_intern_add(targets, piece->target, length) != n)
        piece->reason = "a trace before it has the same name, as its digest "
                        "would";
}

static void divide(struct work *work, const struct ct_files *files,
                   const struct cli *cli)
{
    const char *dir = cli->dir ? cli->dir : ".";
    struct ct_intern targets = {0};

    work->pieces = ct_alloc((size_t)files->n + 1, sizeof *work->pieces);
    for (int i = cli->share; i < files->n; i += cli->shares) {
        struct piece *piece = &work->pieces[work->n++];

        piece->path = files->files[i].path;
        piece->named = files->files[i].named;
        name_target(piece, dir, &targets);
    }
    ct_intern_release(&targets);
}

static void digest_one(void *context, int i)
{
    struct piece *piece = &((struct work *)context)->pieces[i];

    if (!piece->reason)
        piece->result =
            ct_digest_write(piece->path, piece->target, &piece->done);
    ct_progress_item();
}

/* What the report would not read, it says; here it is said, too. It is no
 * failure, for which some launchers would end all other processes. */
static int count(struct digested *sum, const struct piece *piece,
                 const struct cli *cli)
{
    if (piece->reason)
        return cli_fail(cli, "%s: %s", piece->path, piece->reason);
    sum->before += piece->done.is_digest;
    if (piece->result == CT_NO_DIGEST && !piece->named)
        return 0;
    if (piece->result == CT_NO_DIGEST || piece->result == CT_DIGEST_FAILED)
        return cli_fail(cli, "%s", piece->done.error);
    sum->digest_bytes += piece->done.digest_bytes;
    if (piece->result == CT_DIGESTED_REFUSAL) {
        sum->refused++;
        fprintf(stderr, "%s: %s\n", cli->command, piece->done.error);
        return 0;
    }
    sum->digests++;
    sum->ops += piece->done.ops;
    sum->trace_bytes += piece->done.trace_bytes;
    return 0;
}

static int say(const struct cli *cli, const struct digested *sum)
{
    char from[UNITS_SIZE], to[UNITS_SIZE];
    struct out *out = cli_out(cli);

    if (!out)
        return CLI_EXIT_INPUT;
    out_fields(out, &table, sum);
    out_say(out, 0, "%d digest%s of %lld operations in %s: %s, of %s",
            sum->digests, ct_plural(sum->digests), (long long)sum->ops,
            sum->dir, units_size(to, sum->digest_bytes),
            units_size(from, sum->trace_bytes));
    return cli_done(cli, out);
}

static int digest_files(const struct cli *cli, const struct ct_files *files)
{
    struct digested sum = {.dir = cli->dir ? cli->dir : "."};
    struct work work = {0};
    int status = 0;

    divide(&work, files, cli);
    ct_progress_begin(cli->command);
    ct_progress_stage("digesting traces", work.n);
    ct_parallel_for(work.n, digest_one, &work);
    ct_progress_end();
    for (int i = 0; i < work.n; i++)
        if (count(&sum, &work.pieces[i], cli))
            status = CLI_EXIT_INPUT;
    free(work.pieces);
    if (sum.before && !sum.digests && !status)
        fprintf(stderr, "%s: %d file%s: digests already, read as they are\n",
                cli->command, sum.before, ct_plural(sum.before));
    return say(cli, &sum) ? CLI_EXIT_INPUT : status;
}

/* 0, or the error number. */
static int make_folder(const char *path)
{
    struct stat st;

    if (!mkdir(path, 0777))
        return 0;
    if (errno == EEXIST && !stat(path, &st))
        return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    return errno;
}

int digest_run(const struct cli *cli)
{
    struct ct_files files = {0};
    char error[MOST_PATH + 256];
    int status = cli->dir ? make_folder(cli->dir) : 0;

    ct_db_setup();
    if (status)
        return cli_fail(cli, "%s: %s", cli->dir, strerror(status));
    for (int i = 0; i < cli->npaths && !status; i++)
        if (ct_files_add(&files, cli->paths[i], error, sizeof error))
            status = cli_fail(cli, "%s", error);
    if (!status)
        status = digest_files(cli, &files);
    ct_files_release(&files);
    return status;
}
