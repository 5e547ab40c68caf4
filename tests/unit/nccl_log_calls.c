/* Lines that name no communicator, of a process that has several: those about
 * collectives and about connections at first use go to the one that was called,
 * in whichever order lines and calls come. */
#include "nccl_log.h"

#include "commtrace/ops.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SHARED = 100 }; /* added to a channel of shared memory */

enum { WORLD = 0xa0, TENSOR = 0xb0, OTHER = 0xc0 };

struct seen { /* choices, or connections with their channel as bytes */
    size_t n;
    struct {
        uint64_t pointer;
        int64_t bytes;
        bool likely;
    } at[64];
};

static void see(void *arg, const struct nccl_log_fact *fact)
{
    struct seen *seen = arg;
    bool is_conn = fact->kind == NCCL_LOG_CONN;
    if ((fact->kind != NCCL_LOG_CHOICE && !is_conn) || seen->n == 64)
        return;
    seen->at[seen->n].pointer = fact->comm.pointer;
    seen->at[seen->n].likely = fact->comm.likely;
    seen->at[seen->n++].bytes =
        is_conn
            ? fact->conn.channel + SHARED * !strncmp(fact->conn.via, "SHM", 3)
            : fact->choice.bytes;
}

static int thread = 7;

static void say(struct nccl_log *log, const char *format, ...)
{
    char line[512];
    va_list values;
    size_t n = (size_t)sprintf(line, "h:7:%d [0] NCCL INFO ", thread);
    va_start(values, format);
    vsnprintf(line + n, sizeof(line) - n, format, values);
    va_end(values);
    strcat(line, "\n");
    nccl_log_feed(log, line, strlen(line));
}

static void set_up(struct nccl_log *log, uint64_t pointer, int rank)
{
    static const char *const phases[] = {"START", "COMPLETE"};
    for (int i = 0; i < 2; i++)
        say(log,
            "ncclCommInitRank comm 0x%" PRIx64 " rank %d nranks 4 cudaDev 0 "
            "nvmlDev 0 busId 1000 commId 0x%" PRIx64 " - Init %s",
            pointer, rank, pointer, phases[i]);
}

static void set_nodes(struct nccl_log *log, uint64_t pointer, int nodes)
{
    say(log,
        "comm 0x%" PRIx64 " rank 0 nRanks 4 nNodes %d localRanks %d localRank "
        "0 MNNVL 0",
        pointer, nodes, 4 / nodes);
}

static struct nccl_log *open_log_of(int64_t pid, struct seen *seen)
{
    struct nccl_log *log = nccl_log_open(pid, NULL, see, seen);
    *seen = (struct seen){0};
    assert_non_null(log);
    set_up(log, WORLD, 0);
    set_up(log, TENSOR, 0);
    set_up(log, OTHER, 3);
    return log;
}

static struct nccl_log *open_log(struct seen *seen)
{
    return open_log_of(7, seen);
}

static void line_of(struct nccl_log *log, const char *name, int64_t bytes)
{
    say(log,
        "%s: %" PRId64 " Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}",
        name, bytes);
}

static void call(struct nccl_log *log, uint64_t pointer, int64_t bytes)
{
    nccl_log_called(log, pointer, CT_OP_ALL_REDUCE, bytes, bytes, false);
}

static void expect(const struct seen *seen, size_t i, uint64_t pointer,
                   int64_t bytes)
{
    assert_true(i < seen->n);
    assert_int_equal(seen->at[i].pointer, pointer);
    assert_int_equal(seen->at[i].bytes, bytes);
}

static void without_calls_nobody_knows(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    line_of(log, "AllReduce", 64);
    expect(&seen, 0, 0, 64);
    nccl_log_close(log);
}

static void calls_before_lines(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, TENSOR, 64);
    call(log, WORLD, 64);
    call(log, TENSOR, 32);
    line_of(log, "AllReduce", 64);
    line_of(log, "AllReduce", 32); /* a group is sorted */
    line_of(log, "AllReduce", 64);
    assert_int_equal(seen.n, 3);
    expect(&seen, 0, TENSOR, 64);
    expect(&seen, 1, TENSOR, 32);
    expect(&seen, 2, WORLD, 64);
    nccl_log_close(log);
}

static void lines_before_calls(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, WORLD, 1);
    line_of(log, "AllReduce", 64);
    line_of(log, "AllReduce", 64);
    line_of(log, "AllReduce", 1);
    assert_int_equal(seen.n, 1);
    call(log, WORLD, 64);
    call(log, TENSOR, 64);
    assert_int_equal(seen.n, 3);
    expect(&seen, 0, WORLD, 1);
    expect(&seen, 1, WORLD, 64);
    expect(&seen, 2, TENSOR, 64);
    nccl_log_close(log);
}

