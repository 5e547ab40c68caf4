#include "views.h"

#include <sqlite3.h>
#include <stddef.h>

#include "commtrace/ops.h"

/* What NCCL's word for a transport means as a link class, by what this process
 * alone knows: of P2P its GPU's NVSwitches, else the way that NCCL's graph says
 * it takes; of NCCL's InfiniBand transport the kind in NCCL's list of ports
 * ("[1]mlx5_1:1/RoCE"), else that of all active ports. */
static const char view_conn[] =
    "CREATE VIEW v_conn AS SELECT\n"
    "  n.comm, n.channel, n.connector, n.src, n.dst, n.direction, n.via,\n"
    "  k.id AS class, k.name AS link, k.network\n"
    "FROM (SELECT c.*, m.device, CAST(substr(c.via,\n"
    "          instr(substr(c.via, 5), '/') + 5) AS INTEGER) AS port\n"
    "        FROM conn c JOIN comm m ON m.id = c.comm) n\n"
    "  JOIN link_class k ON k.name = CASE\n"
    "    WHEN n.via LIKE 'P2P/MNNVL%' THEN 'multi-node NVLink'\n"
    "    WHEN n.via LIKE 'P2P/indirect%' THEN 'NVLink'\n"
    "    WHEN n.via LIKE 'P2P/%' AND EXISTS (SELECT 1 FROM gpu_link g\n"
    "      WHERE g.device = n.device AND g.kind = 'nvswitch')\n"
    "      THEN 'NVSwitch'\n"
    "    WHEN n.via LIKE 'P2P/%' THEN coalesce((SELECT CASE\n"
    "        WHEN g.intra_type IN ('NVL', 'NVB') THEN 'NVLink'\n"
    "        WHEN g.intra_type = 'C2C' THEN 'NVLink-C2C'\n"
    "        WHEN g.intra_type IN ('PIX', 'PXB') THEN 'PCIe'\n"
    "        WHEN g.intra_type IN ('PHB', 'SYS') THEN 'PCIe through host' END\n"
    "      FROM nccl_graph g WHERE g.comm = n.comm\n"
    "      ORDER BY g.pattern <> 4 LIMIT 1), 'inside a node')\n"
    "    WHEN n.via LIKE 'SHM%' OR n.via LIKE 'direct shared memory%'\n"
    "      THEN 'shared memory'\n"
    "    WHEN n.via LIKE 'NET/Socket/%' THEN 'TCP'\n"
    "    WHEN n.via LIKE 'NET/IB%' OR n.via LIKE 'COLLNET/%' THEN coalesce(\n"
    "      (SELECT CASE\n"
    "          WHEN substr(e, instr(e, '/') + 1) LIKE 'RoCE%' THEN 'RoCE'\n"
    "          WHEN substr(e, instr(e, '/') + 1) LIKE 'IB%' THEN 'InfiniBand'\n"
    "          END\n"
    "        FROM (SELECT substr(l.text,\n"
    "                instr(l.text, '[' || n.port || ']')) AS e\n"
    "                FROM nccl_message l WHERE l.text LIKE 'NET/IB : Using%'\n"
    "                 AND instr(l.text, '[' || n.port || ']') LIMIT 1)),\n"
    "      (SELECT CASE WHEN min(i.link_layer) <> max(i.link_layer) THEN NULL\n"
    "          WHEN min(i.link_layer) = 'Ethernet' THEN 'RoCE'\n"
    "          WHEN min(i.link_layer) = 'InfiniBand' THEN 'InfiniBand' END\n"
    "        FROM nic i WHERE i.kind = 'rdma' AND i.state = 'ACTIVE'),\n"
    "      'network')\n"
    "    WHEN n.via LIKE 'NET/%' THEN 'network plugin' END";

/* Per communicator the worst hop of its rings and trees (peer NULL; NVLink
 * SHARP shows none inside a node), and per peer what its sends and receives go
 * over. Classes are ordered from best to worst. */
