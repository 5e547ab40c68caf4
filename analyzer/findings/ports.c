/*
 * ONE_NIC_USED, NIC_DOWN, SLOW_PORT: what the ports that NCCL uses on the hosts
 * of the job look like beside each other.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/conns.h"

struct used_port {
    const struct ct_process *process; /* that uses it; its node counts */
    const struct ct_nic_row *nic;
    const char *via;
};

struct used_ports {
    const struct ct_case *c;
    int n, capacity;
    struct used_port *ports; /* each port of a node once per process */
    bool failed;
};

static bool note_port(const struct ct_conn_at *at, void *context)
{
    struct used_ports *used = context;
    struct ct_via_port port;

    if (!at->own_end || at->via.transport != CT_VIA_VERBS)
        return true;
    ct_via_port(at->teller, &at->via, &port);
    if (!port.nic)
        return true;
    for (int i = used->n - 1; i >= 0 && i > used->n - 64; i--)
        if (used->ports[i].process == at->teller &&
            used->ports[i].nic == port.nic)
            return true;
    if (used->n == used->capacity) {
        const int capacity = used->capacity * 2 + 64;
        struct used_port *ports =
            realloc(used->ports, (size_t)capacity * sizeof *ports);

        used->failed = !ports;
        if (!ports)
            return false;
        used->ports = ports;
        used->capacity = capacity;
    }
    used->ports[used->n++] =
        (struct used_port){at->teller, port.nic, at->row->via};
    return true;
}

