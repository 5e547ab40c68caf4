/*
 * Views that join what a question needs, and the indexes that make joining
 * cheap. Views are part of what users write SQL against: add columns, do not
 * rename them.
 */
#include "commtrace/ops.h"
#include "report/jobdb_insert.h"

/* SQL wants flags.def's bits as text. */
#define TEXT_OF(x_) #x_
#define NUMBER(x_) TEXT_OF(x_)
#define IN_CALL 128
#define RUNNING 256
#define IN_FLIGHT 384
#define CUT 32768
#define KERNEL 16384
#define TOLD 2048
#define IN_CALL_BIT NUMBER(IN_CALL)
#define RUNNING_BIT NUMBER(RUNNING)
#define IN_FLIGHT_BITS NUMBER(IN_FLIGHT)
#define CUT_BIT NUMBER(CUT)
#define KERNEL_BIT NUMBER(KERNEL)
#define TOLD_BIT NUMBER(TOLD)

_Static_assert(CT_FLAG_IN_CALL == IN_CALL && CT_FLAG_RUNNING == RUNNING &&
                   CT_FLAG_CUT == CUT && CT_FLAG_KERNEL == KERNEL &&
                   CT_FLAG_TOLD == TOLD && (IN_CALL | RUNNING) == IN_FLIGHT,
               "flags.def");