/* What one rank brings, or the whole message: releases differ. */
static void either_size_is_meant(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    nccl_log_called(log, TENSOR, CT_OP_ALL_GATHER, 100, 400, false);
    nccl_log_called(log, WORLD, CT_OP_ALL_GATHER, 200, 800, false);
    nccl_log_called(log, WORLD, CT_OP_REDUCE_SCATTER, 100, 400, false);
    line_of(log, "ReduceScatter", 400);
    line_of(log, "AllGather", 800);
    say(log, "100 Bytes -> Algo 1 proto 0 time 9.5");
    expect(&seen, 0, WORLD, 400);
    expect(&seen, 1, WORLD, 800);
    expect(&seen, 2, TENSOR, 100);
    nccl_log_close(log);
}

static void a_call_by_another_name(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    nccl_log_called(log, TENSOR, CT_OP_BCAST, 64, 64, false);
    nccl_log_called(log, WORLD, CT_OP_BROADCAST, 64, 64, false);
    line_of(log, "Broadcast", 64);
    line_of(log, "Broadcast", 64);
    assert_int_equal(seen.n, 2);
    expect(&seen, 0, TENSOR, 64);
    expect(&seen, 1, WORLD, 64);
    nccl_log_close(log);
}

static void what_no_call_tells_comes_last(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, WORLD, 8);
    line_of(log, "AllReduce", 64);
    nccl_log_flush(log, true, false);
    assert_int_equal(seen.n, 0);
    nccl_log_flush(log, true, true);
    expect(&seen, 0, 0, 64);
    nccl_log_close(log);
}

/* Calls without lines, lines without calls: old ones go. */
static void neither_side_grows(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    for (int i = 0; i < 20000; i++)
        call(log, WORLD, 1000 + i);
    call(log, TENSOR, 64);
    line_of(log, "AllReduce", 64);
    expect(&seen, 0, TENSOR, 64);
    line_of(log, "AllReduce", 1000 + 19000); /* too long ago */
    assert_int_equal(seen.n, 1);
    for (int i = 0; i < 20000; i++)
        line_of(log, "AllReduce", 500);
    assert_int_equal(nccl_log_counted(log)->unnamed, 20001 - 4096);
    nccl_log_flush(log, true, true);
    assert_int_equal(nccl_log_counted(log)->unnamed, 20001);
    nccl_log_close(log);
}

/* What a thread of NCCL's says that connects neighbours on two channels. */
static void connect(struct nccl_log *log, const char *how)
{
    static int last = 100;
    thread = ++last;
    for (int i = 0; i < 2; i++)
        say(log, "Channel %02d/0 : 0[0] -> 1[1] via %s", i, how);
    say(log, "Connected all rings");
    thread = 7;
}

static void expect_conns(const struct seen *seen, size_t first,
                         uint64_t pointer, bool likely)
{
    for (size_t i = 0; i < 2; i++) {
        expect(seen, first + i, pointer, (int64_t)i);
        assert_int_equal(seen->at[first + i].likely, likely);
    }
}

static void without_calls_the_last_set_up_is_likely(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    connect(log, "P2P/CUMEM");
    connect(log, "P2P/CUMEM");
    expect_conns(&seen, 0, TENSOR, true);
    expect_conns(&seen, 2, WORLD, true);
    nccl_log_close(log);
}

static void the_first_called_is_connected_first(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, WORLD, 4);
    call(log, TENSOR, 4);
    connect(log, "P2P/CUMEM");
    connect(log, "P2P/CUMEM");
    assert_int_equal(seen.n, 0); /* others may have been called before */
    nccl_log_flush(log, true, false);
    expect_conns(&seen, 0, WORLD, false);
    expect_conns(&seen, 2, TENSOR, false);
    nccl_log_close(log);
}

/* In one group, or by two threads: NCCL may come to the second one first. */
static void calls_at_one_time_have_no_order(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, WORLD, 4);
    nccl_log_called(log, TENSOR, CT_OP_ALL_REDUCE, 4, 4, true);
    connect(log, "P2P/CUMEM");
    connect(log, "P2P/CUMEM");
    nccl_log_flush(log, true, false);
    assert_int_equal(seen.n, 0);
    nccl_log_flush(log, true, true);
    assert_int_equal(seen.n, 4);
    for (size_t i = 0; i < seen.n; i++)
        assert_true(seen.at[i].likely);
    nccl_log_close(log);
}

/* Lines of sends, while the calls that have been told end before these: the
 * collective of another communicator did not connect them, nor did a send of
 * another one that had been called before. */
