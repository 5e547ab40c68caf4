-- How long does each rank wait for later ranks? The rank that waits least is the
-- one the others wait for.
.headers on
.mode column
SELECT p.job, p.rank, p.node_name, count(*) AS ops,
       round(sum(m.transfer_ns) / 1e6, 3) AS transfer_ms,
       round(sum(m.wait_ns) / 1e6, 3) AS wait_ms,
       round(max(m.wait_ns) / 1e6, 3) AS longest_ms
  FROM op_match m
  JOIN place p ON p.process = m.process
 GROUP BY m.process
 ORDER BY p.job, wait_ms DESC, p.rank;
