-- Which communicator was made of which, and by what: split, shrink, grow?
.headers on
.mode column
WITH RECURSIVE c AS MATERIALIZED (SELECT * FROM v_comm),
tree(uid, depth, path) AS (
  SELECT uid, 0, printf('%016x', uid)
    FROM c WHERE parent_uid IS NULL
   UNION ALL
  SELECT c.uid, t.depth + 1, t.path || printf('%016x', c.uid)
    FROM c JOIN tree t ON c.parent_uid = t.uid
   WHERE t.depth < 64
)
SELECT substr('                    ', 1, 2 * depth) || printf('%016x', c.uid)
         AS communicator, c.origin, c.name, c.nranks, c.ranks, c.calls
  FROM tree t JOIN c ON c.uid = t.uid
 ORDER BY c.job, t.path;
