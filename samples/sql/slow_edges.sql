-- Between which ranks does point-to-point traffic run, how fast, and how long is
-- it waited for?
.headers on
.mode column
SELECT s.global_rank AS from_rank, d.global_rank AS to_rank, l.name AS link,
       u.role, u.bytes, u.grouped, u.calls,
       round(u.median_ns / 1e3, 1) AS median_us,
       round(u.bytes * 1.0 / u.median_ns, 3) AS GBps,
       round(u.wait_ns / 1e6, 3) AS wait_ms
  FROM usage u
  JOIN link_class l ON l.id = u.link
  JOIN member s ON s.uid = u.uid AND s.rank = u.src
  JOIN member d ON d.uid = u.uid AND d.rank = u.dst
 ORDER BY wait_ms DESC, from_rank, to_rank, u.bytes, u.grouped;
