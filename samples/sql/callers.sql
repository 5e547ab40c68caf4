-- Where in its files is NCCL called from, and what do those calls cost?
.headers on
.mode column
SELECT m.path, printf('0x%x', f.offset) AS offset, sum(s.runs) AS calls,
       count(DISTINCT s.rank) AS ranks, group_concat(DISTINCT s.op) AS ops,
       sum(s.total_bytes) AS bytes,
       round(sum(s.transfer_ns) / 1e6, 3) AS transfer_ms,
       round(sum(s.wait_ns) / 1e6, 3) AS wait_ms
  FROM v_op_sum s
  JOIN frame f ON f.process = s.process AND f.stack = s.stack AND f.depth = 0
  LEFT JOIN module m ON m.process = f.process AND m.id = f.module
 GROUP BY m.path, f.offset
 ORDER BY transfer_ms + wait_ms DESC, calls DESC, m.path, f.offset;
