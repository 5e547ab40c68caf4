/* The small tables: process, device, gpu_link, comm, loss. */
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"
#include "trace/stages.h"

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

void ct_load_process(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "process",
                 "SELECT uuid, host, host_id, boot_id, exe, cmdline, run_id,"
                 " job_id, rank_source, rank, world_size, local_rank, restart,"
                 " pid, t0_ns, t0_real_ns, end_ns FROM process LIMIT 1");
    while (ct_rows_next(&rows)) {
        p->uuid = or_empty(ct_rows_text(&rows, 0));
        p->host = or_empty(ct_rows_text(&rows, 1));
        p->host_id = or_empty(ct_rows_text(&rows, 2));
        p->boot_id = or_empty(ct_rows_text(&rows, 3));
        p->exe = or_empty(ct_rows_text(&rows, 4));
        p->cmdline = or_empty(ct_rows_text(&rows, 5));
        p->run_id = ct_rows_text(&rows, 6);
        p->job_id = ct_rows_text(&rows, 7);
        p->rank_source = ct_rows_text(&rows, 8);
        p->rank = (int)ct_rows_opt(&rows, 9, "rank", 0, INT32_MAX, CT_NONE);
        p->world_size =
            (int)ct_rows_opt(&rows, 10, "world_size", 0, INT32_MAX, CT_NONE);
        p->local_rank =
            (int)ct_rows_opt(&rows, 11, "local_rank", 0, INT32_MAX, CT_NONE);
        p->restart = (int)ct_rows_opt(&rows, 12, "restart", 0, INT32_MAX, 0);
        p->pid = (int)ct_rows_opt(&rows, 13, "pid", 0, INT32_MAX, 0);
        p->t0_ns = ct_rows_opt(&rows, 14, "t0_ns", 0, (int64_t)1 << 61, 0);
        p->t0_real_ns = ct_rows_opt(&rows, 15, "t0_real_ns", 0, INT64_MAX, 0);
        p->end_ns =
            ct_rows_opt(&rows, 16, "end_ns", 0, CT_MAX_TIME_NS, CT_NO_TIME);
    }
    if (!loader->failed && !p->uuid)
        ct_load_fail(loader, "holds no process: nothing was recorded");
}

void ct_load_devices(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_device_row *device;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "device",
                 "SELECT id, uuid, pci, name, cluster, source, clique"
                 " FROM device");
    while (ct_rows_next(&rows)) {
        p->devices =
            ct_grow(p->devices, &capacity, p->ndevices, sizeof(*p->devices));
        device = &p->devices[p->ndevices++];
        device->id = (int)ct_rows_int(&rows, 0, "id", 0, INT32_MAX);
        device->uuid = ct_rows_text(&rows, 1);
        device->pci = ct_rows_text(&rows, 2);
        device->name = ct_rows_text(&rows, 3);
        device->cluster = ct_rows_text(&rows, 4);
        device->source = ct_rows_text(&rows, 5);
        device->clique =
            (int)ct_rows_opt(&rows, 6, "clique", INT32_MIN, INT32_MAX, 0);
    }
}

void ct_load_gpu_links(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_gpu_link_row *link;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "gpu_link",
                 loader->version < 3
                     ? "SELECT device, peer_pci, kind, links, version, NULL"
                       " FROM gpu_link"
                     : "SELECT device, peer_pci, kind, links, version, path"
                       " FROM gpu_link");
    while (ct_rows_next(&rows)) {
        p->gpu_links = ct_grow(p->gpu_links, &capacity, p->ngpu_links,
                               sizeof(*p->gpu_links));
        link = &p->gpu_links[p->ngpu_links++];
        link->device = (int)ct_rows_int(&rows, 0, "device", 0, INT32_MAX);
        link->peer_pci = ct_rows_text(&rows, 1);
        link->kind = or_empty(ct_rows_text(&rows, 2));
        link->links = (int)ct_rows_opt(&rows, 3, "links", 0, INT32_MAX, 0);
        link->version = (int)ct_rows_opt(&rows, 4, "version", 0, INT32_MAX, 0);
        link->path = ct_rows_text(&rows, 5);
    }
}

struct ct_comm_row *ct_load_add_comm(struct ct_loader *loader, int64_t id)
{
    struct ct_process *p = loader->process;
    struct ct_comm_row *comm;

    p->comms =
        ct_grow(p->comms, &loader->comm_capacity, p->ncomms, sizeof(*p->comms));
    comm = &p->comms[p->ncomms++];
    *comm = (struct ct_comm_row){.id = (int)id,
                                 .parent = CT_NONE,
                                 .device = CT_NONE,
                                 .library = CT_NONE,
                                 .comm = CT_NONE,
                                 .end_ns = CT_NO_TIME,
                                 .aborted_ns = CT_NO_TIME};
    ct_ids_add(&loader->comm_ids, id);
    return comm;
}

