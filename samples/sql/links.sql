-- Over what does each communicator run, how fast is that, who says so, and in
-- which words (their beginning; all of them in link.detail)? Worst first; rank
-- and peer where they are two ranks' own.
.headers on
.mode column
SELECT printf('%016x', k.uid) AS uid, k.rank, k.peer, l.name AS link,
       k.speed, l.network, k.hops, k.nics, k.evidence,
       CASE WHEN length(k.detail) > 44 THEN substr(k.detail, 1, 41) || '...'
            ELSE k.detail END AS detail
  FROM link k
  JOIN link_class l ON l.id = k.class
 ORDER BY k.peer IS NOT NULL, k.class DESC, k.speed, k.uid, k.rank, k.peer
 LIMIT 40;
