-- Which message sizes does each role use, and what do they reach? One line per
-- power of two.
.headers on
.mode column
WITH RECURSIVE power(low) AS
  (SELECT 1 UNION ALL SELECT low * 2 FROM power WHERE low < 1 << 50)
SELECT u.role, k.name AS op, power.low AS bytes_from,
       sum(u.calls) AS calls,
       round(sum(u.transfer_ns) / sum(u.timed) / 1e3, 1) AS mean_us,
       round(sum(u.timed * u.bytes) * 1.0 / sum(u.transfer_ns), 3)
         AS algbw_GBps
  FROM usage u
  JOIN op_kind k ON k.id = u.kind
  JOIN power ON u.bytes >= power.low AND u.bytes < power.low * 2
 GROUP BY u.role, k.name, power.low
 ORDER BY u.role, k.name, power.low;
