/* Call sites as they are read: stacks, frames and modules of a file, calls that
 * a ring adds, and what no recorder would write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commtrace/ring.h"
#include "trace_files.h"

enum { NSLOTS = 16 };

/* Two stacks; the first op was called from the second of them. */
static sqlite3 *stacks(const char *folder)
{
    sqlite3 *db = files_begin_reducing(folder, 0, 2, 0);

    files_op(db, 1, 1, 0, 3000, 100);
    files_sql(db, "INSERT INTO module VALUES (4, '/opt/a', '00ff'),"
                  " (7, '/opt/b', NULL)");
    files_sql(db, "INSERT INTO stack VALUES (1, 1, 0), (3, 3, 1)");
    files_sql(db, "INSERT INTO frame VALUES (1, 0, 7, 16), (3, 0, 4, 32),"
                  " (3, 1, NULL, -1), (3, 2, 7, 48)");
    files_sql(db, "UPDATE op_class SET stack = 3");
    return db;
}

static void test_rows(void **state)
{
    const char *folder = files_folder();
    const struct ct_process *p;
    const struct ct_stack_row *stack;
    const struct ct_frame_row *frames;
    struct ct_trace *trace;

    (void)state;
    files_end(stacks(folder));
    trace = files_open(folder);
    p = &trace->processes[0];
    assert_int_equal(p->nstacks, 2);
    stack = &p->stacks[p->classes[p->ops[0].cls].stack];
    frames = &p->frames[stack->first_frame];
    assert_int_equal(stack->id, 3);
    assert_int_equal(stack->depth, 3);
    assert_true(stack->cut);
    assert_string_equal(p->modules[frames[0].module].path, "/opt/a");
    assert_string_equal(p->modules[frames[0].module].build_id, "00ff");
    assert_int_equal(frames[0].offset, 32);
    assert_int_equal(frames[1].module, CT_NONE);
    assert_true(frames[1].offset == UINT64_MAX);
    assert_null(p->modules[frames[2].module].build_id);
    files_close(trace, folder);
}

static void expect(const char *sql, const char *text)
{
    const char *folder = files_folder();
    char error[512] = "";
    sqlite3 *db = stacks(folder);
    struct ct_trace *trace;

    files_sql(db, "%s", sql);
    files_end(db);
    trace = files_try(files_path(folder, 0), error, sizeof(error));
    if (!strstr(error, text))
        fail_msg("%s: \"%s\" instead of \"%s\"", sql, error, text);
    assert_true(!trace == (*text != 0));
    files_close(trace, folder);
}

static void test_damage(void **state)
{
    (void)state;
    expect("UPDATE frame SET stack = 2 WHERE stack = 1", "does not exist");
    expect("UPDATE frame SET module = 5 WHERE depth = 2", "does not exist");
    expect("UPDATE frame SET depth = 3 WHERE depth = 2", "out of order");
    expect("UPDATE frame SET depth = 0", "out of order");
    expect("UPDATE frame SET depth = -1 WHERE stack = 1", "depth");
    expect("UPDATE frame SET depth = 4294967296 WHERE stack = 1", "depth");
    expect("UPDATE stack SET cut = 9 WHERE id = 1", "cut");
    expect("UPDATE stack SET id = 1 << 40 WHERE id = 1", "id");
    /* What is merely lost costs no more than itself. */
    expect("UPDATE op_class SET stack = 2", "");
    expect("DELETE FROM frame WHERE stack = 3", "");
    expect("UPDATE module SET path = NULL", "");
}

static void ring_write(const char *path, unsigned version)
{
    static const uint32_t taken[] = {3, 9, CT_STACK_NO_MORE, 0};
    size_t bytes = CT_RING_HEADER_BYTES + NSLOTS * sizeof(struct ct_slot);
    char *ring = calloc(1, bytes);
    struct ct_ring_header *header = (void *)ring;
    struct ct_slot *slots = (void *)(ring + CT_RING_HEADER_BYTES);
    FILE *f;

    memcpy(header->magic, CT_RING_MAGIC, 8);
    header->version = version;
    header->nslots = NSLOTS;
    header->pid = 1;
    snprintf(header->uuid, sizeof(header->uuid), "uuid0");
    snprintf(header->boot_id, sizeof(header->boot_id), "none");
    header->head = 5;
    header->tail = 1;
    for (unsigned i = 0; i < 4; i++) {
        struct ct_slot *slot = &slots[1 + i];

        slot->state = (uint64_t)(1 + i) << 2 | CT_SLOT_LEFT;
        slot->kind = CT_SLOT_OP;
        slot->op = CT_OP_ALL_REDUCE;
        slot->comm = 1;
        slot->enter_ns = 10000 + i;
        slot->leave_ns = 10100 + i;
        slot->u.call.ordinal = 1 + i;
        slot->u.call.count = 1000;
        slot->u.call.type = CT_TYPE_FLOAT32;
        slot->u.call.redop = slot->u.call.peer = -1;
        slot->u.call.stack = taken[i];
    }
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(ring, 1, bytes, f), bytes);
    fclose(f);
    free(ring);
}

/* Calls that the writer had not stored: their stacks may be missing, too; a
 * ring of version 1 knows of none. */
static void test_recovered(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 2; version++) {
        const char *folder = files_folder();
        sqlite3 *db = stacks(folder);
        const struct ct_process *p;
        struct ct_trace *trace;
        char path[256];

        files_sql(db, "UPDATE process SET end_ns = NULL");
        files_sql(db, "INSERT INTO meta VALUES ('ring_tail', '1')");
        files_end(db);
        snprintf(path, sizeof(path), "%s.ring", files_path(folder, 0));
        ring_write(path, version);
        trace = files_open(folder);
        p = &trace->processes[0];
        assert_int_equal(p->recovered, 4);
        for (int i = 1; i < 5; i++) {
            int stack = p->classes[p->ops[i].cls].stack;

            if (version == 2 && i == 1)
                assert_int_equal(p->stacks[stack].id, 3);
            else
                assert_int_equal(stack, CT_NONE);
        }
        ct_trace_free(trace);
        unlink(path);
        files_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_recovered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
