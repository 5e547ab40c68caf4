#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/commands.h"
#include "report/units.h"
#include "report/view.h"
#include "trace/links.h"

struct group_line {
    int comm;
    uint64_t uid;
    const char *name, *origin;
    int nranks, traced, nodes, domains;
    const char *link, *evidence, *detail;
    char link_text[40];
    bool crosses_hosts, crosses_domains;
    int64_t speed;
    int hops, nics;
    bool network;
    char roles[80];
    int64_t calls;
    char ranks[64], missing[64], hosts[200];
    int parent;
};

static const struct out_column columns[] = {
    OUT_COL(struct group_line, comm, "comm", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct group_line, uid, "uid", OUT_ID, 0, OUT_BOTH),
    OUT_COL(struct group_line, name, "name", OUT_TEXT, 0, OUT_OPTIONAL),
    OUT_COL(struct group_line, origin, "origin", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct group_line, parent, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct group_line, nranks, "size", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct group_line, traced, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct group_line, ranks, "ranks", OUT_BUFFER, 0, OUT_BOTH),
    OUT_COL(struct group_line, missing, "missing", OUT_BUFFER, 0, OUT_OPTIONAL),
    OUT_COL(struct group_line, nodes, "nodes", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct group_line, domains, "domains", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct group_line, hosts, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct group_line, crosses_hosts, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct group_line, crosses_domains, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct group_line, link_text, "link", OUT_BUFFER, 0, OUT_TEXT_ONLY),
    OUT_COL(struct group_line, link, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct group_line, speed, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct group_line, network, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct group_line, evidence, "evidence", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct group_line, detail, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct group_line, hops, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct group_line, nics, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct group_line, calls, "calls", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct group_line, roles, "roles", OUT_BUFFER, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct group_line, columns);

/* Adds word to a list of words, unless it is there. */
static void add_word(char *list, size_t size, const char *word,
                     const char *separator)
{
    size_t used = strlen(list);

    if (strstr(list, word) || used + strlen(word) + strlen(separator) >= size)
        return;
    snprintf(list + used, size - used, "%s%s", used ? separator : "", word);
}

static void fill_hosts(struct group_line *line, const struct view *view,
                       const struct ct_comm *comm)
{
    unsigned char *seen = calloc((size_t)view->job->nnodes + 1, 1);

    for (int i = 0; seen && i < comm->nranks; i++) {
        int process = comm->members[i].process;
        int node =
            process == CT_NONE ? CT_NONE : view->trace->processes[process].node;

        if (node < 0 || node >= view->job->nnodes || seen[node])
            continue;
        seen[node] = 1;
        if (view->job->node_names[node])
            add_word(line->hosts, sizeof line->hosts,
                     view->job->node_names[node], ",");
    }
    free(seen);
}

static void fill_line(struct group_line *line, const struct view *view,
                      int number)
{
    const struct ct_comm *comm = &view->job->comms[number];
    int *ranks = calloc((size_t)comm->nranks + 1, sizeof *ranks);

    memset(line, 0, sizeof *line);
    line->comm = number;
    line->uid = comm->uid;
    line->name = comm->name;
    line->origin = comm->origin;
    line->parent = comm->parent;
    line->nranks = comm->nranks;
    line->traced = comm->nknown;
    line->nodes = comm->nnodes;
    line->domains = comm->ndomains;
    line->link = ct_link_names[comm->link];
    line->network = ct_link_is_network(comm->link);
    line->crosses_hosts = comm->nnodes > 1;
    line->crosses_domains = comm->ndomains > 1;
    line->evidence = comm->evidence;
    line->detail = comm->detail;
    line->speed = comm->speed;
    line->hops = comm->hops;
    line->nics = comm->nics;
    ct_link_text(comm->link, comm->speed, line->link_text,
                 sizeof line->link_text);
    if (ranks)
        units_ranks(line->ranks, sizeof line->ranks, ranks,
                    view_comm_ranks(view->trace, comm, ranks));
    free(ranks);
    view_missing_members(view, number, line->missing, sizeof line->missing);
    fill_hosts(line, view, comm);
}

/* Roles and calls of every communicator, from its usages. */
static void add_usages(struct group_line *lines, const struct view *view)
{
    for (int i = 0; i < view->job->nusages; i++) {
        struct group_line *line = &lines[view->job->usages[i].comm];
        char name[48];

        line->calls += view->job->usages[i].calls;
        if (view_role(view, i))
            add_word(line->roles, sizeof line->roles,
                     view_role_name(name, sizeof name, view_role(view, i)),
                     " ");
    }
}

static void say_crossings(struct out *out, const struct ct_job *job)
{
    int hosts = 0, domains = 0;

    for (int i = 0; i < job->ncomms; i++) {
        hosts += job->comms[i].nnodes > 1;
        domains += job->comms[i].ndomains > 1;
    }
    if (hosts || domains)
        out_say(out, 2,
                "%d of %d communicators cross%s hosts, %d cross%s NVLink "
                "domains",
                hosts, job->ncomms, hosts == 1 ? "es" : "", domains,
                domains == 1 ? "es" : "");
    else
        out_say(out, 2, "No communicator crosses hosts");
}

static int put_job(struct out *out, const struct view_input *input,
                   const struct cli *cli, int number)
{
    const struct ct_job *job = &input->trace->jobs[number];
    struct group_line *lines = calloc((size_t)job->ncomms + 1, sizeof *lines);
    struct view view = {.trace = input->trace, .number = number, .job = job};

    (void)cli;
    view.roles = ct_roles_build(input->trace, job);
    if (!lines || !view.roles) {
        free(lines);
        ct_roles_free(view.roles);
        return -1;
    }
    for (int i = 0; i < job->ncomms; i++)
        fill_line(&lines[i], &view, i);
    add_usages(lines, &view);
    out_rows(out, "groups", &table, lines, (size_t)job->ncomms);
    say_crossings(out, job);
    free(lines);
    ct_roles_free(view.roles);
    return 0;
}

int groups_run(const struct cli *cli)
{
    return view_print(cli, put_job);
}
