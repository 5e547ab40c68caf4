/*
 * ONE_NIC_USED, NIC_DOWN, SLOW_PORT: what the ports that NCCL uses on the hosts
 * of the job look like beside each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/conns.h"
#include "trace/intern.h"

#define RECENT 64 /* ports of a process are met together */
#define RATES 16  /* that a port has on different hosts; more do not count */

struct used_port {
    const struct ct_process *process; /* that uses it; its node counts */
    const struct ct_nic_row *nic;
    const char *via;
    int number; /* in the order of the walk */
    int kind;   /* index of its kind, once they are sorted out */
    bool first; /* of this port on its node */
};

struct port_kind { /* ports of one name on all hosts */
    const struct used_port *first;
    int64_t usual_mbps; /* CT_NONE: not looked for yet */
};

struct node_ports { /* a node's part of them, and its ports as one sees them */
    const struct ct_process *seer; /* NULL: nobody saw any */
    const struct used_port *ports;
    int n;
};

struct used_ports {
    const struct ct_case *c;
    int n, capacity;
    struct used_port *ports; /* each port of a node once per process */
    struct ct_intern known;
    struct node_ports *nodes;
    struct port_kind *kinds; /* in the order of the ports */
    int nkinds;
    bool failed;
};

struct port_key { /* no padding */
    int node, port;
    char name[56];
};

static bool is_first(struct used_ports *used, const struct ct_process *p,
                     const struct ct_nic_row *nic)
{
    struct port_key key = {p->node, nic->port, ""};
    const int known = used->known.n;

    memcpy(key.name, nic->name, strnlen(nic->name, sizeof key.name));
    return ct_intern_add(&used->known, &key, sizeof key) == known;
}

static bool make_room(struct used_ports *used)
{
    const int capacity = used->capacity * 2 + 64;
    struct used_port *ports;

    if (used->n < used->capacity)
        return true;
    ports = realloc(used->ports, (size_t)capacity * sizeof *ports);
    if (!ports)
        return false;
    used->ports = ports;
    used->capacity = capacity;
    return true;
}

static bool note_port(const struct ct_conn_at *at, void *context)
{
    struct used_ports *used = context;
    struct ct_via_port port;

    if (!at->own_end || at->via.transport != CT_VIA_VERBS)
        return true;
    ct_via_port(at->teller, &at->via, &port);
    if (!port.nic)
        return true;
    for (int i = used->n - 1; i >= 0 && i > used->n - RECENT; i--)
        if (used->ports[i].process == at->teller &&
            used->ports[i].nic == port.nic)
            return true;
    used->failed = !make_room(used);
    if (used->failed)
        return false;
    used->ports[used->n] = (struct used_port){
        .process = at->teller,
        .nic = port.nic,
        .via = at->row->via,
        .number = used->n,
        .first = is_first(used, at->teller, port.nic),
    };
    used->n++;
    return true;
}

static int by_node(const void *left, const void *right)
{
    const struct used_port *a = left, *b = right;

    if (a->process->node != b->process->node)
        return a->process->node < b->process->node ? -1 : 1;
    return a->number - b->number;
}

struct kind_key { /* no padding */
    int port;
    char name[56], link_layer[16];
};

/* What is asked of all hosts about a port is asked once for its kind. */
static bool find_kinds(struct used_ports *used)
{
    struct ct_intern known = {0};

    used->kinds = calloc((size_t)used->n + 1, sizeof *used->kinds);
    for (int i = 0; used->kinds && i < used->n; i++) {
        struct used_port *port = &used->ports[i];
        const char *layer = port->nic->link_layer;
        struct kind_key key = {port->nic->port, "", ""};

        memcpy(key.name, port->nic->name,
               strnlen(port->nic->name, sizeof key.name));
        if (layer)
            memcpy(key.link_layer, layer,
                   strnlen(layer, sizeof key.link_layer));
        port->kind = ct_intern_add(&known, &key, sizeof key);
        if (port->kind == used->nkinds)
            used->kinds[used->nkinds++] = (struct port_kind){port, CT_NONE};
    }
    ct_intern_release(&known);
    return used->kinds != NULL;
}

