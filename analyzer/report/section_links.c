/*
 * What communicators run over, and how that is known: those that are alike in
 * one line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections.h"
#include "trace/links.h"

#define LINKS_SHOWN 12
#define EXAMPLE_SIZE 44

struct link_line {
    char link_text[40], groups[32], example[EXAMPLE_SIZE];
    const char *link, *evidence, *detail;
    int64_t speed;
    int ncomms, nranks, nodes, domains, hops, nics;
    bool network;
};

static const struct out_column columns[] = {
    OUT_COL(struct link_line, link_text, "link", OUT_BUFFER, 0, OUT_TEXT_ONLY),
    OUT_COL(struct link_line, link, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct link_line, speed, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct link_line, network, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct link_line, groups, "groups", OUT_BUFFER, 0, OUT_TEXT_ONLY),
    OUT_COL(struct link_line, ncomms, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct link_line, nranks, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct link_line, nodes, "nodes", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct link_line, domains, "domains", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct link_line, hops, "hops", OUT_INT, 0, OUT_OPTIONAL),
    OUT_COL(struct link_line, nics, "nics", OUT_INT, 0, OUT_OPTIONAL),
    OUT_COL(struct link_line, evidence, "evidence", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct link_line, example, "as", OUT_BUFFER, 0, OUT_TEXT_ONLY),
    OUT_COL(struct link_line, detail, "", OUT_TEXT, 0, OUT_DATA),
};

static const struct out_table table =
    OUT_TABLE_OF(struct link_line, columns, LINKS_SHOWN);

/* Worst first. */
static int compare(const void *left, const void *right, void *jobs)
{
    const struct ct_job *job = jobs;
    const int x = *(const int *)left, y = *(const int *)right;
    const struct ct_comm *a = &job->comms[x], *b = &job->comms[y];
    int order;

    if (a->link != b->link)
        return a->link > b->link ? -1 : 1;
    if (a->speed != b->speed)
        return a->speed < b->speed ? -1 : 1;
    order = strcmp(a->evidence, b->evidence);
    if (order)
        return order;
    if (a->nranks != b->nranks)
        return a->nranks > b->nranks ? -1 : 1;
    if (a->nnodes != b->nnodes)
        return a->nnodes > b->nnodes ? -1 : 1;
    if (a->ndomains != b->ndomains)
        return a->ndomains > b->ndomains ? -1 : 1;
    if (a->hops != b->hops)
        return a->hops > b->hops ? -1 : 1;
    return (a->nics > b->nics) - (a->nics < b->nics);
}

/* Ties by number, so that the same input gives the same output. */
static int in_order(const void *left, const void *right, void *job)
{
    const int order = compare(left, right, job);

    return order ? order : *(const int *)left - *(const int *)right;
}

/* JSON has the whole. */
static void shorten(char example[EXAMPLE_SIZE], const char *detail)
{
    if (strlen(detail) < EXAMPLE_SIZE)
        snprintf(example, EXAMPLE_SIZE, "%s", detail);
    else
        snprintf(example, EXAMPLE_SIZE, "%.*s...", EXAMPLE_SIZE - 4, detail);
}

static void put_line(struct out *out, const struct ct_comm *c, int n)
{
    struct link_line line = {.link = ct_link_names[c->link],
                             .evidence = c->evidence,
                             .detail = c->detail,
                             .speed = c->speed,
                             .ncomms = n,
                             .nranks = c->nranks,
                             .nodes = c->nnodes,
                             .domains = c->ndomains,
                             .hops = c->hops,
                             .nics = c->nics,
                             .network = ct_link_is_network(c->link)};

    ct_link_text(c->link, c->speed, line.link_text, sizeof line.link_text);
    snprintf(line.groups, sizeof line.groups, "%d x %d", n, c->nranks);
    shorten(line.example, c->detail ? c->detail : "");
    out_row(out, &line);
}

void section_links(struct out *out, const struct view *view)
{
    const struct ct_job *job = view->job;
    int *order = calloc((size_t)job->ncomms + 1, sizeof *order), n;

    out_title(out, "LINKS",
              "worst hop of each communicator; hops of its ring that are "
              "network; ports per node");
    out_table(out, "links", &table);
    for (int i = 0; order && i < job->ncomms; i++)
        order[i] = i;
    if (order)
        qsort_r(order, (size_t)job->ncomms, sizeof *order, in_order,
                (void *)(uintptr_t)job);
    for (int i = 0; order && i < job->ncomms; i += n) {
        for (n = 1; i + n < job->ncomms &&
                    !compare(&order[i], &order[i + n], (void *)(uintptr_t)job);
             n++)
            ;
        put_line(out, &job->comms[order[i]], n);
    }
    out_table_end(out);
    free(order);
}