void ct_load_check_ranks(struct ct_loader *loader,
                         const struct ct_comm_row *comm)
{
    loader->ranks_sum += comm->nranks;
    if (comm->nranks < 1 || comm->nranks > CT_MAX_RANKS || comm->rank < 0 ||
        comm->rank >= comm->nranks)
        ct_load_fail(loader, "comm %d: rank %d of %d", comm->id, comm->rank,
                     comm->nranks);
    else if (loader->ranks_sum > CT_MAX_RANKS_SUM)
        ct_load_fail(loader, "comm %d: too many ranks in all", comm->id);
}

/* Parents by id, once all are known. */
static void resolve_parents(struct ct_loader *loader, const int64_t *parents)
{
    struct ct_process *p = loader->process;
    int i;

    for (i = 0; parents && i < p->ncomms; i++)
        if (parents[i])
            p->comms[i].parent = ct_ids_find(&loader->comm_ids, parents[i]);
}

void ct_load_comms(struct ct_loader *loader)
{
    struct ct_comm_row *comm;
    struct ct_rows rows;
    int64_t *parents = NULL;
    int capacity = 0;

    ct_rows_open(&rows, loader, "comm",
                 "SELECT id, uid, origin, parent, color, child, name, nranks,"
                 " rank, device, enter_ns, ready_ns, end_ns, library"
                 " FROM comm"
                 " ORDER BY id");
    while (ct_rows_next(&rows)) {
        parents = ct_grow(parents, &capacity, loader->process->ncomms,
                          sizeof(*parents));
        comm =
            ct_load_add_comm(loader, ct_rows_int(&rows, 0, "id", 0, INT32_MAX));
        comm->uid =
            (uint64_t)ct_rows_int(&rows, 1, "uid", INT64_MIN, INT64_MAX);
        comm->origin = or_empty(ct_rows_text(&rows, 2));
        parents[loader->process->ncomms - 1] =
            ct_rows_opt(&rows, 3, "parent", 0, INT32_MAX, 0);
        comm->color =
            (int)ct_rows_opt(&rows, 4, "color", INT32_MIN, INT32_MAX, CT_NONE);
        comm->child = (int)ct_rows_opt(&rows, 5, "child", 0, INT32_MAX, 0);
        comm->name = ct_rows_text(&rows, 6);
        comm->nranks = (int)ct_rows_int(&rows, 7, "nranks", 1, CT_MAX_RANKS);
        comm->rank = (int)ct_rows_int(&rows, 8, "rank", 0, CT_MAX_RANKS);
        comm->device =
            (int)ct_rows_opt(&rows, 9, "device", INT32_MIN, INT32_MAX, CT_NONE);
        comm->enter_ns = ct_rows_opt(&rows, 10, "enter_ns", -CT_MAX_TIME_NS,
                                     CT_MAX_TIME_NS, 0);
        comm->ready_ns = ct_rows_opt(&rows, 11, "ready_ns", -CT_MAX_TIME_NS,
                                     CT_MAX_TIME_NS, CT_NO_TIME);
        comm->end_ns = ct_rows_opt(&rows, 12, "end_ns", -CT_MAX_TIME_NS,
                                   CT_MAX_TIME_NS, CT_NO_TIME);
        comm->library =
            (int)ct_rows_opt(&rows, 13, "library", 0, INT32_MAX, CT_NONE);
        ct_load_check_ranks(loader, comm);
    }
    resolve_parents(loader, parents);
    free(parents);
}

void ct_load_losses(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_loss_row *loss;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "loss",
                 "SELECT cause, what, comm, n, first_ns, last_ns FROM loss");
    while (ct_rows_next(&rows)) {
        p->losses =
            ct_grow(p->losses, &capacity, p->nlosses, sizeof(*p->losses));
        loss = &p->losses[p->nlosses++];
        loss->cause = or_empty(ct_rows_text(&rows, 0));
        loss->what = or_empty(ct_rows_text(&rows, 1));
        loss->comm = CT_NONE;
        if (!ct_rows_null(&rows, 2))
            loss->comm = ct_ids_find(
                &loader->comm_ids, ct_rows_int(&rows, 2, "comm", 0, INT32_MAX));
        loss->n = ct_rows_opt(&rows, 3, "n", 0, (int64_t)1 << 40, 0);
        loss->first_ns = ct_rows_opt(&rows, 4, "first_ns", -CT_MAX_TIME_NS,
                                     CT_MAX_TIME_NS, CT_NO_TIME);
        loss->last_ns = ct_rows_opt(&rows, 5, "last_ns", -CT_MAX_TIME_NS,
                                    CT_MAX_TIME_NS, CT_NO_TIME);
        if (!strcmp(loss->what, "op"))
            p->lost = ct_add_time(p->lost, loss->n);
    }
}
