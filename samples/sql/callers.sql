-- Where in its files is NCCL called from, and what do those calls cost?
.headers on
.mode column
WITH c AS MATERIALIZED (
  SELECT s.process, s.class, sum(s.runs) AS runs, sum(s.bytes) AS bytes,
         sum(s.transfer_ns) AS transfer_ns, sum(s.wait_ns) AS wait_ns
    FROM place p CROSS JOIN op_sum s ON s.process = p.process
   GROUP BY s.process, s.class)
SELECT m.path, printf('0x%x', f.offset) AS offset, sum(c.runs) AS calls,
       count(DISTINCT p.rank) AS ranks, group_concat(DISTINCT k.name) AS ops,
       sum(c.bytes) AS bytes,
       round(sum(c.transfer_ns) / 1e6, 3) AS transfer_ms,
       round(sum(c.wait_ns) / 1e6, 3) AS wait_ms
  FROM c
  JOIN place p ON p.process = c.process
  JOIN op_class o ON o.process = c.process AND o.id = c.class
  JOIN op_kind k ON k.id = o.kind
  JOIN frame f ON f.process = o.process AND f.stack = o.stack AND f.depth = 0
  LEFT JOIN module m ON m.process = f.process AND m.id = f.module
 GROUP BY m.path, f.offset
 ORDER BY transfer_ms + wait_ms DESC, calls DESC, m.path, f.offset;