static const char view_link[] =
    "CREATE VIEW v_link AS SELECT\n"
    "  comm, NULL AS peer, max(class) AS class, 'conn' AS evidence\n"
    "  FROM (SELECT comm, class FROM v_conn WHERE connector IS NOT 1\n"
    "    UNION ALL SELECT n.comm, k.id FROM nccl_comm n\n"
    "      JOIN link_class k ON k.name = 'NVSwitch'\n"
    "     WHERE n.nvls_channels > 0 AND n.nodes = 1) GROUP BY comm\n"
    "UNION ALL SELECT c.comm, CASE m.rank WHEN c.src THEN c.dst\n"
    "    ELSE c.src END, coalesce(max(CASE c.connector WHEN 1 THEN c.class\n"
    "    END), max(c.class)), 'conn'\n"
    "  FROM v_conn c JOIN comm m ON m.id = c.comm\n"
    "  WHERE m.rank IN (c.src, c.dst) GROUP BY 1, 2";

_Static_assert(CT_FLAG_GROUP_TIME == 2 && CT_FLAG_ZERO == 64 &&
                   CT_FLAG_IN_CALL == 128 && CT_FLAG_RUNNING == 256 &&
                   CT_FLAG_SIMULATED == 1024 && CT_FLAG_TOLD == 2048,
               "the flags that views name by number");

/* What NCCL chose for each op: by the order within communicator and kind (of
 * sends and recvs: and peer), where the bytes agree, which are S or one rank's
 * share. The profiler's word before the log's. The casts give the numbers an
 * affinity, without which SQLite joins by none of them. */
static const char view_choice[] =
    "CREATE VIEW v_choice AS SELECT\n"
    "  n.id AS op, h.algorithm, h.protocol, h.channels, h.source\n"
    "FROM (SELECT x.n, g.comm, b.base,\n"
    "    CAST(coalesce(g.peer, -1) AS INTEGER) AS peer,\n"
    "    g.bytes, g.algorithm, g.protocol, g.channels, g.source\n"
    "  FROM choice_class g JOIN op_kind b ON b.id = g.kind\n"
    "    JOIN choice x ON x.class = g.id\n"
    "  WHERE x.launch IS NULL AND g.source = (SELECT max(source)\n"
    "    FROM choice_class WHERE comm = g.comm AND kind = g.kind)) h\n"
    "CROSS JOIN (SELECT o.id, c.comm, k.base, m.nranks,\n"
    "    c.count * t.bytes AS share,\n"
    "    CAST(CASE WHEN k.class IN ('SEND', 'RECV') THEN c.peer\n"
    "      ELSE -1 END AS INTEGER) AS peer,\n"
    "    CAST(row_number() OVER (PARTITION BY c.comm, k.base,\n"
    "      CASE WHEN k.class IN ('SEND', 'RECV') THEN c.peer END\n"
    "      ORDER BY o.id) - 1 AS INTEGER) AS n\n"
    "  FROM op o JOIN op_class c ON c.id = o.class\n"
    "    JOIN op_kind k ON k.id = c.kind\n"
    "    JOIN comm m ON m.id = c.comm\n"
    "    JOIN data_type t ON t.id = c.type\n"
    "  WHERE NOT o.flags & 64 AND m.nranks > 1\n"
    "    AND o.flags >> 16 IN (0, 7)) n\n"
    "  ON n.n = h.n AND n.comm = h.comm AND n.base = h.base\n"
    "    AND n.peer = h.peer\n"
    "    AND h.bytes IN (n.share, n.share * n.nranks)";

/* Everything of an op that a person wants to read, in one place. The times of
 * a grouped op are those of what its bracket launched on its communicator and
 * stream. */
