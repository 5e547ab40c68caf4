-- Which communicators are there: ranks, nodes, worst link, roles, calls?
.headers on
.mode column
SELECT printf('%016x', uid) AS uid, nranks AS n, traced,
       CASE WHEN length(ranks) <= 20 THEN ranks
            ELSE substr(ranks, 1, 17) || '...' END AS ranks,
       nodes, link, evidence, roles, calls
  FROM v_comm
 ORDER BY job, calls DESC, v_comm.ranks;
