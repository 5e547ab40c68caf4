/*
 * Names of communicators: equal on their members, different otherwise. Random
 * trees of splits, shrinks and grows, of which each rank knows only its own
 * calls; of some trees every call is also made, and recorded, in this one
 * process, and the recorder has to come to the same names.
 */
#include "births.h"
#include "commtrace/nccl_hash.h"
#include "shim_test.h"

enum { RANKS = 64, NODES = 96, TREES = 1500, SETS = 8 };
enum { RECORDED = 12 }; /* trees */

/* What one rank knows of a communicator by its own calls. */
struct view {
    bool member;
    ncclComm_t handle; /* in recorded trees */
    struct identity name;
    int rank;
    uint32_t children; /* splits and grows that it called */
    struct {
        uint64_t set;
        uint32_t times;
    } shrinks[SETS];
};

struct node {
    struct view of[RANKS]; /* by rank of the job */
    const struct node *parent;
    int nranks;
    bool grown;
};

static struct node nodes[NODES];
static int nnodes, job_ranks, next_id;
static bool recorded;

static int some(int n)
{
    return rand() % n;
}

static struct node *new_node(const struct node *parent)
{
    struct node *node = &nodes[nnodes++];
    memset(node, 0, sizeof(*node));
    node->parent = parent;
    return node;
}

/* An id as NCCL makes it: a magic number, an address that tells ids apart, and
 * how many ranks there were before. */
static ncclUniqueId new_id(uint64_t magic, int old_ranks)
{
    ncclUniqueId id = {{0}};
    int n = ++next_id;
    memcpy(id.internal, &magic, sizeof(magic));
    memcpy(id.internal + sizeof(magic), &n, sizeof(n));
    memcpy(id.internal + offsetof(struct ct_nccl_id, old_ranks), &old_ranks,
           sizeof(old_ranks));
    return id;
}

static uint64_t random_magic(void)
{
    return (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
}

/* The recorder's name of what a call made. The stand-in does not know how many
 * ranks have come: it is told. */
static void check(const struct view *view, int nranks)
{
    if (!recorded)
        return;
    struct comm *comm = comm_find(view->handle);
    assert_non_null(comm);
    assert_true(comm->uid == view->name.uid);
    comm->nranks = nranks;
}

static void check_all(const struct node *node)
{
    for (int rank = 0; rank < job_ranks; rank++)
        if (node->of[rank].member)
            check(&node->of[rank], node->nranks);
}

static void init(void)
{
    ncclUniqueId id = new_id(random_magic(), 0);
    struct node *node = new_node(NULL);
    int first = some(job_ranks), n = 1 + some(job_ranks - first);
    for (int i = 0; i < n; i++) {
        struct view *view = &node->of[first + i];
        view->member = true;
        view->rank = i;
        view->name = identity_of_id(&id, n, i + 1000 * next_id);
        if (recorded)
            ncclCommInitRank(&view->handle, n, id, i);
    }
    node->nranks = n;
    check_all(node);
}

static void join(struct node *node, int rank, struct identity name)
{
    node->of[rank] =
        (struct view){.member = true, .name = name, .rank = node->nranks++};
}

/* Every member of the parent splits; colour -1 stays out but counts. */
static void split(struct node *parent)
{
    int colors = 1 + some(4);
    struct node *first = &nodes[nnodes];
    for (int c = 0; c < colors; c++)
        new_node(parent);
    for (int rank = 0; rank < job_ranks; rank++) {
        struct view *view = &parent->of[rank];
        if (!view->member)
            continue;
        uint32_t child = ++view->children;
        int color = some(colors + 1) - 1;
        ncclComm_t handle = NULL;
        if (recorded)
            ncclCommSplit(view->handle, color, 0, &handle, NULL);
        if (color < 0)
            continue;
        join(&first[color], rank, identity_of_split(&view->name, child, color));
        first[color].of[rank].handle = handle;
    }
    for (int c = 0; c < colors; c++)
        check_all(&first[c]);
}

static uint32_t nth_shrink(struct view *view, uint64_t set)
{
    int i = 0;
    while (view->shrinks[i].times && view->shrinks[i].set != set)
        assert_true(++i < SETS);
    view->shrinks[i].set = set;
    return ++view->shrinks[i].times;
}

static void shuffle(int *list, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = some(i + 1), x = list[i];
        list[i] = list[j];
        list[j] = x;
    }
}

/* Those that stay call it, each with its list in an order of its own. Of
 * repeated shrinks some leave out the same ranks. */
