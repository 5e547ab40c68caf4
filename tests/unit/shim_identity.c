/* Names of communicators: equal on their members, different otherwise. */
#include "identity.h"
#include "shim_test.h"

enum { RANKS = 16, NODES = 400, ROUNDS = 40 };

/* One communicator of the simulated job: who is in it, and what every member
 * knows of it by itself. */
struct node {
    uint64_t uid[RANKS]; /* as each rank computed it; 0: not a member */
    uint32_t children[RANKS];
    int members;
};

static struct node nodes[NODES];
static int nnodes;

static void init(int id)
{
    struct node *node = &nodes[nnodes++];
    ncclUniqueId unique = some_id(id);
    for (int rank = 0; rank < RANKS; rank++) {
        node->uid[rank] = identity_of_id(&unique, rank + 1000 * id);
        node->children[rank] = 0;
    }
    node->members = RANKS;
}

/* Every member of the parent splits; colour -1 stays out but counts. */
static void split(int parent, int colors)
{
    int first = nnodes;
    for (int c = 0; c < colors; c++)
        memset(&nodes[nnodes++], 0, sizeof(*nodes));
    for (int rank = 0; rank < RANKS; rank++) {
        if (!nodes[parent].uid[rank])
            continue;
        uint32_t child = ++nodes[parent].children[rank];
        int color = rand() % (colors + 1) - 1;
        if (color < 0)
            continue;
        struct node *node = &nodes[first + color];
        node->uid[rank] =
            identity_of_split(nodes[parent].uid[rank], child, color);
        node->members++;
    }
}

static uint64_t agreed(const struct node *node)
{
    uint64_t uid = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        if (!node->uid[rank])
            continue;
        if (uid)
            assert_true(uid == node->uid[rank]);
        uid = node->uid[rank];
    }
    return uid;
}

static void test_trees(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        srand((unsigned)round + 1);
        nnodes = 0;
        for (int i = 0; i < 3; i++)
            init(10 * round + i);
        while (nnodes < NODES - 5)
            split(rand() % nnodes, 1 + rand() % 4);
        for (int i = 0; i < nnodes; i++) {
            uint64_t uid = agreed(&nodes[i]);
            for (int j = 0; j < i && uid; j++)
                assert_true(uid != agreed(&nodes[j]));
        }
    }
}

/* NCCL_COMM_ID: every communicator of the job has the same unique id. */
static void test_repeated_id(void **state)
{
    ncclUniqueId id = some_id(123456);
    uint64_t uid[5][4];
    (void)state;
    for (int rank = 0; rank < 4; rank++)
        for (int n = 0; n < 5; n++)
            uid[n][rank] = identity_of_id(&id, rank);
    for (int n = 0; n < 5; n++) {
        for (int rank = 1; rank < 4; rank++)
            assert_true(uid[n][rank] == uid[n][0]);
        for (int m = 0; m < n; m++)
            assert_true(uid[n][0] != uid[m][0]);
    }
}

/* The numbers are compared across machines and versions: they must not change.
 */
static void test_pinned(void **state)
{
    ncclUniqueId id = some_id(42);
    (void)state;
    assert_int_equal(identity_of_id(&id, 0), 0xaf9118407de71b19);
    assert_int_equal(identity_of_split(7, 1, 2), 0x330f85d9e0fce360);
    assert_true(identity_local(1, 1) != identity_local(2, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_repeated_id),
        cmocka_unit_test(test_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
