/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three nodes move and delete volumes by the rules of docs/cluster.md, at random. Before each call
 * to the registry anything may happen: other nodes go on, the call fails, a write stays on its way
 * and arrives later or never, a node crashes, the registry loses its data. At no time is a volume
 * LIVE at two nodes, without its last write, or after its deletion; and when the faults end, each
 * volume is LIVE at one node or deleted.
 *
 * One more volume is not moved but recovered again and again (rule 13), while the node that has it
 * goes on; a recovery is also given up. When the faults end, it is LIVE at one node.
 *
 * There are no threads: a step of one node calls steps of others, so a run depends on its seed only.
 */
#include "owners_ends.h"

#define NODES 3
#define VOLUMES 5
#define RECOVERED (VOLUMES - 1) /* the volume that is recovered */
#define RUNS 1000
#define STEPS 4000
#define CALM_ROUNDS 60
#define MAX_LATE 32

enum state { NONE, LIVE, MOVING, INCOMING, GONE };

struct row {
    enum state state;
    unsigned epoch;
    int peer;      /* -1: nobody */
    unsigned data; /* the number of the last write that is in the copy */
    unsigned recovered;
};

/* The volume was this node's, and then another's. */
struct left {
    unsigned epoch; /* 0: it was not */
    char owner[8];
};

struct node {
    int number;
    char id[8];
    struct way way;
    struct store *own;
    struct owners *owners;
    const struct ownership *it;
    struct row rows[VOLUMES];   /* durable */
    struct left left[VOLUMES];  /* durable; while there is no other row */
    struct row pulled[VOLUMES]; /* in memory; epoch 0: none */
    bool is_locked[VOLUMES];
    char compared[OWNER_CHANGES_SIZE]; /* in memory: the changes that it has seen */
    bool is_renewing;
    bool is_crashed; /* until its steps in progress have ended */
    unsigned busy;   /* steps in progress */
};

/* A write that is on its way. */
struct late {
    struct store_change changes[16];
    size_t count;
    struct arena arena;
};

static struct world {
    uint64_t random;
    struct store *rows;
    struct node nodes[NODES];
    struct late late[MAX_LATE];
    size_t late_count;
    unsigned written[VOLUMES]; /* the number of the last write */
    bool is_deleted[VOLUMES];
    bool is_calm;
    unsigned depth;
    unsigned focus; /* a volume on which much happens at once */
    unsigned failures;
    /* How often it happened: a simulation in which nothing happens shows nothing. */
    unsigned moves, returns, deletions, losses, crashes, late_writes, forgotten;
    unsigned recoveries, superseded, given_up, left;
} world;

static void random_step(void);

static unsigned
random_below(unsigned limit)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return (unsigned)((world.random >> 20) % limit);
}

static bool
chance(unsigned percent)
{
    return random_below(100) < percent;
}

static void
expect(bool is_good, const char *what, unsigned volume)
{
    if (is_good)
        return;
    world.failures++;
    fprintf(stderr, "volume %u: %s\n", volume, what);
}

static const char *
handle_of(unsigned volume)
{
    static const char *const handles[VOLUMES] = {"v0", "v1", "v2", "v3", "v4"};
    return handles[volume];
}

static int
home_of(unsigned volume)
{
    return (int)(volume % NODES);
}

/* One thread plays all nodes, one inside the other, and so takes their locks in any order. */
const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}

/* ---- faults ---- */

static void
keep_late(const struct store_change *changes, size_t count)
{
    struct late *late = &world.late[world.late_count++];
    arena_init(&late->arena, NULL, 0, SIZE_MAX);
    late->count = count;
    for (size_t i = 0; i < count; i++) {
        late->changes[i] = changes[i];
        late->changes[i].key = arena_string(&late->arena, changes[i].key);
        if (changes[i].value)
            late->changes[i].value =
                (const uint8_t *)arena_copy(&late->arena, changes[i].value, changes[i].value_size);
    }
    world.late_writes++;
}

