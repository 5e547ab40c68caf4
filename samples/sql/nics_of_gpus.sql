-- Which network ports are nearest to each rank's GPU, over which way, and what
-- is not known of the machine?
.headers on
.mode column
WITH way AS (
    SELECT g.process, d.pci AS gpu, d.numa, g.nic, g.path,
           instr('PIX PXB PHB SYS', g.path) AS distance
      FROM gpu_nic g
      JOIN device d ON d.process = g.process AND d.id = g.device)
SELECT p.rank, p.node_name, w.gpu, w.numa, w.path,
       group_concat(n.name || coalesce(':' || n.port, ''), ' ') AS ports,
       max(n.mbps) / 1000 AS Gbps
  FROM way w
  JOIN nic n ON n.process = w.process AND n.id = w.nic
  JOIN place p ON p.process = w.process
 WHERE w.distance = (SELECT min(distance) FROM way o
                      WHERE o.process = w.process AND o.gpu = w.gpu)
 GROUP BY w.process, w.gpu
 ORDER BY p.job, p.rank, w.gpu;
SELECT a.what, a.why, count(*) AS processes
  FROM absence a
 GROUP BY a.what, a.why
 ORDER BY a.what, a.why;
