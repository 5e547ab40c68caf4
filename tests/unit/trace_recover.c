/* What a dead process left in its ring, written here slot by slot. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "commtrace/ring.h"
#include "trace/ring.h"
#include "trace_files.h"

#define NSLOTS 16

struct ring {
    union {
        struct ct_ring_header header;
        char page[CT_RING_HEADER_BYTES];
    } u;
    struct ct_slot slots[NSLOTS];
};

static struct ring *ring_new(const char *uuid, uint64_t head, uint64_t tail)
{
    struct ring *ring = calloc(1, sizeof(*ring));

    memcpy(ring->u.header.magic, CT_RING_MAGIC, 8);
    ring->u.header.version = CT_RING_VERSION;
    ring->u.header.nslots = NSLOTS;
    ring->u.header.pid = 1;
    snprintf(ring->u.header.uuid, sizeof(ring->u.header.uuid), "%s", uuid);
    snprintf(ring->u.header.boot_id, sizeof(ring->u.header.boot_id), "none");
    ring->u.header.head = head;
    ring->u.header.tail = tail;
    return ring;
}

static struct ct_slot *slot_at(struct ring *ring, uint64_t position,
                               enum ct_slot_kind kind, enum ct_slot_state state)
{
    struct ct_slot *slot = &ring->slots[position % NSLOTS];

    memset(slot, 0, sizeof(*slot));
    slot->state = position << 2 | state;
    slot->kind = (uint16_t)kind;
    slot->comm = 1;
    slot->enter_ns = 1000 * (int64_t)position;
    slot->leave_ns = slot->enter_ns + 300;
    return slot;
}

static struct ct_slot *call_at(struct ring *ring, uint64_t position,
                               enum ct_slot_state state, uint64_t ordinal)
{
    struct ct_slot *slot = slot_at(ring, position, CT_SLOT_OP, state);

    slot->op = CT_OP_ALL_REDUCE;
    slot->flags = CT_FLAG_EVENT | CT_FLAG_IN_PLACE;
    slot->u.call.ordinal = ordinal;
    slot->u.call.count = 1000;
    slot->u.call.stream = 1;
    slot->u.call.site = 1;
    slot->u.call.type = CT_TYPE_FLOAT32;
    slot->u.call.redop = -1;
    slot->u.call.peer = -1;
    slot->u.call.events = 3;
    return slot;
}

static void ring_write(struct ring *ring, const char *path, size_t bytes)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(ring, 1, bytes, f), bytes);
    fclose(f);
    free(ring);
}

/* One op in the database, id 5 = position 4, stored while in its call. */
static void write_db(const char *folder, int tail, const char *ring_path)
{
    sqlite3 *db = files_begin_reducing(folder, 0, 2, 0);

    files_op(db, 4, 1, 0, 3000, 100);
    files_sql(db,
              "INSERT INTO op VALUES (5, 1, 1, NULL, 4000, NULL, NULL, NULL,"
              " %d)",
              CT_FLAG_EVENT | CT_FLAG_IN_CALL);
    files_sql(db, "UPDATE process SET end_ns = NULL");
    files_sql(db, "INSERT INTO meta VALUES ('ring_tail', '%d')", tail);
    if (ring_path)
        files_sql(db, "INSERT INTO meta VALUES ('ring_path', '%s')", ring_path);
    files_end(db);
}

static const char *ring_path(const char *folder)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s.ring", files_path(folder, 0));
    return path;
}

/* Graphs, a launch of one, and the end of a launch that the database has. */
static void graph_slots(struct ring *ring)
{
    struct ct_slot *slot = call_at(ring, 5, CT_SLOT_LEFT, 2);

    slot->flags = CT_FLAG_CAPTURED;
    slot->u.call.graph = 3;
    slot->u.call.events = -1;
    slot_at(ring, 6, CT_SLOT_GRAPH, CT_SLOT_LEFT)->u.graph.id = 3;
    slot = slot_at(ring, 7, CT_SLOT_GRAPH, CT_SLOT_LEFT);
    slot->u.graph.id = -1;
    slot->u.graph.first = slot->u.graph.second = 3;
    slot = slot_at(ring, 8, CT_SLOT_GRAPH_LAUNCH, CT_SLOT_LEFT);
    slot->u.graph_launch.graph = -1;
    slot->u.graph_launch.stream = 0x77;
    slot_at(ring, 9, CT_SLOT_LEAVE, CT_SLOT_LEFT)->u.leave.position = 3;
    slot_at(ring, 10, CT_SLOT_GRAPH_LAUNCH, CT_SLOT_OPEN)
        ->u.graph_launch.graph = 3;
}

