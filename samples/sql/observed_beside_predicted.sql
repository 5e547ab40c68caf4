-- What did each operation cost beside what T = alpha + S / bandwidth and
-- NCCL itself predict?
.headers on
.mode column
SELECT l.name AS link, k.name AS op, p.nranks, p.bytes, p.calls,
       round(p.observed_us, 1) AS observed_us, round(p.fit_us, 1) AS fit_us,
       round(p.nccl_us, 1) AS nccl_us, round(p.prior_us, 1) AS prior_us,
       round(p.observed_us / coalesce(p.fit_us, p.nccl_us, p.prior_us), 2)
         AS ratio,
       round(p.busbw_GBps, 3) AS busbw_GBps
  FROM prediction p
  JOIN link_class l ON l.id = p.link
  JOIN op_kind k ON k.id = p.kind
 ORDER BY p.job, p.calls * p.observed_us DESC, link, op, p.nranks, p.bytes;
