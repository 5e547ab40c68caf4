-- How much time does tensor parallelism spend on network links in each step,
-- worst step first?
.headers on
.mode column
SELECT step,
       round(max(total_ms), 3) AS worst_rank_ms,
       round(avg(total_ms), 3) AS mean_ms,
       round(avg(transfer_ms), 3) AS transfer_ms,
       round(avg(wait_ms), 3) AS wait_ms
  FROM v_step_role
 WHERE role = 'TP' AND network = 1 AND step IS NOT NULL
 GROUP BY job, step
 ORDER BY worst_rank_ms DESC, step;