static void test_graphs(void **state)
{
    const char *folder = files_folder();
    struct ring *ring = ring_new("uuid0", 11, 5);
    const struct ct_graph_launch_row *launches;
    const struct ct_process *p;
    struct ct_trace *trace;
    sqlite3 *db;

    (void)state;
    write_db(folder, 5, NULL);
    assert_int_equal(sqlite3_open(files_path(folder, 0), &db), SQLITE_OK);
    files_sql(db,
              "INSERT INTO graph_launch VALUES (4, 9, 1, 3500, NULL, NULL)");
    sqlite3_close(db);
    graph_slots(ring);
    ring_write(ring, ring_path(folder), sizeof(*ring));
    trace = files_open(folder);
    p = &trace->processes[0];
    launches = p->graph_launches;
    assert_int_equal(p->ngraph_launches, 3);
    assert_int_equal(launches[0].host_ns, 9300 - 3500);
    assert_int_equal(launches[0].result, 0);
    assert_int_equal(launches[1].id, 9);
    assert_int_equal(launches[1].stream, 0x77);
    assert_int_equal(launches[1].host_ns, 300);
    assert_int_equal(launches[2].host_ns, CT_NO_TIME);
    assert_int_equal(p->nops, 3);
    assert_int_equal(ct_op_runs(p, &p->ops[1]), 1);
    assert_int_equal(ct_op_runs(p, &p->ops[2]), 3);
    assert_false(p->ops[2].flags & CT_FLAG_RUNNING);
    files_close(trace, folder);
}

/* Its slots end before the graph; what stands there is of others. */
static void test_old_ring(void **state)
{
    const char *folder = files_folder();
    struct ring *ring = ring_new("uuid0", 6, 5);
    struct ct_trace *trace;

    (void)state;
    write_db(folder, 5, NULL);
    ring->u.header.version = 1;
    call_at(ring, 5, CT_SLOT_LEFT, 2)->u.call.graph = 0x6c6c6f72;
    ring_write(ring, ring_path(folder), sizeof(*ring));
    trace = files_open(folder);
    assert_int_equal(trace->processes[0].recovered, 1);
    assert_int_equal(trace->processes[0].ngraphs, 0);
    files_close(trace, folder);
}

/* Slots of each kind and in each state, behind five ops in the database. */
static void fill_ring(struct ring *ring)
{
    struct ct_slot *slot;

    slot = slot_at(ring, 5, CT_SLOT_LEAVE, CT_SLOT_LEFT);
    slot->leave_ns = 4700;
    slot->u.leave.position = 4;
    call_at(ring, 6, CT_SLOT_LEFT, 2);
    slot = slot_at(ring, 7, CT_SLOT_COMM, CT_SLOT_LEFT);
    slot->comm = 2;
    slot->u.comm.uid = 99;
    slot->u.comm.parent = 1;
    slot->u.comm.nranks = 4;
    slot->u.comm.rank = 3;
    slot->u.comm.origin = CT_COMM_SPLIT;
    strcpy(slot->u.comm.name, "tp");
    slot = call_at(ring, 8, CT_SLOT_LEFT, 0);
    slot->comm = 2;
    slot->result = 5;
    /* Reserved by a thread that never came to fill it: shows position -16. */
    call_at(ring, 9, CT_SLOT_LEFT, 7)->state = 0;
    slot = call_at(ring, 10, CT_SLOT_OPEN, 3);
    slot->grp = 6;
    slot->flags = CT_FLAG_GROUPED | CT_FLAG_GROUP_TIME;
    slot = slot_at(ring, 11, CT_SLOT_LAUNCH, CT_SLOT_OPEN);
    slot->grp = 6;
    slot->u.launch.stream = 1;
    slot->u.launch.nops = 1;
    call_at(ring, 12, CT_SLOT_TAKEN, 4);
}

