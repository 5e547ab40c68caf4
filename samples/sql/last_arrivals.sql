-- Which rank comes last to collectives, and how long do the others wait for it?
.headers on
.mode column
SELECT p.job, p.rank, sum(s.last) AS times_last,
       round(sum(s.others_ns) / 1e6, 3) AS others_waited_ms
  FROM place p
  JOIN op_sum s ON s.process = p.process
 WHERE s.last > 0
 GROUP BY p.process
 ORDER BY p.job, others_waited_ms DESC, p.rank;
