/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a power failure leaves of the SQLite store. All that SQLite writes is recorded; then the disk is put together as it could be
 * at many moments: what had been synced is there, of the rest each piece is there, missing, or there in part. In each case the store
 * must open, have every write that had been answered, and no half of any other.
 */
#include <fcntl.h>

#include "base/memory.h"
#include "shim_vfs.h"
#include "store_ends.h"

#define WRITES 420  /* so many that the log is copied into the database and begun again */
#define MOMENTS 120 /* at random, beside those round the copying */
#define SLOTS 16    /* each write changes one, on the left and on the right, and the count */
#define VALUE_SIZE 1500

enum { DATABASE, LOG, FILES };

static const char *const file_names[FILES] = {"state.db", "state.db-wal"};

/* ---- recording ---- */

struct step {
    enum shim_kind kind;
    int file;
    int64_t offset; /* of a truncate: the size */
    size_t size;
    uint8_t *bytes;
};

static struct step *steps;
static size_t step_count, step_capacity;
static size_t answered[WRITES + 1]; /* how many steps there were when the write was answered */

static int
find_file(const char *name)
{
    for (int i = 0; i < FILES; i++)
        if (!strcmp(name, file_names[i]))
            return i;
    return -1;
}

static int
record(const struct shim_event *event)
{
    int file = find_file(event->name);
    if (file < 0 || event->kind == SHIM_READ)
        return SQLITE_OK;
    if (step_count == step_capacity) {
        step_capacity = step_capacity ? 2 * step_capacity : 1024;
        steps = memory_resize(steps, step_capacity * sizeof *steps);
    }
    struct step *step = &steps[step_count++];
    *step = (struct step){event->kind, file, event->offset, (size_t)event->size, NULL};
    if (event->bytes) {
        step->bytes = memory_new(step->size);
        memcpy(step->bytes, event->bytes, step->size);
    }
    return SQLITE_OK;
}

/* ---- what is written ---- */

struct names {
    char left[16], right[16];
};

static struct names
names_of(unsigned write)
{
    struct names names;
    unsigned slot = write * 7 % SLOTS;
    snprintf(names.left, sizeof names.left, "left/%u", slot);
    snprintf(names.right, sizeof names.right, "right/%u", slot);
    return names;
}

/* Every fifth write deletes. */
static bool
is_delete(unsigned write)
{
    return write % 5 == 0;
}

static void
fill_value(uint8_t value[VALUE_SIZE], unsigned write)
{
    memset(value, 'a' + (int)(write % 26), VALUE_SIZE);
    snprintf((char *)value, VALUE_SIZE, "%u", write);
}

static struct error *
make_write(struct store *store, unsigned write)
{
    uint8_t value[VALUE_SIZE];
    char count[16];
    struct names names = names_of(write);
    fill_value(value, write);
    snprintf(count, sizeof count, "%u", write);
    const uint8_t *bytes = is_delete(write) ? NULL : value;
    const struct store_change changes[] = {{names.left, bytes, VALUE_SIZE, STORE_ANY},
                                           text_change("count", count, STORE_ANY),
                                           {names.right, bytes, VALUE_SIZE, STORE_ANY}};
    return store_write(store, changes, COUNT_OF(changes), NULL);
}

/* ---- files in memory ---- */

struct image {
    uint8_t *bytes;
    size_t size;
};

static struct image base[FILES];

static struct image
read_image(const char *path)
{
    struct image image = {0};
    int fd = open(path, O_RDONLY);
    off_t size = lseek(fd, 0, SEEK_END);
    CHECK(size > 0);
    image.size = size > 0 ? (size_t)size : 0;
    image.bytes = memory_new(image.size);
    CHECK_NUMBER(pread(fd, image.bytes, image.size, 0), size);
    close(fd);
    return image;
}

static void
write_image(const char *path, const struct image *image)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK_NUMBER(pwrite(fd, image->bytes, image->size, 0), image->size);
    close(fd);
}

static void
resize_image(struct image *image, size_t size)
{
    image->bytes = memory_resize(image->bytes, size);
    if (size > image->size)
        memset(image->bytes + image->size, 0, size - image->size);
    image->size = size;
}

static void
apply_step(struct image *image, const struct step *step, size_t size)
{
    if (step->kind == SHIM_TRUNCATE) {
        resize_image(image, (size_t)step->offset);
    } else if (step->kind == SHIM_WRITE) {
        size_t end = (size_t)step->offset + size;
        if (end > image->size)
            resize_image(image, end);
        memcpy(image->bytes + step->offset, step->bytes, size);
    }
}

/* ---- the failure ---- */

static unsigned random_state = 20240607;

