-- Where in its files is NCCL called from, and what do those calls cost?
.headers on
.mode column
SELECT m.path, printf('0x%x', f.offset) AS offset, sum(o.runs) AS calls,
       count(DISTINCT o.rank) AS ranks, group_concat(DISTINCT o.op) AS ops,
       sum(o.runs * o.bytes) AS bytes,
       round(sum(o.transfer_ns) / 1e6, 3) AS transfer_ms,
       round(sum(o.wait_ns) / 1e6, 3) AS wait_ms
  FROM v_op o
  JOIN frame f ON f.process = o.process AND f.stack = o.stack AND f.depth = 0
  LEFT JOIN module m ON m.process = f.process AND m.id = f.module
 GROUP BY m.path, f.offset
 ORDER BY transfer_ms + wait_ms DESC, calls DESC, m.path, f.offset;
