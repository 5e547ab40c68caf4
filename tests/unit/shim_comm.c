/* The table of communicators under concurrent use. */
#include "comm.h"
#include "record.h"
#include "shim_test.h"

#include <pthread.h>

enum { COMMS = 300, THREADS = 3 };

static _Atomic bool stop;
static ncclComm_t stable[COMMS];
static uint32_t ids[COMMS];

/* Entries that stay are found, as themselves, while others come and go. */
static void *look(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        struct comm *comm = comm_look_up(stable[i % COMMS]);
        if (!comm || comm->id != ids[i % COMMS])
            return comm ? comm : (void *)1;
    }
    return NULL;
}

static void churn(void)
{
    for (int i = 0; i < 2000; i++) {
        ncclComm_t comm[8];
        for (int j = 0; j < 8; j++)
            ncclCommInitRank(&comm[j], 2, some_id(100000 + 8 * i + j), 0);
        for (int j = 0; j < 8; j++)
            ncclCommDestroy(comm[(j + i) % 8]);
    }
}

static void test_concurrent(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < COMMS; i++) {
        ncclCommInitRank(&stable[i], 2, some_id(i), 1);
        struct comm *comm = comm_look_up(stable[i]);
        assert_non_null(comm);
        ids[i] = comm->id;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look, NULL);
    churn();
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

static void test_recycled(void **state)
{
    ncclComm_t key;
    (void)state;
    ncclCommInitRank(&key, 4, some_id(500000), 1);
    struct comm *comm = comm_find(key);
    assert_int_equal(comm->nranks, 4);
    comm_next_collective(comm);
    comm_next_p2p(comm, 3, COMM_RECEIVES);
    assert_int_equal(comm_next_collective(comm), 1);
    assert_int_equal(comm_next_p2p(comm, 3, COMM_RECEIVES), 1);
    assert_int_equal(comm_next_p2p(comm, 3, COMM_SENDS), 0);
    assert_int_equal(comm_next_p2p(comm, 4, COMM_SENDS), 0); /* no such rank */
    ncclCommDestroy(key);
    assert_null(comm_find(key));
    ncclCommInitRank(&key, 4, some_id(500001), 1);
    struct comm *again = comm_find(key);
    assert_ptr_equal(again, comm);
    assert_int_equal(comm_next_collective(again), 0);
    assert_int_equal(comm_next_p2p(again, 3, COMM_RECEIVES), 0);
    ncclCommDestroy(key);
}

static void test_unknown(void **state)
{
    (void)state;
    assert_null(comm_find(NULL));
    assert_null(comm_look_up((ncclComm_t)(uintptr_t)0x1000));
    assert_null(comm_adopt(&nccl_copies[0], NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrent),
        cmocka_unit_test(test_recycled),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, traces_set_up, traces_tear_down);
}
