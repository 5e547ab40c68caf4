/*
 * A small soak: threads make and destroy communicators, others send ops on
 * one that they share, and children are made meanwhile. What is in the trace
 * and what is counted as lost is what was issued.
 */
#include "shim_test.h"

#include <link.h>
#include <pthread.h>
#include <stdbool.h>

enum { MAKERS = 3, SENDERS = 2, CHILDREN = 40 };
enum { ROUNDS = 500, OPS = 10, SENDS = 100000 };

static ncclComm_t shared;

__attribute__((noinline)) static void send_ops(ncclComm_t comm, int n)
{
    static float data[4];
    for (int i = 0; i < n; i++)
        if (ncclAllReduce(data, data, 4, 7, 0, comm, NULL) != ncclSuccess)
            abort();
}

/* Not inlined: a call from a new place is looked up, and the thread sanitizer's
 * dlopen() does not survive a fork beside another one. */
__attribute__((noinline)) static ncclComm_t make(int id)
{
    ncclComm_t comm;
    if (ncclCommInitRank(&comm, 2, some_id(id), 0) != ncclSuccess)
        abort();
    return comm;
}

__attribute__((noinline)) static void use_and_destroy(ncclComm_t comm)
{
    send_ops(comm, OPS / 2);
    ncclGroupStart();
    send_ops(comm, OPS / 2);
    ncclGroupEnd();
    ncclCommDestroy(comm);
}

static void *make_many(void *first_id)
{
    for (int i = 0; i < ROUNDS; i++) {
        ncclComm_t part, whole = make((int)(intptr_t)first_id + i);
        if (ncclCommSplit(whole, 0, 0, &part, NULL) != ncclSuccess)
            abort();
        use_and_destroy(part);
        use_and_destroy(whole);
    }
    return NULL;
}

static void *send_many(void *unused)
{
    send_ops(shared, SENDS);
    return unused;
}

/* Exceptions and dlopen() need the loader's list, which our threads had in hand
 * (the thread sanitizer has it in hand as well, and does not let go). */
#ifdef __SANITIZE_THREAD__
static bool may_list_objects(void)
{
    return true;
}
#else
static int count(struct dl_phdr_info *info, size_t size, void *n)
{
    (void)info, (void)size;
    ++*(int *)n;
    return 0;
}

static bool may_list_objects(void)
{
    int n = 0;
    return dl_iterate_phdr(count, &n) == 0 && n > 0;
}
#endif

/* The child has everything of the others as it was at that moment. */
static void make_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        send_ops(shared, 10);
        use_and_destroy(make(7));
        _exit(!may_list_objects());
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        abort();
    usleep(1000);
}

static void soak(void)
{
    pthread_t threads[MAKERS + SENDERS];
    shared = make(1);
    use_and_destroy(make(2));
    for (intptr_t i = 0; i < MAKERS + SENDERS; i++)
        if (pthread_create(&threads[i], NULL,
                           i < MAKERS ? make_many : send_many,
                           (void *)(1000 * (i + 1))) != 0)
            abort();
    for (int i = 0; i < CHILDREN; i++)
        make_child();
    for (int i = 0; i < MAKERS + SENDERS; i++)
        pthread_join(threads[i], NULL);
}

static void test_soak(void **state)
{
    struct scenario s;
    char wanted[64];
    (void)state;
    setenv("COMMTRACE_QUIET", "1", 1);
    scenario_run(&s, soak);
    snprintf(wanted, sizeof(wanted), "%d",
             (MAKERS * ROUNDS * 2 + 1) * OPS + SENDERS * SENDS);
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM op) + (SELECT"
                  " coalesce(sum(n), 0) FROM loss WHERE what = 'op')",
                  wanted);
    /* They are told beside the ring, so none of them is lost. */
    snprintf(wanted, sizeof(wanted), "%d|%d", MAKERS * ROUNDS * 2 + 2,
             MAKERS * ROUNDS * 2 + 1);
    assert_answer(&s, "SELECT count(*), count(end_ns) FROM comm", wanted);
    assert_answer(&s, "SELECT count(DISTINCT uid) - count(*) FROM comm", "0");
    assert_answer(&s, "PRAGMA integrity_check", "ok");
    scenario_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
