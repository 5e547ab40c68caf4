-- Which ten communications took longest to transfer, waiting left out?
.headers on
.mode column
SELECT i.step, i.role, i.op, i.bytes, i.link,
       round(i.transfer_ns / 1e3, 1) AS transfer_us,
       round(i.wait_ns / 1e3, 1) AS wait_us,
       (SELECT group_concat(p.rank)
          FROM op_match m JOIN place p ON p.process = m.process
         WHERE m.instance = i.instance) AS ranks
  FROM (SELECT id FROM instance ORDER BY transfer_ns DESC, id LIMIT 10) top
  JOIN v_instance i ON i.instance = top.id
 ORDER BY i.transfer_ns DESC, i.instance;
