/* Bytes of a closed trace per operation. */
#include "bench.h"
#include "trace_ops.h"

#include <sys/stat.h>

enum { PORTIONS = 100, OPS = 2048 };

int main(void)
{
    static struct ops ops;
    char dir[] = "/tmp/bench-bytes-XXXXXX";
    struct stat st;
    if (!mkdtemp(dir) || ops_open(&ops, dir, 8192) != 0)
        return 2;
    for (int i = 0; i < PORTIONS; i++) {
        for (int j = 0; j < OPS; j++)
            ops_issue(&ops);
        trace_flush(&ops.trace, true);
    }
    trace_close(&ops.trace);
    if (stat(ops.process.db_path, &st) != 0)
        return 2;
    bench_remove(dir);
    double bytes = (double)st.st_size / ((double)PORTIONS * OPS);
    /* The floor is the bound itself: 48 bytes of file per op. */
    return bench_report("bytes_per_op", "bytes", bytes, 48, AT_MOST, 1);
}
