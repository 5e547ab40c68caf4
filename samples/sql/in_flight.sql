-- Which ops were never seen to finish? In a hang the first of each rank is what
-- it waits in; the rest queue behind.
-- flags & 384: in call or running; op_in_flight is the index of just that.
.headers on
.mode column
SELECT v.rank, p.node_name, v.state, v.op, v.bytes,
       printf('%016x', v.uid) AS comm, v.comm_rank, v.peer, v.ordinal, v.step,
       round(v.enter_ns / 1e6, 3) AS entered_ms
  FROM v_op v JOIN place p ON p.process = v.process
 WHERE (v.flags & 384) <> 0
 ORDER BY v.job, v.rank, v.id;