static unsigned
next_random(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* What may have come of a step that no sync has followed. */
static void
perhaps_apply(struct image *image, const struct step *step)
{
    switch (next_random(3)) {
    case 0:
        break;
    case 1:
        apply_step(image, step, step->size);
        break;
    default: /* whole sectors of a write */
        apply_step(image, step, step->size * next_random(8) / 8 / 512 * 512);
    }
}

/* The file after the power has failed behind so many steps. */
static struct image
fail_power(int file, size_t moment, bool syncs_work)
{
    struct image image = {memory_new(base[file].size), base[file].size};
    memcpy(image.bytes, base[file].bytes, image.size);
    size_t synced = 0;
    for (size_t i = 0; i < moment && syncs_work; i++)
        if (steps[i].file == file && steps[i].kind == SHIM_SYNC)
            synced = i;
    for (size_t i = 0; i < moment; i++) {
        if (steps[i].file != file)
            continue;
        if (i < synced)
            apply_step(&image, &steps[i], steps[i].size);
        else
            perhaps_apply(&image, &steps[i]);
    }
    return image;
}

/* ---- what must be there ---- */

static bool
has_value(struct store *store, const char *key, unsigned write)
{
    uint8_t value[VALUE_SIZE];
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, 0);
    enum code code = code_of(store_get(store, key, &arena, &entry));
    fill_value(value, write);
    bool is_there = code == CODE_OK && entry.value_size == VALUE_SIZE && entry.revision == write &&
                    !memcmp(entry.value, value, VALUE_SIZE);
    arena_clear(&arena);
    return write == 0 || is_delete(write) ? code == CODE_NOT_FOUND : is_there;
}

/* The state is that after exactly so many writes. */
static bool
is_state_after(struct store *store, unsigned writes)
{
    unsigned last[SLOTS] = {0};
    for (unsigned write = 1; write <= writes; write++)
        last[write * 7 % SLOTS] = write;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        char left[16], right[16];
        snprintf(left, sizeof left, "left/%u", slot);
        snprintf(right, sizeof right, "right/%u", slot);
        if (!has_value(store, left, last[slot]) || !has_value(store, right, last[slot]))
            return false;
    }
    return revision_of(store) == writes;
}

static bool
holds_what_was_answered(struct store *store, size_t moment)
{
    unsigned least = 0;
    while (least < WRITES && answered[least + 1] <= moment)
        least++;
    const char *count = get(store, "count");
    unsigned found = count ? (unsigned)atoi(count) : 0;
    return found >= least && found <= least + 1 && is_state_after(store, found) &&
           code_of(store_check(store)) == CODE_OK &&
           code_of(put(store, "later", "x", STORE_ANY, NULL)) == CODE_OK;
}

static bool
survives(size_t moment, bool syncs_work)
{
    struct store *store;
    remove_tree(below("failed"));
    mkdir(below("failed"), 0700);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        struct image image = fail_power(i, moment, syncs_work);
        snprintf(name, sizeof name, "failed/%s", file_names[i]);
        write_image(below(name), &image);
        free(image.bytes);
    }
    struct error *error = store_open(url_of("failed"), NULL, &store);
    bool is_good = !error && holds_what_was_answered(store, moment);
    if (syncs_work && error)
        fprintf(stderr, "%s\n", error->message);
    error_free(error);
    store_close(store);
    return is_good;
}

/* ---- facts ---- */

static void
record_writes(void)
{
    struct store *store = open_store(url_of("recorded"));
    base[DATABASE] = read_image(below("recorded/state.db"));
    base[LOG] = read_image(below("recorded/state.db-wal"));
    atomic_store(&shim_hook, record);
    for (unsigned i = 1; i <= WRITES; i++) {
        CHECK_OK(make_write(store, i));
        answered[i] = step_count;
    }
    atomic_store(&shim_hook, NULL);
    store_close(store);
}

static void
check_moment(size_t moment)
{
    bool is_good = survives(moment, true);
    if (!is_good)
        fprintf(stderr, "after step %zu of %zu:\n", moment, step_count);
    CHECK(is_good);
}

static void
nothing_answered_is_lost_at_any_moment(void)
{
    for (unsigned i = 0; i < MOMENTS; i++)
        check_moment(next_random((unsigned)step_count + 1));
    check_moment(step_count);
}

/* From the first page that goes into the database to the first few that the log is begun again with. */
static void
nothing_is_lost_while_the_log_is_copied(void)
{
    size_t first = 0, last = 0;
    for (size_t i = 0; i < step_count; i++) {
        if (steps[i].file != DATABASE)
            continue;
        first = first ? first : i;
        last = i;
    }
    CHECK(first > 0 && last < step_count - 20); /* the log was copied and used again */
    for (size_t i = first - 3; i < last + 20; i++)
        if (i < first + 5 || i > last - 5 || i % 8 == 0)
            check_moment(i);
}

/* The other way round: if syncs did nothing, this test would notice. */
static void
without_syncs_writes_are_lost(void)
{
    unsigned lost = 0;
    for (unsigned i = 0; i < 20; i++)
        lost += !survives(next_random((unsigned)step_count + 1), false);
    CHECK(lost > 0);
}

int
main(void)
{
    make_test_directory();
    shim_install();
    record_writes();
    nothing_answered_is_lost_at_any_moment();
    nothing_is_lost_while_the_log_is_copied();
    without_syncs_writes_are_lost();
    for (size_t i = 0; i < step_count; i++)
        free(steps[i].bytes);
    free(steps);
    free(base[DATABASE].bytes);
    free(base[LOG].bytes);
    remove_test_directory();
    return check_report("test_store_power");
}
