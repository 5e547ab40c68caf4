-- What could not be recorded, where and why?
.headers on
.mode column
SELECT p.rank, p.node_name, l.cause, l.what, l.n,
       round(l.first_ns / 1e6, 3) AS first_ms,
       round(l.last_ns / 1e6, 3) AS last_ms
  FROM loss l JOIN place p ON p.process = l.process
 ORDER BY p.job, l.n DESC, p.rank;
