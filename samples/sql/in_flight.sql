-- Which ops had not finished when their trace ended? In a hang these are what
-- each rank waits in.
.headers on
.mode column
SELECT v.rank, p.node_name, v.state, v.op, v.bytes, v.uid, v.comm_rank,
       v.peer, v.ordinal, v.step,
       round(v.enter_ns / 1e6, 3) AS entered_ms
  FROM v_op v JOIN place p ON p.process = v.process
 WHERE (v.flags & 384) <> 0
 ORDER BY v.job, v.rank, v.id;