/* The ports as one of the node's processes sees them: they are alike. */
static const struct ct_process *seer_of(const struct ct_case *c, int node)
{
    for (int i = 0; i < c->job->nprocesses; i++) {
        const struct ct_process *p = &c->trace->processes[c->job->processes[i]];

        if (p->node == node && p->nnics)
            return p;
    }
    return NULL;
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

static bool is_down(const struct ct_nic_row *nic)
{
    return nic && !ct_nic_is_verbs(nic) && *nic->state &&
           strcmp(nic->state, "ACTIVE") != 0;
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

static bool rule_down(const struct ct_case *c, const struct used_ports *used,
                      struct ct_findings *findings)
{
    struct ct_finding_row *row = NULL;
    int n = 0;

    for (int node = 0; node < c->job->nnodes; node++) {
        const struct ct_process *p = seer_of(c, node);
        bool found = false;

        for (int i = 0; p && i < used->n && !found; i++) {
            const struct ct_nic_row *nic = find_port(p, used->ports[i].nic);

            found = is_down(nic);
            if (!found || n++)
                continue;
            row = start(findings, CT_FINDING_NIC_DOWN, .9);
            if (!row)
                return false;
            snprintf(row->text, sizeof row->text,
                     "%.20s of host %.60s is %.12s (%.80s), while %.60s uses "
                     "it %.60s",
                     nic->name, c->job->node_names[node], nic->state,
                     nic->source,
                     c->job->node_names[used->ports[i].process->node],
                     used->ports[i].via);
        }
    }
    if (row && n > 1)
        snprintf(row->text + strlen(row->text),
                 sizeof row->text - strlen(row->text),
                 "; so on %d other host%s", n - 1, ct_plural(n - 1));
    if (row)
        snprintf(row->advice, sizeof row->advice,
                 "look at its cable and at ibstat there: the host has less "
                 "bandwidth than the others");
    return true;
}

/* The rate that most nodes have for that port, the higher one of two that are
 * as frequent; 0: no other node has it. */
static int64_t usual_mbps(const struct ct_case *c, int node,
                          const struct ct_nic_row *like)
{
    int64_t best = 0;
    int most = 0;

    for (int i = 0; i < c->job->nnodes; i++) {
        const struct ct_process *p = seer_of(c, i);
        const struct ct_nic_row *nic = p ? find_port(p, like) : NULL;
        int n = 0;

        if (i == node || !nic || !ct_nic_is_verbs(nic) || !like->link_layer ||
            strcmp(nic->link_layer, like->link_layer) != 0)
            continue;
        for (int k = 0; k < c->job->nnodes; k++) {
            const struct ct_process *q = seer_of(c, k);
            const struct ct_nic_row *other = q ? find_port(q, like) : NULL;

            n += other && ct_nic_is_verbs(other) && other->mbps == nic->mbps;
        }
        if (n > most || (n == most && nic->mbps > best)) {
            most = n;
            best = nic->mbps;
        }
    }
    return best;
}

static bool rule_slow(const struct ct_case *c, const struct used_ports *used,
                      struct ct_findings *findings)
{
    const struct used_port *worst = NULL;
    struct ct_finding_row *row;
    double least = 1;
    int64_t usual = 0;

    for (int i = 0; i < used->n; i++) {
        const struct used_port *port = &used->ports[i];
        const int64_t mbps = port->nic->mbps > 0
                                 ? usual_mbps(c, port->process->node, port->nic)
                                 : 0;

        if (mbps <= 0 || (double)port->nic->mbps / (double)mbps >= least)
            continue;
        least = (double)port->nic->mbps / (double)mbps;
        worst = port;
        usual = mbps;
    }
    if (!worst)
        return true;
    row = start(findings, CT_FINDING_SLOW_PORT, .9);
    if (!row)
        return false;
    snprintf(row->text, sizeof row->text,
             "%.20s of host %.60s runs at %.4g Gbit/s (%.80s), on other hosts "
             "at %.4g; rank %d sends or receives via %.60s",
             worst->nic->name, c->job->node_names[worst->process->node],
             (double)worst->nic->mbps / 1e3, worst->nic->source,
             (double)usual / 1e3, worst->process->rank, worst->via);
    snprintf(row->advice, sizeof row->advice,
             "look at its cable and port: all ranks wait for the slowest one");
    return true;
}

struct near_ports { /* of the GPUs of a node that send or receive */
    int gpus, used, near;
    const struct used_port *example;
    const struct ct_nic_row *idle; /* a near one that nobody uses */
};

static int path_rank(const char *path)
{
    return !strcmp(path, "PIX")   ? 0
           : !strcmp(path, "PXB") ? 1
           : !strcmp(path, "PHB") ? 2
                                  : 3;
}

/* As near as any port that is like nic, to one of the process's GPUs. */
static bool is_nearest(const struct ct_process *p, const struct ct_nic_row *nic,
                       const struct ct_nic_row *like)
{
    for (int i = 0; i < p->ngpu_nics; i++) {
        const struct ct_gpu_nic_row *way = &p->gpu_nics[i];
        bool best = way->nic == nic->id;

        for (int k = 0; k < p->ngpu_nics && best; k++)
            for (int n = 0; n < p->nnics && best; n++)
                best = p->gpu_nics[k].device != way->device ||
                       p->nics[n].id != p->gpu_nics[k].nic ||
                       !ct_nic_is_verbs(&p->nics[n]) ||
                       p->nics[n].mbps != like->mbps ||
                       path_rank(p->gpu_nics[k].path) >= path_rank(way->path);
        if (best)
            return true;
    }
    return false;
}

static bool is_used(const struct used_ports *used, int node,
                    const struct ct_nic_row *nic)
{
    for (int i = 0; i < used->n; i++)
        if (used->ports[i].process->node == node &&
            same_port(used->ports[i].nic, nic))
            return true;
    return false;
}

static bool is_near_to_any(const struct used_ports *used, int node,
                           const struct ct_nic_row *nic,
                           const struct ct_nic_row *like)
{
    for (int i = 0; i < used->n; i++) {
        const struct ct_process *p = used->ports[i].process;
        const struct ct_nic_row *mine =
            p->node == node ? find_port(p, nic) : NULL;

        if (mine && is_nearest(p, mine, like))
            return true;
    }
    return false;
}

static void look_at_node(const struct ct_case *c, const struct used_ports *used,
                         int node, struct near_ports *ports)
{
    const struct ct_process *p = seer_of(c, node), *last = NULL;

    *ports = (struct near_ports){0};
    for (int i = 0; i < used->n; i++)
        if (used->ports[i].process->node == node) {
            ports->example = &used->ports[i];
            ports->gpus += used->ports[i].process != last;
            last = used->ports[i].process;
        }
    for (int i = 0; p && ports->example && i < p->nnics; i++) {
        const struct ct_nic_row *nic = &p->nics[i];

        ports->used += is_used(used, node, nic);
        if (!ct_nic_is_verbs(nic) || nic->mbps != ports->example->nic->mbps ||
            strcmp(nic->link_layer, ports->example->nic->link_layer) != 0 ||
            !is_near_to_any(used, node, nic, ports->example->nic))
            continue;
        ports->near++;
        if (!is_used(used, node, nic))
            ports->idle = nic;
    }
}

/* Several GPUs of a host, to which several ports that are alike are nearest,
 * and all go through one. */
static bool rule_one(const struct ct_case *c, const struct used_ports *used,
                     struct ct_findings *findings)
{
    struct ct_finding_row *row = NULL;
    int n = 0;

    for (int node = 0; node < c->job->nnodes; node++) {
        const char *line;
        struct near_ports ports;

        look_at_node(c, used, node, &ports);
        if (ports.gpus < 2 || ports.used != 1 || ports.near < 2 ||
            !ports.idle || n++)
            continue;
        row = start(findings, CT_FINDING_ONE_NIC_USED, .8);
        if (!row)
            return false;
        line = ct_log_line(ports.example->process, NULL, "NCCL_IB_HCA");
        if (line)
            row->confidence = 1;
        snprintf(row->text, sizeof row->text,
                 "all traffic of host %.60s goes through %.20s, via %.60s, "
                 "although %d such ports are nearest to its GPUs, as %.20s "
                 "(%.60s)%s%.120s%s",
                 c->job->node_names[node], ports.example->nic->name,
                 ports.example->via, ports.near, ports.idle->name,
                 ports.idle->source, line ? "; NCCL's log: \"" : "",
                 line ? line : "", line ? "\"" : "");
        snprintf(row->advice, sizeof row->advice,
                 line ? "name all ports in NCCL_IB_HCA, or take it out"
                      : "NCCL does not say why: see which ports its log lists "
                        "after \"NET/IB : Using\"");
    }
    if (row && n > 1)
        snprintf(row->text + strlen(row->text),
                 sizeof row->text - strlen(row->text),
                 "; so on %d other host%s", n - 1, ct_plural(n - 1));
    return true;
}

bool ct_rule_ports(const struct ct_case *c, struct ct_findings *findings)
{
    struct used_ports used = {.c = c};
    bool good;

    ct_each_conn(c, note_port, &used);
    good = !used.failed && rule_one(c, &used, findings) &&
           rule_down(c, &used, findings) && rule_slow(c, &used, findings);
    free(used.ports);
    return good;
}