static void test_recover(void **state)
{
    const char *folder = files_folder();
    struct ring *ring = ring_new("uuid0", 13, 5);
    const struct ct_process *p;
    struct ct_trace *trace;

    (void)state;
    write_db(folder, 5, NULL);
    fill_ring(ring);
    ring_write(ring, ring_path(folder), sizeof(*ring));

    trace = files_open(folder);
    p = &trace->processes[0];
    assert_true(p->dead);
    assert_false(p->ring_missing);
    assert_int_equal(p->nops, 5);
    assert_int_equal(p->refused, 1);
    assert_int_equal(p->first_refused.comm, 1);
    assert_int_equal(p->first_refused.result, 5);
    assert_int_equal(p->recovered, 4);
    assert_int_equal(ct_op_host_ns(&p->ops[1]), 700);
    assert_int_equal(p->ops[1].flags, CT_FLAG_RUNNING);
    assert_int_equal(p->ops[2].ordinal, 2);
    assert_int_equal(p->ops[2].enter_ns, 6000);
    assert_int_equal(ct_op_host_ns(&p->ops[2]), 300);
    assert_int_equal(ct_op_gpu_ns(&p->ops[2]), CT_NO_TIME);
    assert_int_equal(p->ops[2].flags,
                     CT_FLAG_IN_PLACE | CT_FLAG_RECOVERED | CT_FLAG_RUNNING);
    assert_int_equal(p->classes[p->ops[2].cls].bytes, 4000);
    assert_int_equal(p->ncomms, 2);
    assert_int_equal(p->comms[1].uid, 99);
    assert_int_equal(p->comms[1].parent, 0);
    assert_string_equal(p->comms[1].origin, "split");
    assert_string_equal(p->comms[1].name, "tp");
    assert_int_equal(ct_op_host_ns(&p->ops[3]), CT_NO_TIME);
    assert_true(p->ops[3].flags & CT_FLAG_IN_CALL);
    assert_int_equal(p->ops[3].launch, 0);
    assert_int_equal(p->launches[0].first_op, 3);
    assert_true(p->ops[4].flags & CT_FLAG_IN_CALL);
    assert_int_equal(trace->jobs[0].in_flight, 4);
    files_close(trace, folder);
}

static void expect_nops(const char *folder, int nops, bool missing)
{
    struct ct_trace *trace = files_open(folder);

    assert_int_equal(trace->processes[0].nops, nops);
    assert_int_equal(trace->processes[0].ring_missing, missing);
    ct_trace_free(trace);
}

/* What cannot be this process's ring is not read. */
static void test_other_rings(void **state)
{
    const char *folder = files_folder();
    struct ring *ring;

    (void)state;
    write_db(folder, 5, "/nowhere/ring");
    expect_nops(folder, 2, true);
    ring = ring_new("another", 7, 5);
    call_at(ring, 6, CT_SLOT_LEFT, 2);
    ring_write(ring, ring_path(folder), sizeof(*ring));
    expect_nops(folder, 2, true);
    ring = ring_new("uuid0", 7, 5);
    call_at(ring, 6, CT_SLOT_LEFT, 2);
    ring_write(ring, ring_path(folder), sizeof(*ring) - 1);
    expect_nops(folder, 2, true);
    ring = ring_new("uuid0", 7, 5);
    ring->u.header.version = 77;
    ring_write(ring, ring_path(folder), sizeof(*ring));
    expect_nops(folder, 2, true);
    ring = ring_new("uuid0", 7, 5);
    ring->u.header.nslots = 1u << 31;
    ring_write(ring, ring_path(folder), sizeof(*ring));
    expect_nops(folder, 2, true);
    /* The right one. */
    ring = ring_new("uuid0", 7, 5);
    call_at(ring, 6, CT_SLOT_LEFT, 2);
    ring_write(ring, ring_path(folder), sizeof(*ring));
    expect_nops(folder, 3, false);
    files_remove(folder);
}

/* Slots full of nonsense, with all states: no crash, no op of nonsense. */
static void test_hostile_slots(void **state)
{
    const char *folder = files_folder();
    uint64_t random = 88172645463325252u;
    int round;

    (void)state;
    write_db(folder, 5, NULL);
    for (round = 0; round < 300; round++) {
        struct ring *ring = ring_new("uuid0", 5 + NSLOTS, 5);
        unsigned char *bytes = (unsigned char *)ring->slots;
        char error[512];
        uint64_t p;
        size_t i;

        for (i = 0; i < sizeof(ring->slots); i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes[i] = random % 3 ? (unsigned char)(random >> 32) : 0;
        }
        for (p = 5; p < 5 + NSLOTS; p++) {
            struct ct_slot *slot = &ring->slots[p % NSLOTS];

            slot->state = p << 2 | (bytes[p] & 3);
            slot->kind = bytes[p * 3] % 6;
            slot->comm = bytes[p * 5] % 3;
        }
        ring_write(ring, ring_path(folder), sizeof(*ring));
        ct_trace_free(files_try(folder, error, sizeof(error)));
    }
    files_remove(folder);
}