/* The ports of a node are alike for its processes, so one tells of them. */
static bool sort_out(struct used_ports *used)
{
    const struct ct_job *job = used->c->job;

    used->nodes = calloc((size_t)job->nnodes + 1, sizeof *used->nodes);
    if (!used->nodes)
        return false;
    for (int i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p =
            &used->c->trace->processes[job->processes[i]];

        if (p->nnics && !used->nodes[p->node].seer)
            used->nodes[p->node].seer = p;
    }
    if (used->n)
        qsort(used->ports, (size_t)used->n, sizeof *used->ports, by_node);
    for (int i = used->n - 1; i >= 0; i--) {
        struct node_ports *node = &used->nodes[used->ports[i].process->node];

        node->ports = &used->ports[i];
        node->n++;
    }
    return find_kinds(used);
}

static bool same_port(const struct ct_nic_row *a, const struct ct_nic_row *b)
{
    return a->rdma == b->rdma && a->port == b->port &&
           !strcmp(a->name, b->name);
}

static const struct ct_nic_row *find_port(const struct ct_process *p,
                                          const struct ct_nic_row *like)
{
    for (int i = 0; i < p->nnics; i++)
        if (same_port(&p->nics[i], like))
            return &p->nics[i];
    return NULL;
}

static struct ct_finding_row *start(struct ct_findings *findings,
                                    enum ct_finding id, double confidence)
{
    struct ct_finding_row *row = ct_finding_add(findings, id);

    if (row) {
        row->groups = 1;
        row->confidence = confidence;
    }
    return row;
}

static void tell_others(struct ct_finding_row *row, int n)
{
    const size_t used = strlen(row->text);

    if (n > 0)
        snprintf(row->text + used, sizeof row->text - used,
                 "; so on %d other host%s", n, ct_plural(n));
}

static bool is_down(const struct ct_nic_row *nic)
{
    return nic && *nic->state && strcmp(nic->state, "ACTIVE") != 0;
}

/* A port that is down there and used elsewhere; NULL: none. */
static const struct used_port *missed_on(const struct used_ports *used,
                                         const struct ct_process *p)
{
    for (int i = 0; p && i < used->nkinds; i++)
        if (is_down(find_port(p, used->kinds[i].first->nic)))
            return used->kinds[i].first;
    return NULL;
}

static bool rule_down(const struct used_ports *used,
                      struct ct_findings *findings)
{
    const struct ct_job *job = used->c->job;
    struct ct_finding_row *row = NULL;
    int n = 0;

    for (int node = 0; node < job->nnodes; node++) {
        const struct ct_process *p = used->nodes[node].seer;
        const struct used_port *port = missed_on(used, p);
        const struct ct_nic_row *nic;

        if (!port || n++)
            continue;
        nic = find_port(p, port->nic);
        row = start(findings, CT_FINDING_NIC_DOWN, .9);
        if (!row)
            return false;
        snprintf(row->text, sizeof row->text,
                 "%.20s of host %.60s is %.12s (%.80s), while %.60s uses it "
                 "via %.60s",
                 nic->name, job->node_names[node], nic->state, nic->source,
                 job->node_names[port->process->node], port->via);
        snprintf(row->advice, sizeof row->advice,
                 "look at its cable and at ibstat there: the host has less "
                 "bandwidth than the others");
    }
    if (row)
        tell_others(row, n - 1);
    return true;
}

struct rates {
    int n;
    struct {
        int64_t mbps;
        int nodes;
    } at[RATES];
};

