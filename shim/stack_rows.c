#include "stack_rows.h"

#include "gather.h"
#include "stack_table.h"

#include <stdlib.h>
#include <string.h>

/* A relative name counts from where the program stood when it loaded it, which
 * it mostly still does; the build id tells whether it is that file. */
static const char *path_of(struct gather *gather, uint32_t module)
{
    const char *path = module_path(module);
    char *whole;
    if (!*path)
        return gather->exe;
    if (*path == '/' || !strchr(path, '/') || !(whole = realpath(path, NULL)))
        return path;
    return whole; /* one per module: it stays */
}

static void add_module(struct gather *gather, uint32_t module)
{
    uint64_t bit = UINT64_C(1) << module % 64;
    if (!module || gather->modules[module / 64] & bit)
        return;
    struct row *row = batch_add(&gather->batch, ROW_module);
    if (!row)
        return;
    row->u.module = (struct row_module){
        .id = module,
        .path = path_of(gather, module),
        .build_id = module_build_id(module),
    };
    gather->modules[module / 64] |= bit;
}

static void add_frames(struct gather *gather, uint32_t number,
                       const struct stack *stack)
{
    for (uint32_t i = 0; i < stack->depth; i++) {
        const struct frame *frame = &stack->frames[i];
        add_module(gather, frame->module);
        struct row *row = batch_add(&gather->batch, ROW_frame);
        if (!row)
            return;
        row->u.frame = (struct row_frame){
            .stack = number,
            .depth = i,
            .module = frame->module ? frame->module : CT_NULL,
            .offset = (int64_t)frame->offset,
        };
    }
}

void stack_rows_add(struct gather *gather)
{
    uint32_t n = stack_table_count();
    while (gather->stacks < n) {
        uint32_t number = ++gather->stacks;
        const struct stack *stack = stack_table_at(number);
        struct row *row = batch_add(&gather->batch, ROW_stack);
        if (!row)
            return;
        row->u.stack = (struct row_stack){
            .id = number, .depth = stack->depth, .cut = stack->cut};
        add_frames(gather, number, stack);
    }
}