static void calls_that_lag_decide_nothing(void **state)
{
    (void)state;
    for (int sends = 0; sends < 2; sends++) {
        struct seen seen;
        struct nccl_log *log = open_log(&seen);
        nccl_log_called(log, WORLD, sends ? CT_OP_SEND : CT_OP_ALL_REDUCE, 4, 4,
                        false);
        thread = 8;
        say(log, "Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM");
        thread = 9;
        say(log, "Channel 00/1 : 0[0] -> 1[1] via NET/Socket/0");
        thread = 7;
        nccl_log_flush(log, false, false);
        assert_int_equal(seen.n, 0);
        if (sends) {
            nccl_log_called(log, TENSOR, CT_OP_SEND, 4, 4, false);
            nccl_log_flush(log, true, false);
            assert_int_equal(seen.n, 2);
            expect(&seen, 0, WORLD, 0);
            expect(&seen, 1, TENSOR, 0);
        } else {
            nccl_log_flush(log, false, true);
        }
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(seen.at[i].likely, !sends);
        nccl_log_close(log);
    }
}

/* A log of our own, which no other process writes. */
static void calls_tell_where_no_process_was_asked_for(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log_of(0, &seen);
    nccl_log_expect_calls(log);
    connect(log, "SHM/direct");
    connect(log, "P2P/CUMEM");
    assert_int_equal(seen.n, 0);
    call(log, WORLD, 4);
    call(log, TENSOR, 4);
    nccl_log_flush(log, true, false);
    assert_int_equal(seen.n, 4);
    expect(&seen, 0, WORLD, SHARED);
    expect(&seen, 2, TENSOR, 0);
    nccl_log_close(log);
}

static void connections_wait_for_calls(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, OTHER, 4);
    connect(log, "P2P/CUMEM");
    nccl_log_flush(log, true, false);
    assert_int_equal(seen.n, 0);
    call(log, WORLD, 4);
    nccl_log_flush(log, true, false);
    expect_conns(&seen, 0, WORLD, false);
    connect(log, "P2P/CUMEM"); /* WORLD has them */
    nccl_log_flush(log, true, false);
    assert_int_equal(seen.n, 2);
    nccl_log_flush(log, true, true);
    expect_conns(&seen, 2, TENSOR, true);
    nccl_log_close(log);
}

/* In whatever order the threads stand in a table. */
static void lines_that_wait_for_calls_keep_their_order(void **state)
{
    (void)state;
    for (int tid = 200; tid < 240; tid++) {
        struct seen seen;
        struct nccl_log *log = open_log(&seen);
        call(log, OTHER, 4);
        for (int i = 0; i < 2; i++) {
            thread = i ? 1000 - tid : tid;
            say(log, "Channel 00 : 0[0] -> 1[1] via %s",
                i ? "P2P/CUMEM" : "SHM/direct");
            say(log, "Connected all rings");
        }
        call(log, WORLD, 4);
        if (tid % 2) {
            nccl_log_flush(log, true, false);
            assert_int_equal(seen.n, 1);
        }
        call(log, TENSOR, 4);
        say(log, "Connected all rings");
        thread = 7;
        nccl_log_flush(log, true, false);
        assert_int_equal(seen.n, 2);
        expect(&seen, 0, WORLD, SHARED);
        expect(&seen, 1, TENSOR, 0);
        nccl_log_close(log);
    }
}

/* A send of TENSOR's, and the line of the thread of NCCL's that connects it. */
static void send(struct nccl_log *log, const char *line)
{
    nccl_log_called(log, TENSOR, CT_OP_SEND, 4, 4, false);
    thread = 8;
    say(log, "%s", line);
    thread = 7;
    nccl_log_flush(log, true, false);
}

static void sends_belong_where_sends_are_called(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, WORLD, 4);
    call(log, TENSOR, 4);
    send(log, "Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM");
    assert_int_equal(seen.n, 1);
    expect(&seen, 0, TENSOR, 0);
    nccl_log_close(log);
}

/* Though the nodes speak for the other one. */
static void sends_of_a_node_may_take_the_network(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    set_nodes(log, TENSOR, 1);
    call(log, WORLD, 4);
    send(log, "Channel 00/1 : 0[0] -> 1[1] [send] via NET/Socket/0/Shared");
    assert_int_equal(seen.n, 1);
    expect(&seen, 0, TENSOR, 0);
    nccl_log_close(log);
}

/* Shared memory shows no connector, but only collectives end in a line. */
static void what_nothing_ends_is_of_sends(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    call(log, WORLD, 4);
    send(log, "Channel 02 : 0[0] -> 1[1] via SHM/direct");
    assert_int_equal(seen.n, 1);
    expect(&seen, 0, TENSOR, SHARED + 2);
    connect(log, "SHM/direct");
    nccl_log_flush(log, true, false);
    expect(&seen, 1, WORLD, SHARED);
    expect(&seen, 2, WORLD, SHARED + 1);
    nccl_log_close(log);
}

