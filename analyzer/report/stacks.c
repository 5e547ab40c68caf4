#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/callers.h"
#include "report/commands.h"
#include "report/units.h"
#include "report/view.h"
#include "symbols/symbols.h"
#include "trace/arena.h"

/* Text shows the frames next to NCCL; JSON all. */
#define TEXT_FRAMES 24
#define TEXT_FUNCTION 120

struct caller_line {
    int64_t calls;
    uint64_t bytes;
    double transfer_ms, wait_ms;
    char ops[160], ranks[64];
    bool cut;
};

static const struct out_column caller_columns[] = {
    OUT_COL(struct caller_line, ops, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct caller_line, calls, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct caller_line, ranks, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct caller_line, bytes, "", OUT_SIZE, 0, OUT_DATA),
    OUT_COL(struct caller_line, transfer_ms, "", OUT_REAL, 6, OUT_DATA),
    OUT_COL(struct caller_line, wait_ms, "", OUT_REAL, 6, OUT_DATA),
    OUT_COL(struct caller_line, cut, "", OUT_BOOL, 0, OUT_DATA),
};

static const struct out_table caller_table =
    OUT_TABLE(struct caller_line, caller_columns);

struct frame_line {
    const char *function, *file;
    int line;
    bool inlined;
    const char *module, *build_id;
    uint64_t offset;
    const char *unknown; /* why the module names nothing */
};

static const struct out_column frame_columns[] = {
    OUT_COL(struct frame_line, function, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct frame_line, file, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct frame_line, line, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct frame_line, inlined, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct frame_line, module, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct frame_line, build_id, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct frame_line, offset, "", OUT_ID, 0, OUT_DATA),
    OUT_COL(struct frame_line, unknown, "", OUT_TEXT, 0, OUT_DATA),
};

static const struct out_table frame_table =
    OUT_TABLE(struct frame_line, frame_columns);

static void list_ops(char *text, size_t size, const bool *kinds)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < CT_OP_COUNT; i++)
        if (kinds[i] && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     used ? ", " : "", ct_op_infos[i].name);
}

static void fill_line(struct caller_line *line, const struct caller *caller,
                      const struct ct_stack_row *stack)
{
    memset(line, 0, sizeof *line);
    line->calls = caller->calls;
    line->bytes = caller->bytes;
    line->transfer_ms = line->wait_ms = NAN;
    if (caller->timed) {
        line->transfer_ms = (double)caller->transfer_ns / 1e6;
        line->wait_ms = (double)caller->wait_ns / 1e6;
    }
    line->cut = stack->cut;
    list_ops(line->ops, sizeof line->ops, caller->kinds);
    units_ranks(line->ranks, sizeof line->ranks, caller->ranks, caller->nranks);
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void say_frame(struct out *out, const struct frame_line *line)
{
    char function[TEXT_FUNCTION + 4] = "?", place[200];

    if (line->function)
        snprintf(function, sizeof function, "%.*s%s", TEXT_FUNCTION,
                 line->function,
                 strlen(line->function) > TEXT_FUNCTION ? "..." : "");
    if (line->file)
        snprintf(place, sizeof place, "%.160s:%d", line->file, line->line);
    else if (line->module)
        snprintf(place, sizeof place, "%.80s+0x%" PRIx64 "%s%s",
                 base_of(line->module), line->offset, line->unknown ? ", " : "",
                 line->unknown ? line->unknown : "");
    else
        snprintf(place, sizeof place, "0x%" PRIx64 ", in no file",
                 line->offset);
    out_say(out, 4, "%s  %s%s", function, place,
            line->inlined ? " (inlined)" : "");
}

/* A stack's frames with the functions that were inlined into them. */
struct frames {
    struct frame_line *of;
    int n, capacity;
};

static void add_frame(struct frames *frames, struct ct_symbols *symbols,
                      const struct ct_process *p,
                      const struct ct_frame_row *frame)
{
    const struct ct_module_row *module =
        frame->module == CT_NONE ? NULL : &p->modules[frame->module];
    struct frame_line line = {.offset = frame->offset};
    struct ct_place places[16] = {0};
    int n = 1;

    if (module) {
        line.module = module->path;
        line.build_id = module->build_id;
        n = ct_symbols_at(symbols, module->path, module->build_id,
                          frame->offset, places, 16, &line.unknown);
    }
    for (int i = 0; i < n; i++) {
        line.function = places[i].function;
        line.file = places[i].file;
        line.line = places[i].file ? places[i].line : CT_NONE;
        line.inlined = places[i].inlined;
        frames->of = ct_grow(frames->of, &frames->capacity, frames->n,
                             sizeof *frames->of);
        frames->of[frames->n++] = line;
    }
}

static void say_caller(struct out *out, int number,
                       const struct caller_line *line,
                       const struct frames *frames)
{
    char size[UNITS_SIZE], transfer[UNITS_SIZE], wait[UNITS_SIZE];

    out_say(out, 0,
            "%d. %s: %" PRId64 " calls of ranks %s, %s, transfer %s ms, wait "
            "%s ms",
            number, line->ops, line->calls, line->ranks,
            units_size(size, line->bytes),
            units_real(transfer, line->transfer_ms, 4),
            units_real(wait, line->wait_ms, 4));
    for (int i = 0; i < frames->n && i < TEXT_FRAMES; i++)
        say_frame(out, &frames->of[i]);
    if (frames->n > TEXT_FRAMES || line->cut)
        out_say(out, 4, "...");
    out_say(out, 0, "%s", "");
}

static void put_caller(struct out *out, struct ct_symbols *symbols,
                       const struct ct_trace *trace,
                       const struct caller *caller, int number)
{
    const struct ct_process *p = &trace->processes[caller->process];
    const struct ct_stack_row *stack = &p->stacks[caller->stack];
    struct frames frames = {0};
    struct caller_line line;

    fill_line(&line, caller, stack);
    for (int i = 0; i < stack->depth; i++)
        add_frame(&frames, symbols, p, &p->frames[stack->first_frame + i]);
    say_caller(out, number, &line, &frames);
    out_object(out, NULL);
    out_fields(out, &caller_table, &line);
    out_rows(out, "frames", &frame_table, frames.of, (size_t)frames.n);
    out_object_end(out);
    free(frames.of);
}

struct unknown_line {
    int64_t calls_without_stack;
};

static const struct out_column unknown_columns[] = {
    OUT_COL(struct unknown_line, calls_without_stack, "", OUT_COUNT, 0,
            OUT_DATA),
};

static const struct out_table unknown_table =
    OUT_TABLE(struct unknown_line, unknown_columns);

static int put_job(struct out *out, const struct view_input *input,
                   const struct cli *cli, int number)
{
    const struct ct_job *job = &input->trace->jobs[number];
    struct ct_symbols *symbols =
        ct_symbols_new(input->trace->arena, cli->debug_dir);
    struct callers callers;

    if (!symbols)
        return -1;
    callers_find(&callers, input->trace, job, cli->rank);
    out_list(out, "stacks");
    for (int i = 0; i < callers.n && i != cli->limit; i++)
        put_caller(out, symbols, input->trace, &callers.of[i], i + 1);
    out_list_end(out);
    if (callers.unknown)
        out_say(out, 0,
                "%" PRId64 " calls came from elsewhere: their stacks "
                "were not taken (see COMMTRACE_STACKS)",
                callers.unknown);
    out_fields(out, &unknown_table, &(struct unknown_line){callers.unknown});
    callers_release(&callers);
    ct_symbols_free(symbols);
    return 0;
}

int stacks_run(const struct cli *cli)
{
    return view_print(cli, put_job);
}
