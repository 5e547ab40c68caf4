-- How much time does a rank spend on each role in each step: transferring, and
-- waiting for later ranks?
.headers on
.mode column
SELECT step, role, link,
       round(avg(transfer_ms), 3) AS transfer_ms,
       round(avg(wait_ms), 3) AS wait_ms,
       round(max(total_ms), 3) AS worst_rank_ms
  FROM v_step_role
 WHERE step IS NOT NULL
 GROUP BY job, step, role, link
 ORDER BY job, step, worst_rank_ms DESC;