static void shrink(struct node *parent)
{
    int excluded[RANKS], n = 0, lowest = some(2);
    for (int r = lowest; r < parent->nranks; r += 2)
        if (n < parent->nranks - 1 && (n == 0 || some(3) == 0))
            excluded[n++] = r;
    if (!n)
        return;
    struct node *node = new_node(parent);
    for (int rank = 0; rank < job_ranks; rank++) {
        struct view *view = &parent->of[rank];
        bool stays = view->member;
        for (int i = 0; i < n; i++)
            stays = stays && view->rank != excluded[i];
        if (!stays)
            continue;
        shuffle(excluded, n);
        uint64_t set = identity_of_ranks(excluded, n);
        join(node, rank,
             identity_of_shrink(&view->name, set, nth_shrink(view, set)));
        if (recorded)
            ncclCommShrink(view->handle, excluded, n, &node->of[rank].handle,
                           NULL, 0);
    }
    check_all(node);
}

/* Ranks of the parent know only the parent, new ones only the id that the
 * coordinator's NCCL made of it. */
static void grow(struct node *parent)
{
    int spare[RANKS], n = 0;
    const struct view *coordinator = NULL;
    for (int rank = 0; rank < job_ranks; rank++) {
        if (!parent->of[rank].member)
            spare[n++] = rank;
        else if (!coordinator || some(3) == 0)
            coordinator = &parent->of[rank];
    }
    if (!n || !coordinator)
        return;
    int more = 1 + some(n), nranks = parent->nranks + more;
    uint64_t magic = ct_nccl_hash_combine(coordinator->name.nccl.magic,
                                          coordinator->children + 1);
    ncclUniqueId id = new_id(magic, parent->nranks);
    struct node *node = new_node(parent);
    node->grown = true;
    for (int rank = 0; rank < job_ranks; rank++) {
        struct view *view = &parent->of[rank];
        if (!view->member)
            continue;
        struct grown grown =
            identity_grown(&view->name.nccl, parent->nranks, ++view->children);
        join(node, rank, identity_of_grow(&grown, nranks));
        if (recorded)
            ncclCommGrow(view->handle, nranks, NULL, -1, &node->of[rank].handle,
                         NULL);
    }
    shuffle(spare, n);
    struct grown grown = identity_grown_of_id(&id);
    for (int i = 0; i < more; i++) {
        join(node, spare[i], identity_of_grow(&grown, nranks));
        if (recorded)
            ncclCommGrow(NULL, nranks, &id, node->nranks - 1,
                         &node->of[spare[i]].handle, NULL);
    }
    check_all(node);
}

static void grow_tree(void)
{
    nnodes = 0;
    job_ranks = 1 + some(RANKS);
    for (int i = 0; i < 3; i++)
        init();
    while (nnodes < NODES - 5) {
        struct node *parent = &nodes[some(nnodes)];
        int kind = some(4);
        if (parent->nranks == 0)
            continue;
        bool room = true;
        for (int rank = 0; rank < RANKS; rank++)
            room = room && !parent->of[rank].shrinks[SETS - 3].times;
        if (kind == 0)
            init();
        else if (kind == 1)
            split(parent);
        else if (kind == 2 && room)
            shrink(parent);
        else
            grow(parent);
    }
}

static void cut_tree(void)
{
    for (int i = 0; i < nnodes; i++)
        for (int rank = 0; rank < job_ranks; rank++)
            if (nodes[i].of[rank].handle)
                ncclCommDestroy(nodes[i].of[rank].handle);
}

/* The name that all members have; 0: there are none. */
static uint64_t agreed(const struct node *node, uint64_t *magic)
{
    uint64_t uid = 0;
    for (int rank = 0; rank < job_ranks; rank++) {
        const struct view *view = &node->of[rank];
        if (!view->member)
            continue;
        if (uid && uid != view->name.uid)
            fail_msg("rank %d calls it %llx, others %llx", rank,
                     (unsigned long long)view->name.uid,
                     (unsigned long long)uid);
        uid = view->name.uid;
        *magic = view->name.nccl.magic;
    }
    return uid;
}

/* NCCL gives all shrinks of a parent one hash, so what is grown from two that
 * are as large, by as much, has the same numbers: only these names, and those
 * of their children, may repeat. */
static bool are_twins(const struct node *a, const struct node *b,
                      const uint64_t *uid, const uint64_t *magic)
{
    if (!a->parent || !b->parent || a->parent == b->parent)
        return false;
    if (a->grown && b->grown && magic[a - nodes] == magic[b - nodes])
        return a->nranks == b->nranks && a->parent->nranks == b->parent->nranks;
    return uid[a->parent - nodes] == uid[b->parent - nodes];
}