static void
deliver_late(bool is_lost)
{
    struct late late = world.late[random_below((unsigned)world.late_count)];
    for (size_t i = 0; i < world.late_count; i++)
        if (world.late[i].changes[0].key == late.changes[0].key)
            world.late[i] = world.late[--world.late_count];
    if (!is_lost)
        error_free(store_write(world.rows, late.changes, late.count, NULL));
    arena_clear(&late.arena);
}

static enum fate
before_call(void *context, const struct store_change *changes, size_t count)
{
    struct node *node = context;
    if (node->is_crashed)
        return FATE_NOT_DONE;
    if (world.is_calm)
        return FATE_DONE;
    if (world.depth < 3 && chance(30))
        random_step();
    if (chance(1)) {
        node->is_crashed = true;
        world.crashes++;
        return FATE_NOT_DONE;
    }
    if (changes && world.late_count < MAX_LATE && chance(4)) {
        keep_late(changes, count);
        return FATE_IN_DOUBT;
    }
    return chance(2) ? FATE_NOT_DONE : FATE_DONE;
}

/* ---- nodes ---- */

static struct error *
walk(void *context, struct error *(*take)(void *taker, const struct claim *claim), void *taker)
{
    static const enum claim_state states[] = {[LIVE] = CLAIM_LIVE,
                                              [MOVING] = CLAIM_MOVING,
                                              [INCOMING] = CLAIM_INCOMING,
                                              [GONE] = CLAIM_GONE};
    struct node *node = context;
    struct error *error = NULL;
    for (unsigned v = 0; !error && v < VOLUMES; v++) {
        if (node->is_locked[v]) /* there is nobody who could release it meanwhile */
            return error_new(CODE_ABORTED, "the volume is locked");
        const struct row *row = &node->rows[v];
        const struct left *left = &node->left[v];
        struct claim claim = {handle_of(v), states[row->state], row->epoch, row->recovered, ""};
        if (row->state == NONE && !left->epoch)
            continue;
        if (row->state == NONE)
            claim = (struct claim){handle_of(v), CLAIM_LEFT, left->epoch, 0, left->owner};
        node->is_locked[v] = true;
        error = take(taker, &claim);
        node->is_locked[v] = false;
    }
    return error;
}

static void
start_node(struct node *node)
{
    owners_free(node->owners);
    memset(node->pulled, 0, sizeof node->pulled);
    node->compared[0] = '\0';
    node->is_crashed = false;
    node->owners = owners_new(&(struct owners_options){
        &node->way.base, node->own, "local", node->id, {walk, node}, &quiet});
    node->it = owners_interface(node->owners);
}

static bool
reads(struct node *node, unsigned volume, struct owner *out)
{
    struct error *error = node->it->read(node->it->context, handle_of(volume), out);
    enum code code = error ? error->code : CODE_OK;
    expect(!code || code == CODE_UNAVAILABLE, error ? error->message : "", volume);
    error_free(error);
    return !code;
}

static bool
is_owned_by(unsigned volume, const struct owner *owner, int number)
{
    return owner->epoch ? !strcmp(owner->node_id, world.nodes[number].id)
                        : number == home_of(volume);
}

static bool
adds(struct node *node, int number)
{
    return !code_of(node->it->add_member(node->it->context, world.nodes[number].id)) &&
           !node->is_crashed;
}

/* ---- the rules ---- */

static void
check_volume(unsigned volume)
{
    unsigned live = 0;
    for (unsigned n = 0; n < NODES; n++)
        live += world.nodes[n].rows[volume].state == LIVE;
    expect(live <= 1 || volume == RECOVERED, "is LIVE at two nodes", volume);
    expect(!live || !world.is_deleted[volume], "is LIVE after its deletion", volume);
}

static void
begin_move(struct node *node, unsigned volume)
{
    struct row *row = &node->rows[volume];
    int target = (node->number + 1 + (int)random_below(NODES - 1)) % NODES;
    struct owner owner;
    if (volume == RECOVERED || row->state != LIVE || !adds(node, target))
        return;
    if (chance(50) && !reads(node, volume, &owner))
        return;
    if (node->is_crashed)
        return;
    row->data = ++world.written[volume]; /* the last moment at which it could be written to */
    *row = (struct row){MOVING, row->epoch + 1, target, row->data, 0};
}

