/* The tables of call sites: module, stack, frame. Files of version 1 have
 * none. */
#include "trace/load.h"

#define MAX_FRAMES (1 << 24) /* of a process */

static void load_modules(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "module",
                 "SELECT id, path, build_id FROM module ORDER BY id");
    while (ct_rows_next(&rows)) {
        const char *path = ct_rows_text(&rows, 1);

        p->modules =
            ct_grow(p->modules, &capacity, p->nmodules, sizeof(*p->modules));
        ct_ids_add(&loader->module_ids,
                   ct_rows_int(&rows, 0, "id", 0, INT32_MAX));
        p->modules[p->nmodules].path = path ? path : "";
        p->modules[p->nmodules++].build_id = ct_rows_text(&rows, 2);
    }
}

static void load_list(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "stack",
                 "SELECT id, cut FROM stack ORDER BY id");
    while (ct_rows_next(&rows)) {
        int64_t id = ct_rows_int(&rows, 0, "id", 0, INT32_MAX);

        p->stacks =
            ct_grow(p->stacks, &capacity, p->nstacks, sizeof(*p->stacks));
        ct_ids_add(&loader->stack_ids, id);
        p->stacks[p->nstacks++] = (struct ct_stack_row){
            .id = (int)id,
            .cut = ct_rows_opt(&rows, 1, "cut", 0, 1, 0) != 0,
        };
    }
}

static int module_of(struct ct_rows *rows, int column)
{
    int module;
    int64_t id;

    if (ct_rows_null(rows, column))
        return CT_NONE;
    id = ct_rows_int(rows, column, "module", 0, INT32_MAX);
    module = ct_ids_find(&rows->loader->module_ids, id);
    if (module == CT_NONE)
        ct_rows_fail(rows, "module %lld does not exist", (long long)id);
    return module;
}

/* In the order of stacks and their frames, so that each has its own together;
 * what is out of order belongs to no honest file. */
static void add_frame(struct ct_rows *rows, int64_t id, int64_t depth,
                      const struct ct_frame_row *frame)
{
    struct ct_process *p = rows->loader->process;
    int stack = ct_ids_find(&rows->loader->stack_ids, id);

    if (stack == CT_NONE) {
        ct_rows_fail(rows, "stack %lld does not exist", (long long)id);
    } else if (p->stacks[stack].depth != depth || p->nframes >= MAX_FRAMES) {
        ct_rows_fail(rows, "frame %lld of stack %lld is out of order",
                     (long long)depth, (long long)id);
    } else {
        if (depth == 0)
            p->stacks[stack].first_frame = p->nframes;
        p->stacks[stack].depth++;
        p->frames[p->nframes++] = *frame;
    }
}

static void load_frames(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "frame",
                 "SELECT stack, depth, module, offset FROM frame"
                 " ORDER BY stack, depth");
    while (ct_rows_next(&rows)) {
        struct ct_frame_row frame;
        int64_t stack = ct_rows_int(&rows, 0, "stack", 0, INT32_MAX);
        int64_t depth = ct_rows_int(&rows, 1, "depth", 0, INT32_MAX);

        frame.module = module_of(&rows, 2);
        frame.offset =
            (uint64_t)ct_rows_opt(&rows, 3, "offset", INT64_MIN, INT64_MAX, 0);
        p->frames =
            ct_grow(p->frames, &capacity, p->nframes, sizeof(*p->frames));
        if (!loader->failed)
            add_frame(&rows, stack, depth, &frame);
    }
}

void ct_load_stacks(struct ct_loader *loader)
{
    if (loader->version < 2)
        return;
    load_modules(loader);
    load_list(loader);
    load_frames(loader);
}
