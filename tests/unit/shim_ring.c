/* The ring's protocol: order, fullness, many writers, a killed owner. */
#include "ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/shim-ring-XXXXXX";

static void fill(struct ct_slot *slot, uint64_t value)
{
    slot->enter_ns = (int64_t)value;
    slot->kind = CT_SLOT_OP;
    slot->u.call.count = value * 3;
}

static void test_full(void **state)
{
    struct ring ring;
    uint64_t position = 0;
    (void)state;
    assert_int_equal(ring_open(&ring, "", "", 50), 0);
    assert_int_equal(ring.header->nslots, 64);
    for (uint64_t i = 0; i < 64; i++) {
        assert_ptr_equal(ring_reserve(&ring, &position), &ring.slots[i]);
        assert_int_equal(position, i);
    }
    assert_null(ring_reserve(&ring, &position));
    atomic_store(&ring.header->tail, 1);
    assert_ptr_equal(ring_reserve(&ring, &position), &ring.slots[0]);
    assert_int_equal(position, 64);
    assert_null(ring_reserve(&ring, &position));
    ring_close(&ring);
}

static void test_life_of_a_slot(void **state)
{
    struct ring ring;
    uint64_t position = 0;
    (void)state;
    assert_int_equal(ring_open(&ring, "", "", 64), 0);
    struct ct_slot *slot = ring_reserve(&ring, &position);
    assert_false(ct_slot_is(slot, position, CT_SLOT_OPEN));
    assert_false(ring_take(slot, position));
    ring_publish(slot, position, CT_SLOT_OPEN);
    assert_true(ct_slot_is(slot, position, CT_SLOT_OPEN));
    assert_true(ring_leave(slot, position, 5, 7));
    assert_true(ct_slot_is(slot, position, CT_SLOT_LEFT));
    assert_int_equal(slot->leave_ns, 5);
    assert_int_equal(slot->result, 7);
    assert_false(ring_take(slot, position));

    slot = ring_reserve(&ring, &position);
    ring_publish(slot, position, CT_SLOT_OPEN);
    assert_true(ring_take(slot, position));
    assert_false(ring_leave(slot, position, 5, 7));
    assert_int_equal(slot->leave_ns, 0);
    ring_close(&ring);
}

enum { WRITERS = 4, PER_WRITER = 50000 };

struct shared {
    struct ring ring;
    _Atomic uint64_t refused;
    _Atomic uint64_t taken; /* slots that their writer found taken */
};

static void *write_slots(void *arg)
{
    struct shared *shared = arg;
    for (uint64_t i = 0; i < PER_WRITER;) {
        uint64_t position = 0;
        struct ct_slot *slot = ring_reserve(&shared->ring, &position);
        if (!slot) {
            atomic_fetch_add(&shared->refused, 1);
            usleep(50);
            continue;
        }
        fill(slot, position);
        ring_publish(slot, position, CT_SLOT_OPEN);
        if (!ring_leave(slot, position, (int64_t)position + 1, 0))
            atomic_fetch_add(&shared->taken, 1);
        i++;
    }
    return NULL;
}

/* Every position arrives once, in order, whole; a slot that was taken while it
 * was open is reported to its writer. */
static void test_many_writers(void **state)
{
    static struct shared shared;
    pthread_t threads[WRITERS];
    uint64_t next = 0, taken = 0;
    (void)state;
    assert_int_equal(ring_open(&shared.ring, "", "", 256), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_slots, &shared);
    while (next < (uint64_t)WRITERS * PER_WRITER) {
        struct ct_slot *slot = &shared.ring.slots[next & shared.ring.mask];
        if (ct_slot_is(slot, next, CT_SLOT_LEFT))
            assert_int_equal(slot->leave_ns, next + 1);
        else if (next % 7 == 0 && ring_take(slot, next))
            taken++;
        else
            continue;
        assert_int_equal(slot->enter_ns, next);
        assert_int_equal(slot->u.call.count, next * 3);
        next++;
        atomic_store_explicit(&shared.ring.header->tail, next,
                              memory_order_release);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(taken, atomic_load(&shared.taken));
    ring_close(&shared.ring);
}

static void write_until_killed(const char *path)
{
    struct ring ring;
    if (ring_open(&ring, path, "", 4096) != 0 || !*ring.path)
        _exit(1);
    uint64_t position = 0;
    for (;;) {
        struct ct_slot *slot = ring_reserve(&ring, &position);
        if (!slot) { /* a writer that is a thousand behind */
            atomic_store(&ring.header->tail, position - 1000);
            continue;
        }
        fill(slot, position);
        ring_publish(slot, position, CT_SLOT_OPEN);
        ring_leave(slot, position, (int64_t)position + 1, 0);
    }
}

/* All that a killed process had published is there, in one piece. */
static void test_killed_owner(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof(path), "%s/killed", folder);
    pid_t pid = fork();
    if (pid == 0)
        write_until_killed(path);
    usleep(100000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int fd = open(path, O_RDONLY);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct ct_ring_header *header =
        mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    assert_memory_equal(header->magic, CT_RING_MAGIC, 8);
    struct ct_slot *slots = (void *)((char *)header + CT_RING_HEADER_BYTES);
    uint64_t head = atomic_load(&header->head);
    assert_true(head > 1000);
    for (uint64_t p = atomic_load(&header->tail); p < head; p++) {
        struct ct_slot *slot = &slots[p % header->nslots];
        bool left = ct_slot_is(slot, p, CT_SLOT_LEFT);
        if (!left && p == head - 1)
            break; /* killed in the middle of it */
        assert_true(left);
        assert_int_equal(slot->enter_ns, p);
        assert_int_equal(slot->leave_ns, p + 1);
    }
    munmap(header, (size_t)st.st_size);
    close(fd);
    unlink(path);
}

static void test_files(void **state)
{
    struct ring ring, second;
    char path[64];
    (void)state;
    snprintf(path, sizeof(path), "%s/ring", folder);
    struct stat st;
    mode_t mask = umask(0777); /* else nobody could rescue it */
    assert_int_equal(ring_open(&ring, path, "", 64), 0);
    umask(mask);
    assert_string_equal(ring.path, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    /* Never somebody else's file: anonymous memory then. */
    assert_int_equal(ring_open(&second, path, "", 64), 0);
    assert_string_equal(second.path, "");
    ring_close(&second);
    ring_remove(&ring);
    assert_int_not_equal(access(path, F_OK), 0);
    fill(&ring.slots[3], 1); /* a late hook */
    assert_true(ring_fit(folder, 100) == 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_life_of_a_slot),
        cmocka_unit_test(test_many_writers),
        cmocka_unit_test(test_killed_owner),
        cmocka_unit_test(test_files),
    };
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(folder) != 0 || failed;
}