static void count_rate(struct rates *rates, int64_t mbps)
{
    int i = 0;

    while (i < rates->n && rates->at[i].mbps != mbps)
        i++;
    if (i == RATES)
        return;
    if (i == rates->n)
        rates->at[rates->n++].mbps = mbps;
    rates->at[i].nodes++;
}

/* The rate that most nodes have for that port, the higher one of two that are
 * as frequent. */
static int64_t find_usual_mbps(const struct used_ports *used,
                               const struct ct_nic_row *like)
{
    struct rates rates = {0};
    int64_t best = 0;
    int most = 0;

    for (int node = 0; node < used->c->job->nnodes; node++) {
        const struct ct_process *p = used->nodes[node].seer;
        const struct ct_nic_row *nic = p ? find_port(p, like) : NULL;

        if (nic && ct_nic_is_verbs(nic) && like->link_layer &&
            !strcmp(nic->link_layer, like->link_layer))
            count_rate(&rates, nic->mbps);
    }
    for (int i = 0; i < rates.n; i++)
        if (rates.at[i].nodes > most ||
            (rates.at[i].nodes == most && rates.at[i].mbps > best)) {
            most = rates.at[i].nodes;
            best = rates.at[i].mbps;
        }
    return best;
}

static int64_t usual_mbps(const struct used_ports *used,
                          const struct used_port *port)
{
    struct port_kind *kind = &used->kinds[port->kind];

    if (kind->usual_mbps == CT_NONE)
        kind->usual_mbps = find_usual_mbps(used, port->nic);
    return kind->usual_mbps;
}

static bool rule_slow(const struct used_ports *used,
                      struct ct_findings *findings)
{
    const struct used_port *worst = NULL;
    struct ct_finding_row *row;
    double least = 1;
    int64_t usual = 0;

    for (int i = 0; i < used->n; i++) {
        const struct used_port *port = &used->ports[i];
        const double mbps = (double)port->nic->mbps;
        const int64_t others =
            port->first && mbps > 0 ? usual_mbps(used, port) : 0;

        if (others <= 0 || mbps / (double)others >= least)
            continue;
        least = mbps / (double)others;
        worst = port;
        usual = others;
    }
    if (!worst)
        return true;
    row = start(findings, CT_FINDING_SLOW_PORT, .9);
    if (!row)
        return false;
    snprintf(row->who, sizeof row->who, "rank %d", worst->process->rank);
    snprintf(row->text, sizeof row->text,
             "%.20s of host %.60s runs at %s Gbit/s (%.80s), on other hosts "
             "at %s; rank %d sends or receives via %.60s",
             worst->nic->name, used->c->job->node_names[worst->process->node],
             CT_NUM((double)worst->nic->mbps / 1e3, 4), worst->nic->source,
             CT_NUM((double)usual / 1e3, 4), worst->process->rank, worst->via);
    snprintf(row->advice, sizeof row->advice,
             "look at its cable and port: all ranks wait for the slowest one");
    return true;
}

/* As near as any port that is like nic, to one of the process's GPUs. */
static bool is_nearest(const struct ct_process *p, const struct ct_nic_row *nic,
                       const struct ct_nic_row *like)
{
    for (int i = 0; i < p->ngpu_nics; i++) {
        const struct ct_gpu_nic_row *way = &p->gpu_nics[i];
        const int apart = ct_path_distance(way->path);
        bool best = way->nic == nic->id;

        for (int k = 0; k < p->ngpu_nics && best; k++)
            for (int n = 0; n < p->nnics && best; n++)
                best = p->gpu_nics[k].device != way->device ||
                       p->nics[n].id != p->gpu_nics[k].nic ||
                       !ct_nic_is_verbs(&p->nics[n]) ||
                       p->nics[n].mbps != like->mbps ||
                       (unsigned)ct_path_distance(p->gpu_nics[k].path) >=
                           (unsigned)apart;
        if (best)
            return true;
    }
    return false;
}

