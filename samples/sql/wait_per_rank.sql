-- How long does each rank wait for later ranks? First the one that waits least:
-- it is the one the others wait for.
.headers on
.mode column
SELECT p.job, p.rank, p.node_name, sum(s.ops) AS ops,
       round(sum(s.transfer_ns) / 1e6, 3) AS transfer_ms,
       round(sum(s.wait_ns) / 1e6, 3) AS wait_ms,
       round(max(s.longest_ns) / 1e6, 3) AS longest_ms
  FROM place p
  JOIN op_sum s ON s.process = p.process
 GROUP BY p.process
 ORDER BY p.job, wait_ms IS NULL, wait_ms, p.rank;