/* meta.ring_path comes first; a ring may have wrapped past what is known. */
static void test_far_ahead(void **state)
{
    const char *folder = files_folder();
    char path[256];
    struct ring *ring = ring_new("uuid0", 1000, 990);
    uint64_t p;

    (void)state;
    snprintf(path, sizeof(path), "%s/elsewhere", folder);
    write_db(folder, 5, path);
    for (p = 1000 - NSLOTS; p < 1000; p++)
        call_at(ring, p, CT_SLOT_LEFT, p);
    ring_write(ring, path, sizeof(*ring));
    expect_nops(folder, 2 + NSLOTS, false);
    files_remove(folder);
}

static void event_at(struct ring *ring, uint64_t position,
                     enum ct_comm_event what, int result)
{
    struct ct_slot *slot =
        slot_at(ring, position, CT_SLOT_COMM_EVENT, CT_SLOT_LEFT);

    slot->u.event.what = what;
    slot->result = result;
}

/* _exit() after the end of all communicators is no death; before, it is. */
static void expect_end(enum ct_comm_event what, int result, bool left,
                       int in_flight)
{
    const char *folder = files_folder();
    struct ring *ring = ring_new("uuid0", 8, 5);
    const struct ct_process *p;
    struct ct_trace *trace;
    struct ct_slot *slot;

    write_db(folder, 5, NULL);
    slot = slot_at(ring, 5, CT_SLOT_LEAVE, CT_SLOT_LEFT);
    slot->leave_ns = 4700;
    slot->u.leave.position = 4;
    call_at(ring, 6, CT_SLOT_LEFT, 2);
    event_at(ring, 7, what, result);
    ring_write(ring, ring_path(folder), sizeof(*ring));
    trace = files_open(folder);
    p = &trace->processes[0];
    assert_int_equal(p->nops, 3);
    assert_int_equal(p->left, left);
    assert_int_equal(p->dead, !left);
    assert_int_equal(trace->jobs[0].in_flight, in_flight);
    files_close(trace, folder);
}

static void test_ended(void **state)
{
    (void)state;
    expect_end(CT_EVENT_DESTROY, 0, true, 0);
    expect_end(CT_EVENT_FINALIZE, 0, true, 0);
    expect_end(CT_EVENT_ABORT, 0, true, 2);
    expect_end(CT_EVENT_DESTROY, 5, false, 2);
    expect_end(CT_EVENT_REGISTER, 0, false, 2);
}

static struct ring *unstored_ring(const char *db_path, uint64_t tail)
{
    struct ring *ring = ring_new("uuid9", 3, tail);
    struct ct_slot *slot;

    ring->u.header.pid = 0x7fffffff;
    ring->u.header.rank = 1;
    ring->u.header.t0_ns = 5000;
    snprintf(ring->u.header.db_path, sizeof(ring->u.header.db_path), "%s",
             db_path);
    slot = slot_at(ring, 0, CT_SLOT_COMM, CT_SLOT_LEFT);
    slot->u.comm.uid = 77;
    slot->u.comm.nranks = 2;
    slot->u.comm.rank = 1;
    slot->u.comm.origin = CT_COMM_INIT;
    call_at(ring, 1, CT_SLOT_LEFT, 0);
    call_at(ring, 2, CT_SLOT_OPEN, 1);
    return ring;
}

static void expect_unstored(const char *folder)
{
    struct ct_trace *trace = files_open(folder);
    const struct ct_process *p = &trace->processes[0];

    assert_int_equal(trace->nprocesses, 1);
    assert_true(p->unstored);
    assert_true(p->dead);
    assert_false(p->ring_missing);
    assert_int_equal(p->rank, 1);
    assert_int_equal(p->t0_ns, 5000);
    assert_int_equal(p->world_size, CT_NONE);
    assert_string_equal(p->uuid, "uuid9");
    assert_string_equal(p->host, "host");
    assert_int_equal(p->nops, 2);
    assert_int_equal(p->recovered, 2);
    assert_int_equal(p->classes[p->ops[0].cls].bytes, 4000);
    assert_string_equal(p->comms[0].origin, "init");
    ct_trace_free(trace);
}

static void expect_none(const char *folder)
{
    char error[512];

    assert_null(files_try(folder, error, sizeof(error)));
}

/* Killed before anything was stored: no database, an empty one, one of tables
 * only; the ring still on tmpfs or beside, the folder there or not. */
