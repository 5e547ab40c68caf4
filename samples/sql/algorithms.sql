-- Which algorithm and protocol did NCCL choose for each operation and size, and
-- what did its kernel take? (COMMTRACE_NCCL_LOG=tuning or COMMTRACE_PROFILER)
.headers on
.mode column
SELECT op, nranks, link, bytes, algorithm, protocol, channels,
       sum(runs) AS calls,
       round(sum(transfer_ns) / sum(timed) / 1e3, 1) AS transfer_us,
       round(sum(kernel_ns) / sum(kernels) / 1e3, 1) AS kernel_us
  FROM v_op_sum
 WHERE choice IS NOT NULL
 GROUP BY job, op, nranks, link, bytes, algorithm, protocol, channels
 ORDER BY job, op, nranks, bytes, algorithm, protocol;
