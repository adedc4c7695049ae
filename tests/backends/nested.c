/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about subvolumes that the users of a btrfs volume make in it. */
#include <btrfsutil.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "backends/btrfs.h"
#include "backends/btrfs_family.h"
#include "backends/btrfs_items.h"
#include "facts.h"

static bool
needs_btrfs(void)
{
    if (strcmp(scene.backend->ops->name, "btrfs") != 0)
        scene.not_for_this = "it has no subvolumes";
    return !scene.not_for_this;
}

static bool
needs_simple_quotas(void)
{
    if (needs_btrfs() && btrfs_of(scene.backend)->quota.kind != BTRFS_QUOTA_SIMPLE)
        scene.not_for_this = "without simple quotas nothing holds subvolumes in volumes to a size";
    return !scene.not_for_this;
}

static int
root_fd(void)
{
    return btrfs_of(scene.backend)->base.root;
}

static bool
make_nested(struct data data, const char *name)
{
    return btrfs_util_create_subvolume(path_of(data, name), 0, NULL, NULL) == BTRFS_UTIL_OK;
}

/* As one who does not want to be counted, or wants somebody else to be charged (0: nobody). */
static bool
make_nested_in(struct data data, const char *name, uint64_t group)
{
    union {
        struct btrfs_qgroup_inherit inherit;
        char bytes[sizeof(struct btrfs_qgroup_inherit) + sizeof(uint64_t)];
    } groups = {.bytes = {0}};
    struct btrfs_ioctl_vol_args_v2 arguments = {.flags = BTRFS_SUBVOL_QGROUP_INHERIT,
                                                .size = sizeof groups.inherit +
                                                        (group ? sizeof group : 0),
                                                .qgroup_inherit = &groups.inherit};
    groups.inherit.num_qgroups = group ? 1 : 0;
    memcpy(groups.bytes + sizeof groups.inherit, &group, sizeof group);
    int directory = open(path_of(data, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(arguments.name, sizeof arguments.name, "%s", name);
    bool is_good = ioctl(directory, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments) == 0;
    close(directory);
    return is_good;
}

static uint64_t
id_of(struct data data, const char *name)
{
    uint64_t id = 0;
    return btrfs_util_subvolume_id(path_of(data, name), &id) == BTRFS_UTIL_OK ? id : 0;
}

struct relation {
    uint64_t group;
    unsigned all;
    unsigned to_group;
};

static void
take_relation(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct relation *relation = context;
    (void)item;
    if (header->type != BTRFS_QGROUP_RELATION_KEY || header->offset < header->objectid)
        return;
    relation->all++;
    relation->to_group += header->offset == relation->group;
}

/* In this group (0: in none) and in no other. */
static bool
is_only_in(uint64_t id, uint64_t group)
{
    struct relation relation = {.group = group};
    struct btrfs_range range = {.tree = BTRFS_QUOTA_TREE_OBJECTID,
                                .min = {id, BTRFS_QGROUP_RELATION_KEY, 0},
                                .max = {id, BTRFS_QGROUP_RELATION_KEY, UINT64_MAX}};
    return SUCCEEDS(btrfs_items_each(root_fd(), range, take_relation, &relation)) &&
           relation.all == (group ? 1 : 0) && relation.to_group == relation.all;
}

struct group_facts {
    uint64_t only; /* 0: all families */
    unsigned count;
    uint64_t limit;
};

static void
take_group(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct group_facts *facts = context;
    struct btrfs_qgroup_limit_item limit;
    bool is_wanted =
        facts->only ? header->offset == facts->only : header->offset >= btrfs_family_of(0);
    if (header->type != BTRFS_QGROUP_LIMIT_KEY || !is_wanted)
        return;
    memcpy(&limit, item, sizeof limit);
    facts->count++;
    facts->limit = le64toh(limit.flags) & BTRFS_QGROUP_LIMIT_MAX_RFER ? le64toh(limit.max_rfer) : 0;
}

static struct group_facts
look_at_groups(uint64_t only)
{
    struct group_facts facts = {.only = only};
    struct btrfs_range range = {.tree = BTRFS_QUOTA_TREE_OBJECTID,
                                .min = {0, BTRFS_QGROUP_LIMIT_KEY, 0},
                                .max = {0, BTRFS_QGROUP_LIMIT_KEY, UINT64_MAX}};
    SUCCEEDS(btrfs_items_each(root_fd(), range, take_group, &facts));
    return facts;
}

static void
change_size(struct data data, uint64_t size)
{
    struct data_settings settings = {.size_bytes = size};
    SUCCEEDS(backend_change(scene.backend, &data, &settings));
}

/* ---- counting ---- */

static void
subvolumes_in_a_volume_get_its_limit(void)
{
    struct data data = VOLUME("host");
    if (!needs_simple_quotas())
        return;
    SUCCEEDS(create(data, 32 * MIB));
    SUCCEEDS(create(VOLUME("plain"), 32 * MIB));
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(look_at_groups(0).count == 0);
    uint64_t group = btrfs_family_of(id_of(data, NULL));
    EXPECT(make_nested(data, "a") && make_nested(data, "a/b"));
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(look_at_groups(0).count == 1);
    EXPECT(look_at_groups(group).limit == 32 * MIB);
    EXPECT(is_only_in(id_of(data, NULL), group));
    EXPECT(is_only_in(id_of(data, "a"), group));
    EXPECT(is_only_in(id_of(data, "a/b"), group));
    EXPECT(is_only_in(id_of(VOLUME("plain"), NULL), 0));
    change_size(data, 48 * MIB);
    EXPECT(look_at_groups(group).limit == 48 * MIB);
    SUCCEEDS(drop(data));
    EXPECT(look_at_groups(0).count == 0);
    SUCCEEDS(drop(VOLUME("plain")));
}

static void
use_includes_subvolumes(void)
{
    struct data data = VOLUME("host");
    struct data_usage usage;
    if (!needs_simple_quotas())
        return;
    SUCCEEDS(create(data, 64 * MIB));
    EXPECT(make_nested(data, "a"));
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(fill_random(path_of(data, "a/file"), 0, 10 * MIB));
    EXPECT(fill_random(path_of(data, "file"), 0, 4 * MIB));
    SUCCEEDS(backend_usage(scene.backend, &data, &usage));
    EXPECT(usage.used_bytes >= 13 * MIB && usage.used_bytes <= 15 * MIB);
    EXPECT(sync_around(data));
    SUCCEEDS(copy(data, SNAPSHOT("cut"), 0)); /* from now on files are counted one by one */
    SUCCEEDS(backend_usage(scene.backend, &data, &usage));
    EXPECT(usage.used_bytes >= 13 * MIB && usage.used_bytes <= 15 * MIB);
    EXPECT(usage.total_bytes == 64 * MIB);
    uint64_t group = btrfs_family_of(id_of(data, NULL));
    EXPECT(look_at_groups(group).limit >= 67 * MIB && look_at_groups(group).limit <= 69 * MIB);
    SUCCEEDS(drop(data));
    SUCCEEDS(drop(SNAPSHOT("cut")));
}

static void
copies_of_such_a_volume_are_not_charged_to_it(void)
{
    struct data data = VOLUME("host"), cut = SNAPSHOT("cut"), clone = VOLUME("clone");
    const struct data *from[] = {&data}, *to[] = {&cut};
    if (!needs_simple_quotas())
        return;
    SUCCEEDS(create(data, 32 * MIB));
    EXPECT(make_nested(data, "a"));
    EXPECT(put_text(path_of(data, "a/file"), "x"));
    SUCCEEDS(backend_tend(scene.backend));
    SUCCEEDS(backend_snapshot_group(scene.backend, from, to, NULL, 1));
    SUCCEEDS(copy(data, SNAPSHOT("second"), 0));
    SUCCEEDS(copy(data, clone, 16 * MIB));
    SUCCEEDS(copy(data, VOLUME("unlimited"), 0));
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(is_only_in(id_of(cut, NULL), 0) && is_only_in(id_of(SNAPSHOT("second"), NULL), 0));
    EXPECT(is_only_in(id_of(clone, NULL), 0) && is_only_in(id_of(VOLUME("unlimited"), NULL), 0));
    EXPECT(exists(path_of(clone, "a")) && !exists(path_of(clone, "a/file")));
    EXPECT(look_at_groups(id_of(clone, NULL)).limit == 16 * MIB);
    SUCCEEDS(drop(data));
    SUCCEEDS(drop(cut));
    SUCCEEDS(drop(SNAPSHOT("second")));
    SUCCEEDS(drop(clone));
    SUCCEEDS(drop(VOLUME("unlimited")));
}

static void
nobody_chooses_who_is_charged(void)
{
    struct data mine = VOLUME("mine"), victim = VOLUME("victim");
    if (!needs_simple_quotas())
        return;
    SUCCEEDS(create(mine, 32 * MIB));
    SUCCEEDS(create(victim, 32 * MIB));
    EXPECT(make_nested(mine, "a") && make_nested(victim, "a"));
    SUCCEEDS(backend_tend(scene.backend));
    uint64_t own = btrfs_family_of(id_of(mine, NULL));
    uint64_t other = btrfs_family_of(id_of(victim, NULL));
    EXPECT(make_nested_in(mine, "outside", 0) && make_nested_in(mine, "intruder", other));
    EXPECT(make_nested(mine, "outside/below"));
    EXPECT(is_only_in(id_of(mine, "outside"), 0));
    EXPECT(is_only_in(id_of(mine, "intruder"), other));
    /* The older one stands in the newer one. */
    EXPECT(make_nested_in(mine, "late", 0));
    EXPECT(rename(path_of(mine, "outside"), path_of(mine, "late/outside")) == 0);
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(is_only_in(id_of(mine, "late"), own) && is_only_in(id_of(mine, "late/outside"), own));
    EXPECT(is_only_in(id_of(mine, "late/outside/below"), own));
    EXPECT(is_only_in(id_of(mine, "intruder"), own));
    SUCCEEDS(drop(mine));
    SUCCEEDS(drop(victim));
    EXPECT(look_at_groups(0).count == 0);
}

/* ---- crashes and races ---- */

/* Each step of making a group, as if the one before had been the last. */
static void
a_group_that_was_half_made_is_finished(void)
{
    struct data data = VOLUME("host");
    if (!needs_simple_quotas())
        return;
    for (int steps = 1; steps <= 2; steps++) {
        SUCCEEDS(create(data, 32 * MIB));
        EXPECT(make_nested(data, "a"));
        uint64_t group = btrfs_family_of(id_of(data, NULL));
        struct btrfs_ioctl_qgroup_create_args make = {.create = 1, .qgroupid = group};
        EXPECT(ioctl(root_fd(), BTRFS_IOC_QGROUP_CREATE, &make) == 0);
        struct btrfs_ioctl_qgroup_assign_args assign = {
            .assign = 1, .src = id_of(data, "a"), .dst = group};
        if (steps == 2) /* by somebody who makes a subvolume just then */
            EXPECT(ioctl(root_fd(), BTRFS_IOC_QGROUP_ASSIGN, &assign) == 0);
        scene_close();
        if (!scene_open())
            exit(1);
        SUCCEEDS(backend_tend(scene.backend));
        EXPECT(is_only_in(id_of(data, NULL), group) && is_only_in(id_of(data, "a"), group));
        EXPECT(look_at_groups(group).limit == 32 * MIB);
        SUCCEEDS(drop(data));
        EXPECT(look_at_groups(0).count == 0);
    }
}

/* The volume is deleted as one without subvolumes, which costs nothing more than ever. */
static void
a_group_goes_after_its_volume(void)
{
    struct data data = VOLUME("host");
    if (!needs_simple_quotas())
        return;
    for (int restarts = 0; restarts <= 1; restarts++) {
        SUCCEEDS(create(data, 32 * MIB));
        EXPECT(make_nested(data, "a"));
        SUCCEEDS(backend_tend(scene.backend));
        EXPECT(rmdir(path_of(data, "a")) == 0);
        EXPECT(look_at_groups(0).count == 1);
        SUCCEEDS(drop(data));
        if (restarts) {
            scene_close();
            if (!scene_open())
                exit(1);
        } else {
            SUCCEEDS(backend_tend(scene.backend));
        }
        EXPECT(look_at_groups(0).count == 0);
    }
}

static atomic_bool is_over;

static void *
tend_always(void *context)
{
    (void)context;
    while (!atomic_load(&is_over))
        SUCCEEDS(backend_tend(scene.backend));
    return NULL;
}

static void
looking_beside_making_and_deleting_leaves_nothing(void)
{
    pthread_t thread;
    if (!needs_simple_quotas())
        return;
    atomic_store(&is_over, false);
    EXPECT(pthread_create(&thread, NULL, tend_always, NULL) == 0);
    for (unsigned round = 0; round < 300; round++) {
        struct data data = VOLUME("host");
        SUCCEEDS(create(data, 32 * MIB));
        EXPECT(make_nested(data, "a"));
        if (round % 2)
            EXPECT(make_nested_in(data, "b", 0) && rmdir(path_of(data, "a")) == 0 &&
                   rmdir(path_of(data, "b")) == 0);
        if (round % 3)
            usleep(random_number(2000));
        if (round % 5 == 0)
            change_size(data, 48 * MIB);
        SUCCEEDS(drop(data));
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(look_at_groups(0).count == 0);
}

/* ---- deleting ---- */

static bool
freeze(struct data data, const char *name)
{
    return btrfs_util_set_subvolume_read_only(path_of(data, name), true) == BTRFS_UTIL_OK;
}

/* A limit that its maker has given it, and that lets nothing happen in it any more. */
static bool
stop_up(struct data data, const char *name)
{
    struct btrfs_ioctl_qgroup_limit_args arguments = {
        .qgroupid = id_of(data, name),
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = 1}};
    return ioctl(root_fd(), BTRFS_IOC_QGROUP_LIMIT, &arguments) == 0;
}

static void
a_volume_goes_with_all_subvolumes_in_it(void)
{
    struct data data = VOLUME("host");
    bool has_quotas = scene.backend->enforces_tree_size;
    if (!needs_btrfs())
        return;
    SUCCEEDS(create(data, 32 * MIB));
    EXPECT(make_nested(data, "a") && make_nested(data, "a/b") && make_nested(data, "a/b/c"));
    EXPECT(mkdir(path_of(data, "a/b/directory"), 0755) == 0);
    EXPECT(make_nested(data, "a/b/directory/d") && make_nested(data, "e"));
    EXPECT(put_text(path_of(data, "a/b/directory/d/file"), "x"));
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(freeze(data, "a/b/c") && freeze(data, "a/b") && freeze(data, "e"));
    EXPECT(!has_quotas || (stop_up(data, "a/b") && stop_up(data, NULL)));
    uint64_t deep = id_of(data, "a/b/directory/d");
    SUCCEEDS(drop(data));
    struct btrfs_link link;
    SUCCEEDS(btrfs_roots_find(root_fd(), deep, &link));
    EXPECT(deep && !link.id);
    EXPECT(path_of(data, NULL)[0] == 0);
}

/* As deep as paths go, and deeper. */
static void
subvolumes_of_any_depth_go_with_their_volume(void)
{
    char name[201];
    struct data data = VOLUME("host");
    if (!needs_btrfs())
        return;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    SUCCEEDS(create(data, 32 * MIB));
    int directory = open(path_of(data, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned depth = 0; depth < 100; depth++) {
        EXPECT(btrfs_util_create_subvolume_fd(directory, name, 0, NULL, NULL) == BTRFS_UTIL_OK);
        int below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(directory);
        directory = below;
    }
    uint64_t deepest = 0;
    EXPECT(btrfs_util_subvolume_id_fd(directory, &deepest) == BTRFS_UTIL_OK);
    close(directory);
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(btrfs_of(scene.backend)->quota.kind != BTRFS_QUOTA_SIMPLE ||
           is_only_in(deepest, btrfs_family_of(id_of(data, NULL))));
    SUCCEEDS(drop(data));
    EXPECT(path_of(data, NULL)[0] == 0);
}

static void
a_volume_goes_when_its_group_is_over_its_limit(void)
{
    struct data data = VOLUME("host");
    if (!needs_simple_quotas())
        return;
    SUCCEEDS(create(data, 16 * MIB));
    EXPECT(make_nested(data, "a") && make_nested(data, "a/b"));
    EXPECT(fill_random(path_of(data, "a/b/file"), 0, 24 * MIB));
    EXPECT(sync_around(data));
    SUCCEEDS(backend_tend(scene.backend));
    errno = 0;
    EXPECT(!make_nested(data, "more") && errno == EDQUOT);
    errno = 0;
    EXPECT(!fill_random(path_of(data, "file"), 0, MIB) && errno == EDQUOT);
    EXPECT(unlink(path_of(data, "a/b/file")) == 0 && sync_around(data));
    EXPECT(fill_random(path_of(data, "a/file"), 0, 15 * MIB));
    SUCCEEDS(drop(data));
    EXPECT(look_at_groups(0).count == 0);
}

static void
a_volume_over_its_limit_can_grow_and_be_copied(void)
{
    struct data data = VOLUME("host");
    if (!needs_simple_quotas())
        return;
    SUCCEEDS(create(data, 16 * MIB));
    EXPECT(make_nested(data, "a"));
    EXPECT(fill_random(path_of(data, "a/file"), 0, 24 * MIB));
    EXPECT(fill_random(path_of(data, "file"), 0, 4 * MIB));
    EXPECT(sync_around(data));
    SUCCEEDS(backend_tend(scene.backend));
    EXPECT(!fill_random(path_of(data, "more"), 0, MIB) && errno == EDQUOT);
    SUCCEEDS(copy(data, SNAPSHOT("cut"), 0));
    SUCCEEDS(copy(data, VOLUME("clone"), 16 * MIB));
    EXPECT(fill_random(path_of(VOLUME("clone"), "file"), 0, 8 * MIB));
    struct data_settings larger = {.size_bytes = 48 * MIB, .compression = "zstd"};
    SUCCEEDS(backend_change(scene.backend, &data, &larger));
    EXPECT(fill_random(path_of(data, "more"), 0, 16 * MIB));
    SUCCEEDS(drop(VOLUME("clone")));
    SUCCEEDS(drop(SNAPSHOT("cut")));
    SUCCEEDS(drop(data));
}

const struct fact facts_of_nested[] = {
    {"subvolumes in a volume get its limit", subvolumes_in_a_volume_get_its_limit},
    {"the use of a volume includes subvolumes in it", use_includes_subvolumes},
    {"copies of a volume with subvolumes are not charged to it",
     copies_of_such_a_volume_are_not_charged_to_it},
    {"who makes a subvolume does not choose who is charged", nobody_chooses_who_is_charged},
    {"a group that was half made is finished", a_group_that_was_half_made_is_finished},
    {"a group goes after its volume", a_group_goes_after_its_volume},
    {"looking beside making and deleting leaves nothing",
     looking_beside_making_and_deleting_leaves_nothing},
    {"a volume goes with all subvolumes in it", a_volume_goes_with_all_subvolumes_in_it},
    {"subvolumes of any depth go with their volume", subvolumes_of_any_depth_go_with_their_volume},
    {"a volume goes when its group is over its limit",
     a_volume_goes_when_its_group_is_over_its_limit},
    {"a volume over its limit can grow and be copied",
     a_volume_over_its_limit_can_grow_and_be_copied},
    {NULL, NULL},
};
