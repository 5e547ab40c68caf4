-- How far the clocks of hosts are apart, and how well that is known: error_us is
-- how far the common time may be off. Clocks with another `common` are not tied:
-- no times are compared between them.
.headers on
.mode column
SELECT DISTINCT c.job, c.clock, p.node_name AS host, c.processes, c.common,
       c.tied_by, c.ops, round(c.offset_ns / 1e9, 6) AS ahead_s,
       round(c.drift_ppm, 3) AS drift_ppm,
       round(c.residual_ns / 1e3, 1) AS residual_us,
       round(c.error_ns / 1e3, 1) AS error_us, c.checked AS messages, c.contradicted
  FROM host_clock c JOIN place p ON p.job = c.job AND p.clock = c.clock
 ORDER BY c.job, c.clock;