static void test_unstored(void **state)
{
    const char *folder = files_folder();
    char db[256], beside[300], shm[128];
    sqlite3 *tables;

    (void)state;
    snprintf(db, sizeof(db), "%s/host.2147483647.1.db", folder);
    snprintf(beside, sizeof(beside), "%s.ring", db);
    snprintf(shm, sizeof(shm), "/dev/shm/commtrace.test.%d", (int)getpid());
    ring_write(unstored_ring(db, 0), shm, sizeof(struct ring));
    expect_unstored(folder);
    expect_unstored(db);
    rmdir(folder);
    expect_unstored(folder);
    mkdir(folder, 0700);
    fclose(fopen(db, "w"));
    expect_unstored(folder);
    unlink(shm);
    expect_none(folder);
    ring_write(unstored_ring(db, 0), beside, sizeof(struct ring));
    expect_unstored(folder);
    assert_int_equal(sqlite3_open(db, &tables), SQLITE_OK);
    files_sql(tables, "CREATE TABLE process (uuid)");
    sqlite3_close(tables);
    expect_unstored(folder);
    unlink(db);
    expect_unstored(folder);
    /* Something had been stored, and was deleted since. */
    ring_write(unstored_ring(db, 1), beside, sizeof(struct ring));
    expect_none(folder);
    /* Of another folder. */
    unlink(beside);
    ring_write(unstored_ring("/nowhere/host.1.1.db", 0), shm,
               sizeof(struct ring));
    expect_none(folder);
    unlink(shm);
    files_remove(folder);
}

/* One that may not be read, here because it is a link, is not one that is not
 * there. */
static void test_refused_ring(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    char error[1024];
    sqlite3 *db;

    (void)state;
    write_db(folder, 5, NULL);
    assert_int_equal(symlink("elsewhere", ring_path(folder)), 0);
    trace = files_open(folder);
    assert_true(trace->processes[0].ring_missing);
    assert_int_equal(trace->nskipped, 1);
    assert_ptr_equal(strstr(trace->skipped[0], ring_path(folder)),
                     trace->skipped[0]);
    assert_non_null(strstr(trace->skipped[0], strerror(ELOOP)));
    ct_trace_free(trace);
    assert_int_equal(sqlite3_open(files_path(folder, 0), &db), SQLITE_OK);
    files_sql(db, "DELETE FROM op");
    sqlite3_close(db);
    assert_null(files_try(folder, error, sizeof(error)));
    assert_non_null(strstr(error, "recorded but in its ring"));
    assert_non_null(strstr(error, ring_path(folder)));
    files_remove(folder);
}

/* The copy of a copy with slots of positions from .. 40 of a ring that went
 * round. */
static void expect_cut(const struct ct_ring *ring, uint64_t from,
                       uint64_t nslots)
{
    struct ct_ring part = {0};
    const struct ct_slot *slot;
    uint64_t p;
    size_t size;
    void *copy = ct_ring_cut(ring, from, &size);

    assert_int_equal(size, CT_RING_HEADER_BYTES + nslots * CT_RING_SLOT_BYTES);
    assert_true(ct_ring_adopt(&part, copy, size));
    assert_int_equal(part.nslots, nslots);
    assert_int_equal(part.head, 40);
    assert_int_equal(part.start_ticks, 0);
    assert_false(ct_ring_alive(&part));
    for (p = from < 40 - NSLOTS ? 40 - NSLOTS : from; p < 40; p++) {
        slot = ct_ring_slot(&part, p);
        assert_non_null(slot);
        assert_int_equal(slot->enter_ns, 1000 * (int64_t)p);
    }
    ct_ring_release(&part);
}

static void test_cut(void **state)
{
    struct ring *whole = ring_new("uuid", 40, 30);
    struct ct_ring ring = {0};
    uint64_t p;

    (void)state;
    whole->u.header.start_ticks = 7;
    for (p = 24; p < 40; p++)
        call_at(whole, p, CT_SLOT_LEFT, p);
    assert_true(ct_ring_adopt(&ring, whole, sizeof(*whole)));
    expect_cut(&ring, 0, 16);
    expect_cut(&ring, 24, 16);
    expect_cut(&ring, 31, 16);
    expect_cut(&ring, 32, 8);
    expect_cut(&ring, 37, 4);
    expect_cut(&ring, 39, 1);
    expect_cut(&ring, 40, 1);
    expect_cut(&ring, UINT64_MAX, 1);
    ct_ring_release(&ring);
    assert_false(ct_ring_adopt(&ring, calloc(1, 5000), 5000));
    assert_false(ct_ring_adopt(&ring, calloc(1, 10), 10));
    assert_false(ct_ring_adopt(&ring, NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_recover),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_old_ring),
        cmocka_unit_test(test_other_rings),
        cmocka_unit_test(test_hostile_slots),
        cmocka_unit_test(test_far_ahead),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_unstored),
        cmocka_unit_test(test_refused_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