static void test_trees(void **state)
{
    uint64_t uid[NODES], magic[NODES];
    int kinds = 0, twins = 0;
    long pairs = 0;
    (void)state;
    for (int tree = 0; tree < TREES; tree++) {
        srand((unsigned)tree + 1);
        recorded = tree < RECORDED;
        grow_tree();
        for (int i = 0; i < nnodes; i++) {
            uid[i] = agreed(&nodes[i], &magic[i]);
            kinds += nodes[i].grown;
            for (int j = 0; j < i && uid[i]; j++, pairs++) {
                if (uid[i] != uid[j])
                    continue;
                assert_true(are_twins(&nodes[i], &nodes[j], uid, magic));
                twins++;
            }
        }
        cut_tree();
    }
    printf("%d trees, %ld pairs, %d grown, %d names of twins\n", TREES, pairs,
           kinds, twins);
    assert_true(kinds > TREES);
    assert_true(twins < kinds / 20);
}

/* NCCL_COMM_ID: every communicator of the job has the same unique id. */
static void test_repeated_id(void **state)
{
    ncclUniqueId id = some_id(123456);
    uint64_t magic = UINT64_C(0x0280028002800280), uid[5][4];
    (void)state;
    memcpy(id.internal, &magic, sizeof(magic));
    for (int rank = 0; rank < 4; rank++)
        for (int n = 0; n < 5; n++)
            uid[n][rank] = identity_of_id(&id, 4, rank).uid;
    for (int n = 0; n < 5; n++) {
        for (int rank = 1; rank < 4; rank++)
            assert_true(uid[n][rank] == uid[n][0]);
        for (int m = 0; m < n; m++)
            assert_true(uid[n][0] != uid[m][0]);
    }
    /* One of five, the first of that size, and of one rank the first of all. */
    uint64_t five = identity_of_id(&id, 5, 4).uid;
    assert_true(five != uid[0][0]);
    for (int rank = 0; rank < 4; rank++)
        assert_true(identity_of_id(&id, 5, rank).uid == five);
}

/* An NCCL that numbers otherwise is noticed where both numbers are seen. */
static void test_unlike(void **state)
{
    ncclUniqueId id = some_id(77);
    ncclComm_t key;
    (void)state;
    assert_int_equal(ncclCommInitRank(&key, 2, id, 0), ncclSuccess);
    const struct comm *comm = comm_find(key);
    struct grown grown = identity_grown(&comm->nccl, comm->nranks, 1);
    struct ct_nccl_id known = {.magic = grown.magic,
                               .old_ranks = grown.old_ranks};
    memcpy(id.internal, &known, sizeof(known));
    births_learn_id(comm, &id);
    assert_int_equal(births_unlike(), 0);
    assert_int_equal(ncclCommGetUniqueId(key, &id), ncclSuccess); /* random */
    assert_int_equal(births_unlike(), 1);
    ncclCommDestroy(key);
}

static void test_set(void **state)
{
    const int set[] = {3, 1, 7}, same[] = {7, 3, 1}, more[] = {1, 3, 7, 9};
    (void)state;
    assert_true(identity_of_ranks(set, 3) == identity_of_ranks(same, 3));
    assert_true(identity_of_ranks(set, 3) != identity_of_ranks(more, 4));
    assert_true(identity_of_ranks(set, 1) != identity_of_ranks(set + 1, 1));
}

/* The numbers are compared across machines and versions: they must not change.
 * NCCL's own are what the code of 2.30.7 gives. */
static void test_pinned(void **state)
{
    ncclUniqueId id = some_id(42);
    const struct identity parent = {.uid = 7};
    (void)state;
    assert_int_equal(identity_of_id(&id, 2, 0).uid, 0xaf9118407de71b19);
    assert_int_equal(identity_of_split(&parent, 1, 2).uid, 0x330f85d9e0fce360);
    assert_true(identity_local(1, 1) != identity_local(2, 1));
    assert_int_equal(ct_nccl_hash_of_id(&id), 0x9ba68839872c99a6);
    assert_int_equal(ct_nccl_hash_of_child(7, 1, 2), 0x21140992045881cb);
    assert_int_equal(ct_nccl_hash_combine(7, 3), 0x8134d7ade2fd73f7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),  cmocka_unit_test(test_repeated_id),
        cmocka_unit_test(test_unlike), cmocka_unit_test(test_set),
        cmocka_unit_test(test_pinned),
    };
    return cmocka_run_group_tests(tests, traces_set_up, traces_tear_down);
}