/* Nobody takes the network inside a node. */
static void nodes_speak_for_themselves(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    set_nodes(log, WORLD, 4);
    set_nodes(log, TENSOR, 1);
    call(log, TENSOR, 4);
    call(log, WORLD, 4);
    connect(log, "NET/IB/0/GDRDMA");
    connect(log, "P2P/CUMEM");
    expect_conns(&seen, 0, WORLD, false);
    expect_conns(&seen, 2, TENSOR, false);
    nccl_log_close(log);
}

/* What more channels connect than a communicator has is not its own. */
static void channels_speak_for_themselves(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    say(log, "ncclCommInitRank comm 0xd0 rank 0 nranks 4 cudaDev 0 nvmlDev 0 "
             "busId 1000 commId 0xd0 - Init START");
    say(log, "1 coll channels, 0 nvls channels, 1 p2p channels, 1 p2p channels "
             "per peer");
    say(log, "ncclCommInitRank comm 0xd0 rank 0 nranks 4 cudaDev 0 nvmlDev 0 "
             "busId 1000 commId 0xd0 - Init COMPLETE");
    call(log, 0xd0, 4);
    call(log, WORLD, 4);
    connect(log, "P2P/CUMEM");
    nccl_log_flush(log, true, false);
    expect_conns(&seen, 0, WORLD, false);
    nccl_log_close(log);
}

/* What connects neighbours of a ring or tree is of the communicator that has
 * it, though another one was called before. */
static void rings_and_trees_speak_for_themselves(void **state)
{
    static const char *const lines[][2] = {
        {"Ring %02d : 3 -> 0 -> 2", "Ring %02d : 3 -> 0 -> 1"},
        {"Trees [%d] 2/-1/-1->0->-1", "Trees [%d] 1/-1/-1->0->-1"},
        {"Trees [%d] 3/-1/-1->0->2", "Trees [%d] 3/-1/-1->0->1"}};
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct seen seen;
        struct nccl_log *log = open_log(&seen);
        for (int k = 0; k < 2; k++) {
            say(log,
                "ncclCommInitRank comm 0xd%d rank 0 nranks 4 cudaDev 0 nvmlDev "
                "0 busId 1000 commId 0xd%d - Init START",
                k, k);
            for (int channel = 0; channel < 2; channel++)
                say(log, lines[i][k], channel);
            say(log,
                "ncclCommInitRank comm 0xd%d rank 0 nranks 4 cudaDev 0 nvmlDev "
                "0 busId 1000 commId 0xd%d - Init COMPLETE",
                k, k);
        }
        call(log, 0xd0, 4);
        call(log, 0xd1, 4);
        connect(log, "P2P/CUMEM");
        nccl_log_flush(log, true, false);
        expect_conns(&seen, 0, 0xd1, false);
        nccl_log_close(log);
    }
}

/* Unless all else is forbidden: the one that has such connections does not get
 * them again. */
static void nothing_is_connected_twice(void **state)
{
    (void)state;
    struct seen seen;
    struct nccl_log *log = open_log(&seen);
    set_nodes(log, WORLD, 4);
    set_nodes(log, TENSOR, 1);
    call(log, WORLD, 4);
    call(log, TENSOR, 4);
    connect(log, "NET/IB/0/GDRDMA");
    connect(log, "NET/IB/0/GDRDMA");
    expect_conns(&seen, 0, WORLD, false);
    expect_conns(&seen, 2, TENSOR, false);
    nccl_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_calls_nobody_knows),
        cmocka_unit_test(calls_before_lines),
        cmocka_unit_test(lines_before_calls),
        cmocka_unit_test(either_size_is_meant),
        cmocka_unit_test(a_call_by_another_name),
        cmocka_unit_test(what_no_call_tells_comes_last),
        cmocka_unit_test(neither_side_grows),
        cmocka_unit_test(without_calls_the_last_set_up_is_likely),
        cmocka_unit_test(the_first_called_is_connected_first),
        cmocka_unit_test(calls_at_one_time_have_no_order),
        cmocka_unit_test(calls_that_lag_decide_nothing),
        cmocka_unit_test(calls_tell_where_no_process_was_asked_for),
        cmocka_unit_test(connections_wait_for_calls),
        cmocka_unit_test(lines_that_wait_for_calls_keep_their_order),
        cmocka_unit_test(sends_belong_where_sends_are_called),
        cmocka_unit_test(sends_of_a_node_may_take_the_network),
        cmocka_unit_test(what_nothing_ends_is_of_sends),
        cmocka_unit_test(nodes_speak_for_themselves),
        cmocka_unit_test(channels_speak_for_themselves),
        cmocka_unit_test(rings_and_trees_speak_for_themselves),
        cmocka_unit_test(nothing_is_connected_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