static void
begin_deletion(struct node *node, unsigned volume)
{
    struct row *row = &node->rows[volume];
    if (volume == RECOVERED)
        return;
    if (row->state == LIVE && row->epoch)
        *row = (struct row){MOVING, row->epoch + 1, -1, ++world.written[volume], 0};
    else if (row->state == MOVING)
        row->peer = -1;
}

static void
pull(struct node *node, unsigned volume)
{
    struct node *source = &world.nodes[(node->number + 1 + (int)random_below(NODES - 1)) % NODES];
    const struct row *theirs = &source->rows[volume];
    unsigned epoch = theirs->epoch;
    struct owner owner;
    if (node->rows[volume].state != NONE || theirs->state != MOVING ||
        theirs->peer != node->number || !reads(node, volume, &owner) || owner.epoch != epoch - 1 ||
        !is_owned_by(volume, &owner, source->number))
        return;
    if (theirs->state == MOVING && theirs->peer == node->number && theirs->epoch == epoch &&
        adds(node, source->number))
        node->pulled[volume] = (struct row){INCOMING, epoch, source->number, theirs->data, 0};
}

static void
write_incoming(struct node *node, unsigned volume)
{
    if (node->pulled[volume].state != INCOMING || node->rows[volume].state != NONE)
        return;
    node->rows[volume] = node->pulled[volume];
    node->left[volume] = (struct left){0};
    node->pulled[volume] = (struct row){0};
}

/* The swap, or giving up. */
static void
ask(struct node *node, unsigned volume)
{
    const struct row *row = &node->rows[volume];
    if (row->state != MOVING && row->state != INCOMING)
        return;
    int from = row->state == MOVING ? node->number : row->peer;
    int to = from;
    if (row->state == INCOMING && chance(70))
        to = node->number;
    else if (row->state == MOVING)
        to = row->peer < 0 ? -1 : node->number;
    struct owner before = {.epoch = row->epoch - 1}, after = {.epoch = row->epoch};
    after.recovered_epoch = row->recovered;
    if (before.epoch || chance(50))
        strcpy(before.node_id, world.nodes[from].id);
    if (to >= 0)
        strcpy(after.node_id, world.nodes[to].id);
    error_free(node->it->swap(node->it->context, handle_of(volume), &before, &after));
}

static void
become_live(struct node *node, unsigned volume)
{
    struct row *row = &node->rows[volume];
    expect(row->data == world.written[volume] || volume == RECOVERED, "lost a write", volume);
    world.recoveries += volume == RECOVERED;
    world.moves += row->state == INCOMING;
    world.returns += row->state == INCOMING && node->number == home_of(volume);
    *row = (struct row){LIVE, row->epoch, 0, row->data, row->recovered};
    check_volume(volume);
}

static void
leave(struct node *node, unsigned volume, const struct owner *owner)
{
    bool was_here = node->rows[volume].state != INCOMING;
    node->rows[volume] = (struct row){0};
    if (!was_here || !owner->node_id[0])
        return;
    node->left[volume].epoch = (unsigned)owner->epoch;
    strcpy(node->left[volume].owner, owner->node_id);
    world.left++;
}

/* Rule 5. */
static void
decide(struct node *node, unsigned volume)
{
    struct row *row = &node->rows[volume];
    struct owner owner;
    bool is_in_doubt = row->state == MOVING || row->state == INCOMING;
    if (!is_in_doubt || !reads(node, volume, &owner) || node->is_crashed ||
        owner.epoch < row->epoch)
        return;
    if (is_owned_by(volume, &owner, node->number)) {
        expect(owner.epoch == row->epoch || volume == RECOVERED, "has a later epoch", volume);
        row->epoch = (unsigned)owner.epoch;
        become_live(node, volume);
    } else if (row->state == MOVING && row->peer < 0 && owner.epoch == row->epoch &&
               !owner.node_id[0]) {
        *row = (struct row){.state = GONE, .epoch = row->epoch};
        world.is_deleted[volume] = true;
        world.deletions++;
        check_volume(volume);
    } else {
        leave(node, volume, &owner);
    }
}

