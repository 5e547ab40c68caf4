#include "links_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* files_sql without gcc's check of the format, which knows no %Q. */
static void put(sqlite3 *db, const char *format, ...)
{
    va_list arguments;
    char *sql;

    va_start(arguments, format);
    sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    files_sql(db, "%s", sql);
    sqlite3_free(sql);
}

sqlite3 *links_begin(const char *folder, const struct links_job *job, int rank)
{
    sqlite3 *db =
        files_begin_reducing(folder, rank, job->ranks, links_host(job, rank));

    files_op(db, 1, 1, 0, 5000, 700);
    return db;
}

void links_gpu_link(sqlite3 *db, int rank, int peer, const char *kind,
                    int version, const char *path)
{
    char pci[32];

    if (!*kind)
        return;
    snprintf(pci, sizeof(pci), "0000:%02d:00.0", peer);
    put(db,
        "INSERT INTO gpu_link (device, peer_pci, kind, links, version,"
        " path, source) VALUES (%d, %Q, %Q, 18, nullif(%d, 0), %Q,"
        " 'nvml')",
        rank % 4, peer < 0 ? NULL : pci, kind, version, path);
}

void links_nic(sqlite3 *db, int number, const char *what)
{
    char kind[16], layer[32], state[16];
    int port, mbps;

    assert_int_equal(
        sscanf(what, "%15s %d %31s %15s %d", kind, &port, layer, state, &mbps),
        5);
    put(db,
        "INSERT INTO nic (id, name, kind, port, link_layer, state, mbps,"
        " source) VALUES (%d, 'mlx5_%d', %Q, nullif(%d, 0),"
        " nullif(%Q, '-'), %Q, %d, '/sys/class/%s/mlx5_%d')",
        number + 1, number, kind, port, layer, state, mbps,
        strcmp(kind, "net") != 0 ? "infiniband" : "net", number);
}

void links_gpu_nic(sqlite3 *db, int rank, int number, const char *path)
{
    put(db, "INSERT INTO gpu_nic VALUES (%d, %d, %Q)", rank % 4, number + 1,
        path);
}

void links_message(sqlite3 *db, const char *kind, const char *text)
{
    put(db, "INSERT INTO nccl_message VALUES (NULL, %Q, 1, %Q)", kind, text);
}

void links_graph(sqlite3 *db, int pattern, const char *intra_type)
{
    put(db, "INSERT INTO nccl_graph VALUES (1, %d, 2, 20.0, 20.0, %Q, %Q)",
        pattern, intra_type, intra_type);
}

void links_conn(sqlite3 *db, int src, int dst, const char *end, const char *via)
{
    const bool net = !strncmp(via, "NET", 3);
    int channel;

    for (channel = 0; channel < 2; channel++)
        if (net || !strcmp(end, "send"))
            put(db, "INSERT INTO conn VALUES (1, %d, 0, %d, %d, %Q, %Q)",
                channel, src, dst, net ? end : NULL, via);
}

void links_ring_across(sqlite3 *db, const struct links_job *job, int rank,
                       const char *inside, const char *across)
{
    const int next = (rank + 1) % job->ranks;
    const int prev = (rank + job->ranks - 1) % job->ranks;
    const int host = links_host(job, rank);

    put(db, "INSERT INTO ring VALUES (1, 0, %d, %d), (1, 1, %d, %d)", prev,
        next, prev, next);
    links_conn(db, rank, next, "send",
               links_host(job, next) == host ? inside : across);
    links_conn(db, prev, rank, "receive",
               links_host(job, prev) == host ? inside : across);
}

void links_ring(sqlite3 *db, const struct links_job *job, int rank,
                const char *via)
{
    links_ring_across(db, job, rank, via, via);
}
