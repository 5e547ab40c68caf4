-- Which communicators are there: ranks, nodes, worst link, roles, calls?
.headers on
.mode column
SELECT printf('%016x', uid) AS uid, name, origin, nranks, traced, ranks, nodes,
       domains, link, evidence, roles, calls
  FROM v_comm
 ORDER BY job, calls DESC, ranks;