static bool is_near_to_any(const struct node_ports *node,
                           const struct ct_nic_row *nic,
                           const struct ct_nic_row *like)
{
    for (int i = 0; i < node->n; i++) {
        const struct ct_process *p = node->ports[i].process;
        const struct ct_nic_row *mine = find_port(p, nic);

        if (mine && is_nearest(p, mine, like))
            return true;
    }
    return false;
}

/* The only port that several processes of the node use; NULL: there are more,
 * or one process uses it. */
static const struct used_port *only_port(const struct node_ports *node)
{
    const struct ct_process *last = NULL;
    int ports = 0, processes = 0;

    for (int i = 0; i < node->n; i++) {
        ports += node->ports[i].first;
        processes += node->ports[i].process != last;
        last = node->ports[i].process;
    }
    return ports == 1 && processes > 1 ? &node->ports[0] : NULL;
}

/* Ports that are like the one in use and nearest to a GPU, and one of them that
 * is idle. */
static int count_near(const struct node_ports *node,
                      const struct used_port *used,
                      const struct ct_nic_row **idle_p)
{
    int n = 0;

    *idle_p = NULL;
    for (int i = 0; i < node->seer->nnics; i++) {
        const struct ct_nic_row *nic = &node->seer->nics[i];

        if (!ct_nic_is_verbs(nic) || nic->mbps != used->nic->mbps ||
            !used->nic->link_layer ||
            strcmp(nic->link_layer, used->nic->link_layer) != 0 ||
            !is_near_to_any(node, nic, used->nic))
            continue;
        n++;
        if (!same_port(nic, used->nic))
            *idle_p = nic;
    }
    return n;
}

static bool tell_one(const char *host, const struct used_port *port, int near,
                     const struct ct_nic_row *idle,
                     struct ct_findings *findings)
{
    const char *line = ct_log_line(port->process, "NCCL_IB_HCA");
    struct ct_finding_row *row =
        start(findings, CT_FINDING_ONE_NIC_USED, line ? 1 : .8);

    if (!row)
        return false;
    snprintf(row->text, sizeof row->text,
             "all traffic of host %.60s goes through %.20s, via %.60s, "
             "although %d such ports are nearest to its GPUs, as %.20s "
             "(%.60s)%s%.120s%s",
             host, port->nic->name, port->via, near, idle->name, idle->source,
             line ? "; NCCL's log: \"" : "", line ? line : "",
             line ? "\"" : "");
    snprintf(row->advice, sizeof row->advice, "%s",
             line ? "name all ports in NCCL_IB_HCA, or take it out"
                  : "NCCL does not say why: see which ports its log lists "
                    "after \"NET/IB : Using\"");
    return true;
}

/* Several GPUs of a host, to which several ports that are alike are nearest,
 * and all go through one. */
static bool rule_one(const struct used_ports *used,
                     struct ct_findings *findings)
{
    const int at = findings->n;
    int n = 0;

    for (int node = 0; node < used->c->job->nnodes; node++) {
        const struct node_ports *ports = &used->nodes[node];
        const struct used_port *only = only_port(ports);
        const struct ct_nic_row *idle = NULL;
        const int near = only ? count_near(ports, only, &idle) : 0;

        if (near < 2 || !idle || n++)
            continue;
        if (!tell_one(used->c->job->node_names[node], only, near, idle,
                      findings))
            return false;
    }
    if (n)
        tell_others(&findings->rows[at], n - 1);
    return true;
}

bool ct_rule_ports(const struct ct_case *c, struct ct_findings *findings)
{
    struct used_ports used = {.c = c};
    bool good;

    ct_each_conn(c, note_port, &used);
    good = !used.failed && sort_out(&used) && rule_one(&used, findings) &&
           rule_down(&used, findings) && rule_slow(&used, findings);
    ct_intern_release(&used.known);
    free(used.kinds);
    free(used.nodes);
    free(used.ports);
    return good;
}