static const char *const statements[] = {
    "CREATE INDEX op_match_usage ON op_match(usage)",
    "CREATE INDEX op_match_step ON op_match(step, usage)",
    "CREATE INDEX op_match_instance ON op_match(instance)",
    "CREATE INDEX op_sum_usage ON op_sum(usage, step)",
    "CREATE INDEX op_sum_choice ON op_sum(told, choice) "
    "WHERE choice IS NOT NULL",
    "CREATE INDEX step_role_role ON step_role(role, link, step)",
    "CREATE INDEX graph_run_graph ON graph_run(process, graph)",
    "CREATE INDEX op_match_graph ON op_match(process, graph) "
    "WHERE graph IS NOT NULL",
    "CREATE INDEX op_in_flight ON op(process) "
    "WHERE (flags & " IN_FLIGHT_BITS ") <> 0",
    "CREATE INDEX place_rank ON place(rank)",
    "CREATE INDEX instance_uid ON instance(uid, ordinal)",
    "CREATE INDEX instance_transfer ON instance(transfer_ns)",
    "CREATE INDEX instance_usage ON instance(usage, step)",
    "CREATE INDEX instance_step ON instance(step)",
    "CREATE INDEX usage_role ON usage(role)",
    "CREATE INDEX usage_uid ON usage(uid)",
    "CREATE INDEX member_uid ON member(uid, rank)",
    "CREATE INDEX comm_uid ON comm(uid)",
    "CREATE INDEX link_uid ON link(uid)",
    "CREATE INDEX step_process ON step(process, n)",
    "CREATE INDEX choice_class_id ON choice_class(process, id)",
    "CREATE INDEX choice_of ON choice(process, class)",
    "CREATE INDEX kernel_op ON kernel(process, op)",
    "CREATE INDEX frame_stack ON frame(process, stack, depth)",

    "CREATE VIEW v_op AS -- one row per call, everything readable; names as\n"
    "-- in a rank's file, but rank is that of the job\n"
    "SELECT p.job, p.rank, p.node, o.process, o.id, m.step, u.role,\n"
    "       k.name AS op, k.function, c.count,\n"
    "       coalesce(t.name, c.type) AS type,\n"
    "       coalesce(r.name, c.redop) AS redop,\n"
    "       CASE k.size WHEN 'ONE_SHARE' THEN c.count * t.bytes\n"
    "                   WHEN 'ALL_SHARES' THEN c.count * t.bytes * g.nranks\n"
    "                   ELSE 0 END AS bytes, -- message size S\n"
    "       c.comm, g.uid, g.name AS comm_name, g.nranks,\n"
    "       g.rank AS comm_rank, c.peer, l.name AS link, l.network,\n"
    "       u.speed AS link_speed, u.evidence,\n"
    "       o.ordinal, m.instance, o.enter_ns, o.host_ns,\n"
    "       coalesce(o.enter_ns + o.gpu_off_ns, a.enter_ns + a.gpu_off_ns)\n"
    "         AS gpu_start_ns,\n"
    "       coalesce(o.gpu_ns, a.gpu_ns) AS gpu_ns, -- of its group, if any\n"
    "       m.transfer_ns, m.wait_ns,\n"
    "       h.algorithm, h.protocol, h.channels, -- as NCCL chose\n"
    "       (SELECT r.gpu_ns FROM kernel r WHERE r.process = o.process\n"
    "           AND r.op = o.id AND r.launch IS NULL)\n"
    "         AS kernel_ns, -- by NCCL's profiler\n"
    "       CASE WHEN o.flags & " KERNEL_BIT " THEN 'kernel'\n"
    "            WHEN o.gpu_ns IS NOT NULL THEN 'event'\n"
    "            WHEN a.gpu_ns IS NOT NULL THEN 'group'\n"
    "            WHEN o.flags & " TOLD_BIT " THEN 'told'\n"
    "            ELSE 'host' END AS time_source,\n"
    "       CASE WHEN o.flags >> 16 NOT IN (0, 7) THEN 'failed'\n"
    "            WHEN o.flags & " CUT_BIT " THEN 'aborted'\n"
    "            WHEN o.flags & " IN_CALL_BIT " THEN 'in call'\n"
    "            WHEN o.flags & " RUNNING_BIT " THEN 'running'\n"
    "            ELSE 'done' END AS state,\n"
    "       CASE WHEN NOT o.flags & " TOLD_BIT " THEN o.flags >> 16 END\n"
    "         AS result, o.grp, o.flags,\n"
    "       c.stream, c.site, c.stack,\n"
    "       c.graph, CASE WHEN c.graph IS NULL THEN 1 ELSE\n"
    "         (SELECT coalesce(sum(r.runs), 0) FROM graph_run r\n"
    "           WHERE r.process = o.process AND r.graph = m.graph)\n"
    "         END AS runs -- of a graph: how often\n"
    "  FROM op o\n"
    "  JOIN op_class c ON c.process = o.process AND c.id = o.class\n"
    "  JOIN comm g ON g.process = o.process AND g.id = c.comm\n"
    "  JOIN op_kind k ON k.id = c.kind\n"
    "  LEFT JOIN data_type t ON t.id = c.type\n"
    "  LEFT JOIN red_op r ON r.id = c.redop\n"
    "  JOIN place p ON p.process = o.process\n"
    "  JOIN op_match m ON m.process = o.process AND m.op = o.id\n"
    "  LEFT JOIN usage u ON u.id = m.usage\n"
    "  LEFT JOIN link_class l ON l.id = u.link\n"
    "  LEFT JOIN launch a ON a.process = o.process AND a.id = m.launch\n"
    "  LEFT JOIN choice_class h ON h.process = m.told AND h.id = m.choice",

    "CREATE VIEW v_instance AS -- one row per communication over all ranks\n"
    "SELECT i.job, i.id AS instance, i.step, u.role, k.name AS op,\n"
    "       i.uid, i.ordinal, u.src, u.dst, i.bytes, i.runs, i.ranks,\n"
    "       l.name AS link, l.network, i.transfer_ns, i.wait_ns, i.bound,\n"
    "       i.doubt, u.grouped, i.usage, p.rank AS last_rank -- who came last\n"
    "  FROM instance i\n"
    "  LEFT JOIN usage u ON u.id = i.usage\n"
    "  LEFT JOIN place p ON p.process = i.last\n"
    "  LEFT JOIN link_class l ON l.id = u.link\n"
    "  LEFT JOIN op_kind k ON k.id = i.kind",

    "CREATE VIEW v_comm AS -- one row per communicator\n"
    "SELECT s.job, s.uid, s.name, s.origin, s.nranks, s.traced, s.nodes,\n"
    "       s.domains, s.ranks, l.name AS link, l.network, k.evidence,\n"
    "       k.speed AS link_speed, k.hops, k.nics, k.detail,\n"
    "       (SELECT group_concat(role, ' ')\n"
    "          FROM (SELECT DISTINCT role FROM usage u\n"
    "                 WHERE u.uid = s.uid AND role IS NOT NULL\n"
    "                 ORDER BY role)) AS roles,\n"
    "       (SELECT sum(calls) FROM usage u WHERE u.uid = s.uid) AS calls,\n"
    "       (SELECT max(o.uid) FROM comm c\n"
    "          JOIN comm o ON o.process = c.process AND o.id = c.parent\n"
    "         WHERE c.uid = s.uid) AS parent_uid\n"
    "  FROM (SELECT p.job, g.uid, max(g.name) AS name,\n"
    "               max(g.origin) AS origin, max(g.nranks) AS nranks,\n"
    "               count(*) AS traced, count(DISTINCT p.node) AS nodes,\n"
    "               count(DISTINCT p.domain) AS domains,\n"
    "               (SELECT group_concat(global_rank)\n"
    "                  FROM (SELECT global_rank FROM member\n"
    "                         WHERE uid = g.uid ORDER BY rank)) AS ranks\n"
    "          FROM comm g JOIN place p ON p.process = g.process\n"
    "         GROUP BY p.job, g.uid) s\n"
    "  LEFT JOIN link k ON k.uid = s.uid AND k.rank IS NULL\n"
    "  LEFT JOIN link_class l ON l.id = k.class",

    "CREATE VIEW v_op_sum AS -- ops that are alike, summed by step; names as\n"
    "-- in v_op: bytes is the size of one, total_bytes that of all\n"
    "SELECT p.job, p.rank, p.node, p.node_name, s.process, s.id, s.step,\n"
    "       t.kind AS step_kind, u.role, k.name AS op, k.function, k.class,\n"
    "       c.count, u.bytes, c.comm, u.uid, g.name AS comm_name, g.nranks,\n"
    "       g.rank AS comm_rank, c.peer, l.name AS link, l.network,\n"
    "       u.speed AS link_speed, h.algorithm, h.protocol, h.channels,\n"
    "       s.choice, c.stream, c.stack, c.graph, s.ops, s.runs,\n"
    "       s.bytes AS total_bytes, s.timed, s.transfer_ns, s.wait_ns,\n"
    "       s.longest_ns, s.last, s.others_ns, s.kernels, s.kernel_ns\n"
    "  FROM op_sum s\n"
    "  JOIN place p ON p.process = s.process\n"
    "  JOIN op_class c ON c.process = s.process AND c.id = s.class\n"
    "  JOIN comm g ON g.process = s.process AND g.id = c.comm\n"
    "  JOIN op_kind k ON k.id = c.kind\n"
    "  LEFT JOIN usage u ON u.id = s.usage\n"
    "  LEFT JOIN link_class l ON l.id = u.link\n"
    "  LEFT JOIN step t ON t.process = s.process AND t.n = s.step\n"
    "  LEFT JOIN choice_class h ON h.process = s.told AND h.id = s.choice",

    "CREATE VIEW v_step_role AS -- what a rank spends on a role in a step;\n"
    "-- what graphs ran counts in ops and bytes; in times where NCCL's\n"
    "-- profiler told them\n"
    "SELECT p.job, p.rank, s.step, t.kind AS step_kind, s.role,\n"
    "       l.name AS link, l.network, s.runs AS ops, s.bytes,\n"
    "       ifnull(s.transfer_ns, 0) / 1e6 AS transfer_ms,\n"
    "       ifnull(s.wait_ns, 0) / 1e6 AS wait_ms,\n"
    "       (ifnull(s.transfer_ns, 0) + ifnull(s.wait_ns, 0)) / 1e6\n"
    "         AS total_ms\n"
    "  FROM step_role s\n"
    "  JOIN link_class l ON l.id = s.link\n"
    "  JOIN place p ON p.process = s.process\n"
    "  LEFT JOIN step t ON t.process = s.process AND t.n = s.step",
};

void jobdb_put_views(struct jobdb *db)
{
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        jobdb_exec(db, statements[i]);
}
