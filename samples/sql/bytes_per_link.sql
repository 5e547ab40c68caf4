-- How many bytes went over each class of link, and how fast? Bytes are message
-- sizes, counted once per communication.
.headers on
.mode column
SELECT l.name AS link, l.network, u.role, k.name AS op,
       sum(u.calls) AS calls, sum(u.calls * u.bytes) AS bytes,
       round(sum(u.transfer_ns) / 1e6, 3) AS transfer_ms,
       round(sum(u.timed * u.bytes) * 1.0 / sum(u.transfer_ns), 3)
         AS algbw_GBps
  FROM usage u
  JOIN link_class l ON l.id = u.link
  JOIN op_kind k ON k.id = u.kind
 GROUP BY u.link, u.role, k.name
 ORDER BY bytes DESC, op;
