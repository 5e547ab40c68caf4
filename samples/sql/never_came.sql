-- To which collectives, that others wait in, did some ranks never come?
-- flags & 384: in call or running; op_in_flight is the index of just that.
.headers on
.mode column
SELECT v.job, v.op, printf('%016x', v.uid) AS comm, v.ordinal,
       group_concat(DISTINCT v.rank) AS waiting,
       (SELECT group_concat(m.global_rank)
          FROM member m
         WHERE m.uid = v.uid AND
               m.process NOT IN (SELECT process FROM op_match
                                  WHERE instance = v.instance)) AS never_came
  FROM v_op v
 WHERE (v.flags & 384) <> 0 AND v.peer IS NULL
 GROUP BY +v.instance -- without the + all of its index is read
HAVING never_came IS NOT NULL
 ORDER BY v.job, v.instance;
