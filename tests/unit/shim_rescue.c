/* Rings of dead processes: moved beside their databases, whatever is there. */
#include "rescue.h"

#include "process.h"
#include "ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/shim-rescue-XXXXXX";

static void place(char *path, size_t size, const char *what)
{
    snprintf(path, size, "%s/%s", folder, what);
}

static bool is_there(const char *what)
{
    char path[200];
    place(path, sizeof(path), what);
    return access(path, F_OK) == 0;
}

/* The ring of a process that died with it. */
static void leave_ring(char *path, size_t size, const char *db, uint64_t tail)
{
    snprintf(path, size, PROCESS_SHM "/commtrace.%u.%d.rescue",
             (unsigned)geteuid(), (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct ring ring;
        if (ring_open(&ring, path, "", 64) != 0 || !*ring.path)
            _exit(1);
        atomic_store(&ring.header->tail, tail);
        ring.header->pid = (uint32_t)getpid();
        ring.header->start_ticks = process_start_ticks(getpid());
        process_boot_id(ring.header->boot_id, sizeof(ring.header->boot_id));
        place(ring.header->db_path, sizeof(ring.header->db_path), db);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Unless a traced process of somebody else on this host is just doing it. */
static void rescue_until_gone(const char *path)
{
    for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++) {
        rescue_rings("");
        usleep(1000);
    }
    assert_int_equal(access(path, F_OK), -1);
}

static void test_folder_never_made(void **state)
{
    char path[200];
    (void)state;
    leave_ring(path, sizeof(path), "early/deep/a.db", 0);
    rescue_until_gone(path);
    assert_true(is_there("early/deep/a.db.ring"));
}

static void test_folder_deleted(void **state)
{
    char path[200];
    (void)state;
    leave_ring(path, sizeof(path), "deleted/a.db", 1);
    rescue_until_gone(path);
    assert_false(is_there("deleted"));
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void name_log(char *path, size_t size, pid_t pid, uint64_t ticks)
{
    snprintf(path, size, PROCESS_SHM "/commtrace.%u.%d.%llx.nccl0",
             (unsigned)geteuid(), (int)pid, (unsigned long long)ticks);
    fclose(fopen(path, "w"));
}

/* Of processes that died before their NCCL had opened it. */
static void test_logs(void **state)
{
    char dead[100], again[100], ours[100];
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, &status, 0), child);
    uint64_t ticks = process_start_ticks(getpid());
    name_log(dead, sizeof(dead), child, ticks);
    name_log(again, sizeof(again), getpid(), ticks + 1); /* its pid came back */
    name_log(ours, sizeof(ours), getpid(), ticks);
    rescue_until_gone(dead);
    rescue_until_gone(again);
    assert_int_not_equal(access(dead, F_OK), 0);
    assert_int_not_equal(access(again, F_OK), 0);
    assert_int_equal(access(ours, F_OK), 0);
    unlink(ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder_never_made),
        cmocka_unit_test(test_folder_deleted),
        cmocka_unit_test(test_logs),
    };
    if (access(PROCESS_SHM, W_OK) != 0) {
        puts("SKIPPED: " PROCESS_SHM " cannot be written");
        return 77;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