/* Rule 13: the node that has the volume is said to be lost, and goes on. */
static void
recover(struct node *node, unsigned volume)
{
    struct owner owner;
    int lost = home_of(volume);
    if (world.is_calm || volume != RECOVERED || node->rows[volume].state != NONE ||
        !reads(node, volume, &owner))
        return;
    for (int n = 0; n < NODES; n++)
        if (owner.epoch && is_owned_by(volume, &owner, n))
            lost = n;
    if (lost == node->number || !adds(node, lost))
        return;
    unsigned epoch = (unsigned)owner.epoch + 1;
    node->rows[volume] = (struct row){INCOMING, epoch, lost, 0, epoch};
    node->left[volume] = (struct left){0};
}

/* Rule 13: the node has started, or something has changed. */
static void
compare(struct node *node, unsigned volume)
{
    struct row *row = &node->rows[volume];
    struct owner owner;
    char changes[OWNER_CHANGES_SIZE];
    if (volume != RECOVERED || code_of(node->it->read_changes(node->it->context, changes)) ||
        strcmp(changes, node->compared) == 0 || !reads(node, volume, &owner) || node->is_crashed)
        return;
    strcpy(node->compared, changes);
    if (row->state != LIVE || !owner.epoch || owner.epoch < row->epoch)
        return;
    if (is_owned_by(volume, &owner, node->number)) {
        world.given_up += owner.epoch > row->epoch;
        row->epoch = (unsigned)owner.epoch;
        return;
    }
    leave(node, volume, &owner);
    world.superseded++;
}

/* A node that has LEFT removes that. */
static bool
is_clean(const char *id, unsigned volume)
{
    for (unsigned n = 0; n < NODES; n++) {
        struct node *node = &world.nodes[n];
        if (strcmp(node->id, id) != 0)
            continue;
        if (node->rows[volume].state != NONE || node->pulled[volume].epoch ||
            node->is_locked[volume])
            return false;
        node->left[volume] = (struct left){0};
        return true;
    }
    return false;
}

/* Rule 12. No write is on its way: its deadline has passed. */
static void
forget(struct node *node, unsigned volume)
{
    struct arena arena AUTO(arena_clear);
    const char *const *ids;
    size_t count;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (node->rows[volume].state != GONE ||
        code_of(node->it->members(node->it->context, &arena, &ids, &count)))
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(ids[i], node->id) != 0 && !is_clean(ids[i], volume))
            return;
    if (world.late_count || code_of(node->it->forget(node->it->context, handle_of(volume))) ||
        node->is_crashed)
        return;
    node->rows[volume] = (struct row){0};
    world.forgotten++;
}

static void
renew(struct node *node)
{
    if (node->is_renewing)
        return;
    node->is_renewing = true;
    error_free(owners_renew(node->owners));
    node->is_renewing = false;
}

/* ---- steps ---- */

static void (*const rules[])(struct node *node, unsigned volume) = {
    begin_move, pull, write_incoming, ask, decide, begin_deletion, forget, recover, compare};

static void
step(struct node *node, unsigned volume, unsigned rule)
{
    if (node->is_crashed)
        return;
    world.depth++;
    node->busy++;
    if (rule >= COUNT_OF(rules)) {
        renew(node);
    } else if (!node->is_locked[volume]) {
        node->is_locked[volume] = true;
        rules[rule](node, volume);
        node->is_locked[volume] = false;
    }
    node->busy--;
    world.depth--;
    if (node->is_crashed && !node->busy)
        start_node(node);
}

static void
random_step(void)
{
    static const unsigned odds[] = {0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3,
                                    3, 4, 4, 4, 6, 7, 8, 9, 9, 9, 9};
    unsigned rule = odds[random_below(COUNT_OF(odds))];
    unsigned node = random_below(NODES);
    unsigned volume = chance(70) ? world.focus : random_below(VOLUMES);
    if (chance(1) && chance(15)) {
        lose_rows(world.rows);
        world.losses++;
    } else if (world.late_count && chance(20)) {
        deliver_late(chance(20));
    } else {
        world.focus = chance(2) ? random_below(VOLUMES) : world.focus;
        step(&world.nodes[node], volume, chance(1) && chance(30) ? 5 : rule);
    }
}

/* ---- runs ---- */