static const char view_op[] =
    "CREATE VIEW v_op AS SELECT\n"
    "  o.id, o.class, c.comm, m.name AS comm_name, m.uid, m.nranks, m.rank,\n"
    "  k.name AS op, k.function, k.class AS op_class,\n"
    "  w.name AS link, w.network,\n"
    "  coalesce(t.name, c.type) AS type, coalesce(r.name, c.redop) AS redop,\n"
    "  c.count, c.peer, o.ordinal, o.grp, c.stream, c.site, c.graph,\n"
    "  c.stack AS stack,\n"
    "  CASE k.size WHEN 'ONE_SHARE' THEN c.count * t.bytes\n"
    "    WHEN 'ALL_SHARES' THEN c.count * t.bytes * m.nranks\n"
    "    ELSE 0 END AS bytes,\n"
    "  o.enter_ns, p.t0_real_ns + o.enter_ns AS enter_unix_ns, o.host_ns,\n"
    "  CASE WHEN o.flags & 2 THEN l.enter_ns + l.gpu_off_ns\n"
    "    ELSE o.enter_ns + o.gpu_off_ns END AS gpu_start_ns,\n"
    "  CASE WHEN o.flags & 2 THEN l.gpu_ns ELSE o.gpu_ns END AS gpu_ns,\n"
    "  CASE WHEN o.flags & 2 AND l.gpu_ns IS NOT NULL THEN 'group'\n"
    "    WHEN o.gpu_ns IS NOT NULL THEN 'event'\n"
    "    WHEN o.flags & 2048 THEN 'told'\n"
    "    ELSE 'host' END AS time_source,\n"
    "  h.algorithm, h.protocol, h.channels,\n"
    "  CASE WHEN o.flags >> 16 NOT IN (0, 7) THEN 'failed'\n"
    "    WHEN l.flags >> 16 NOT IN (0, 7) THEN 'failed'\n"
    "    WHEN l.flags & 1024 THEN 'simulated'\n"
    "    WHEN o.flags & 128 THEN 'in call'\n"
    "    WHEN o.flags & 256 THEN 'running'\n"
    "    WHEN o.flags & 2 AND l.flags & 384 THEN 'running'\n"
    "    ELSE 'done' END AS state,\n"
    "  CASE WHEN NOT o.flags & 2048 THEN o.flags >> 16 END AS result,\n"
    "  (SELECT group_concat(f.name, ' ') FROM flag f\n"
    "    WHERE o.flags & f.bit) AS flags\n"
    "FROM op o JOIN op_class c ON c.id = o.class\n"
    "  LEFT JOIN comm m ON m.id = c.comm\n"
    "  LEFT JOIN op_kind k ON k.id = c.kind\n"
    "  LEFT JOIN data_type t ON t.id = c.type\n"
    "  LEFT JOIN red_op r ON r.id = c.redop\n"
    "  LEFT JOIN launch l ON l.grp = o.grp AND l.comm = c.comm\n"
    "    AND l.stream = c.stream\n"
    "  LEFT JOIN v_link y ON y.comm = c.comm AND y.peer IS CASE\n"
    "    WHEN k.class IN ('SEND', 'RECV') THEN c.peer END\n"
    "  LEFT JOIN link_class w ON w.id = y.class\n"
    "  LEFT JOIN v_choice h ON h.op = o.id\n"
    "  CROSS JOIN process p";

static const char view_comm[] =
    "CREATE VIEW v_comm AS SELECT\n"
    "  m.id, m.uid, m.name, m.origin, m.nranks, m.rank, m.parent, m.color,\n"
    "  m.child, m.device, d.name AS gpu, d.pci,\n"
    "  m.enter_ns, m.ready_ns - m.enter_ns AS init_ns, m.end_ns,\n"
    "  (SELECT count(*) FROM op o JOIN op_class c ON c.id = o.class\n"
    "    WHERE c.comm = m.id) AS ops,\n"
    "  (SELECT uid FROM comm o WHERE o.id = m.parent) AS parent_uid\n"
    "FROM comm m LEFT JOIN device d ON d.id = m.device";

int views_create(sqlite3 *db)
{
    static const char *const views[] = {view_conn, view_link, view_choice,
                                        view_op, view_comm};
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < sizeof views / sizeof *views; i++)
        rc = sqlite3_exec(db, views[i], NULL, NULL, NULL);
    return rc;
}
