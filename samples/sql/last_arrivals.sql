-- Which rank comes last to collectives, and how long do the others wait for it?
.headers on
.mode column
SELECT job, rank, count(*) AS times_last,
       round(sum(waited) / 1e6, 3) AS others_waited_ms
  FROM (SELECT p.job, p.rank,
               row_number() OVER (PARTITION BY m.instance
                                  ORDER BY m.wait_ns, p.rank) AS place,
               max(m.wait_ns) OVER (PARTITION BY m.instance) AS waited
          FROM usage u
          JOIN op_kind k ON k.id = u.kind AND k.class = 'COLL'
          JOIN op_match m ON m.usage = u.id
          JOIN place p ON p.process = m.process
         WHERE m.wait_ns IS NOT NULL)
 WHERE place = 1 AND waited > 0
 GROUP BY job, rank
 ORDER BY job, others_waited_ms DESC, rank;