static void
begin_run(uint64_t seed)
{
    world = (struct world){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
                           .moves = world.moves,
                           .returns = world.returns,
                           .deletions = world.deletions,
                           .losses = world.losses,
                           .crashes = world.crashes,
                           .late_writes = world.late_writes,
                           .forgotten = world.forgotten,
                           .recoveries = world.recoveries,
                           .superseded = world.superseded,
                           .given_up = world.given_up,
                           .left = world.left};
    world.rows = open_memory();
    for (int n = 0; n < NODES; n++) {
        struct node *node = &world.nodes[n];
        *node = (struct node){.number = n, .way = {{&way_ops}, world.rows}, .own = open_memory()};
        node->way.before = before_call;
        node->way.context = node;
        snprintf(node->id, sizeof node->id, "n%d", n);
        start_node(node);
    }
    for (unsigned v = 0; v < VOLUMES; v++)
        world.nodes[home_of(v)].rows[v].state = LIVE;
}

/* No more faults and no more wishes. */
static void
calm(void)
{
    while (world.late_count)
        deliver_late(chance(50));
    world.is_calm = true;
    for (unsigned round = 0; round < CALM_ROUNDS; round++)
        for (unsigned n = 0; n < NODES; n++) {
            renew(&world.nodes[n]);
            for (unsigned v = 0; v < VOLUMES; v++)
                for (unsigned rule = 1; rule < COUNT_OF(rules); rule++)
                    if (rules[rule] != begin_deletion)
                        step(&world.nodes[n], v, rule);
        }
}

static void
check_end(unsigned volume)
{
    unsigned live = 0, others = 0;
    for (unsigned n = 0; n < NODES; n++) {
        struct node *node = &world.nodes[n];
        const struct row *row = &node->rows[volume];
        struct owner owner = {.epoch = 0};
        others += row->state != NONE && row->state != LIVE;
        expect(reads(node, volume, &owner), "is not settled", volume);
        expect(!world.is_deleted[volume] || (!owner.epoch && !node->left[volume].epoch),
               "is deleted, and not forgotten", volume);
        if (row->state != LIVE)
            continue;
        live++;
        expect(owner.epoch == row->epoch && is_owned_by(volume, &owner, node->number),
               "is LIVE at a node that does not own it", volume);
    }
    expect(!others, "is not decided", volume);
    expect(live == !world.is_deleted[volume], "is LIVE nowhere", volume);
}

static void
end_run(void)
{
    for (unsigned v = 0; v < VOLUMES; v++)
        check_end(v);
    for (unsigned n = 0; n < NODES; n++) {
        owners_free(world.nodes[n].owners);
        store_close(world.nodes[n].own);
    }
    store_close(world.rows);
}

static void
whatever_happens_a_volume_is_live_at_one_node(uint64_t first, uint64_t last)
{
    for (uint64_t seed = first; seed <= last; seed++) {
        begin_run(seed);
        for (unsigned i = 0; i < STEPS; i++)
            random_step();
        calm();
        end_run();
        CHECK_NUMBER(world.failures, 0);
        if (world.failures) {
            fprintf(stderr, "in the run with the seed %" PRIu64 "\n", seed);
            return;
        }
    }
}

/* Arguments: the first and the last seed. */
int
main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 10) : first + RUNS - 1;
    whatever_happens_a_volume_is_live_at_one_node(first, last);
    if (argc > 1)
        fprintf(stderr,
                "%u moves, %u of them back home, %u deletions, %u of them forgotten, %u "
                "losses, %u crashes, %u late writes, %u recoveries, %u superseded, %u given up, %u "
                "left\n",
                world.moves, world.returns, world.deletions, world.forgotten, world.losses,
                world.crashes, world.late_writes, world.recoveries, world.superseded,
                world.given_up, world.left);
    uint64_t runs = last - first + 1;
    CHECK(world.moves > runs && world.deletions > runs / 20 && world.forgotten > runs / 40);
    CHECK(world.losses > runs && world.crashes > runs && world.late_writes > runs);
    CHECK(world.returns > runs / 20 && world.left > runs);
    CHECK(world.recoveries > runs && world.superseded > runs && world.given_up > runs / 20);
    return check_report("owners_random");
}
