-- What does each rank wait in, at the end of its trace, and how many ops queue
-- behind?
-- flags & 384: in call or running; op_in_flight is the index of just that.
.headers on
.mode column
SELECT v.rank, p.node_name, v.state, v.op, v.bytes,
       printf('%016x', v.uid) AS comm, v.comm_rank, v.peer, v.ordinal, v.step,
       first.n - 1 AS behind
  FROM (SELECT process, min(id) AS id, count(*) AS n
          FROM op
         WHERE (flags & 384) <> 0
         GROUP BY process) first
  JOIN v_op v ON v.process = first.process AND v.id = first.id
  JOIN place p ON p.process = v.process
 ORDER BY v.job, v.rank;
