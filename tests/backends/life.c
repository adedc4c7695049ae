/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about making, listing, noting and removing. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "facts.h"

static void
create_twice_is_fine_and_keeps_what_is_there(void)
{
    SUCCEEDS(create(VOLUME("twice"), 64 * MIB));
    EXPECT(put_text(path_of(VOLUME("twice"), "file"), "kept"));
    SUCCEEDS(create(VOLUME("twice"), 64 * MIB));
    EXPECT(has_text(path_of(VOLUME("twice"), "file"), "kept"));
    SUCCEEDS(create(IMAGE("twice"), 8 * MIB));
    EXPECT(fill_random(path_of(IMAGE("twice"), NULL), 4096, 100));
    SUCCEEDS(create(IMAGE("twice"), 8 * MIB));
    struct stat status;
    EXPECT(stat(path_of(IMAGE("twice"), NULL), &status) == 0);
    EXPECT(status.st_size == 8 * MIB);
    EXPECT(status.st_blocks > 0);
    SUCCEEDS(drop(VOLUME("twice")));
    SUCCEEDS(drop(IMAGE("twice")));
}

static void
a_new_tree_is_an_empty_directory_with_mode_0755(void)
{
    struct stat status;
    mode_t before = umask(077);
    SUCCEEDS(create(VOLUME("mode"), 0));
    umask(before);
    EXPECT(stat(path_of(VOLUME("mode"), NULL), &status) == 0);
    EXPECT(S_ISDIR(status.st_mode));
    EXPECT((status.st_mode & 07777) == 0755);
    SUCCEEDS(drop(VOLUME("mode")));
}

static void
remove_twice_is_fine(void)
{
    struct data never = VOLUME("never-there");
    char path[4096];
    SUCCEEDS(create(VOLUME("gone"), 0));
    EXPECT(put_text(path_of(VOLUME("gone"), "file"), "x"));
    SUCCEEDS(drop(VOLUME("gone")));
    SUCCEEDS(drop(VOLUME("gone")));
    SUCCEEDS(drop(never));
    EXPECT(path_of(VOLUME("gone"), NULL)[0] == 0);
    FAILS(CODE_NOT_FOUND, backend_path(scene.backend, &never, path, sizeof path));
}

static void
what_is_not_there_is_not_found(void)
{
    struct data never = VOLUME("never-there");
    struct data_settings settings = {.size_bytes = MIB};
    struct data_usage usage;
    char note[8];
    size_t size;
    FAILS(CODE_NOT_FOUND, copy(never, VOLUME("copy-of-never"), 0));
    FAILS(CODE_NOT_FOUND, copy(IMAGE("never-there"), IMAGE("copy-of-never"), 0));
    FAILS(CODE_NOT_FOUND, backend_change(scene.backend, &never, &settings));
    FAILS(CODE_NOT_FOUND, backend_usage(scene.backend, &never, &usage));
    FAILS(CODE_NOT_FOUND, backend_read_note(scene.backend, &never, note, sizeof note, &size));
    FAILS(CODE_NOT_FOUND, backend_write_note(scene.backend, &never, "x", 1));
    SUCCEEDS(drop(VOLUME("copy-of-never")));
    SUCCEEDS(drop(IMAGE("copy-of-never")));
}

static void
a_handle_that_is_no_plain_name_is_refused(void)
{
    static const char *const bad[] = {"",          ".",           "..",      "a/b",
                                      "../escape", "/absolute",   "Upper",   "space ",
                                      "new\nline", "under_score", "dot.dot", "\xc3\xa4"};
    char long_handle[BACKEND_HANDLE_SIZE + 1];
    char path[4096];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct data data = VOLUME(bad[i]);
        FAILS(CODE_INVALID_ARGUMENT, create(data, MIB));
        FAILS(CODE_INVALID_ARGUMENT, drop(data));
        FAILS(CODE_INVALID_ARGUMENT, backend_path(scene.backend, &data, path, sizeof path));
        FAILS(CODE_INVALID_ARGUMENT, copy(VOLUME("fine"), data, 0));
    }
    struct data unterminated = VOLUME("x");
    memset(unterminated.handle, 'a', sizeof unterminated.handle);
    FAILS(CODE_INVALID_ARGUMENT, create(unterminated, MIB));
    memset(long_handle, 'a', sizeof long_handle);
    long_handle[BACKEND_HANDLE_SIZE - 1] = 0;
    SUCCEEDS(create(VOLUME(long_handle), 0));
    SUCCEEDS(drop(VOLUME(long_handle)));
}

static void
settings_that_make_no_sense_are_refused(void)
{
    struct data image = IMAGE("settings"), tree = VOLUME("settings");
    struct data_settings odd = {.size_bytes = 1000}, none = {0};
    struct data_settings strange = {.size_bytes = MIB, .compression = "rar"};
    struct data_settings both = {.size_bytes = MIB, .compression = "zstd", .nocow = true};
    FAILS(CODE_INVALID_ARGUMENT, backend_create(scene.backend, &image, &odd));
    FAILS(CODE_INVALID_ARGUMENT, backend_create(scene.backend, &image, &none));
    FAILS(CODE_INVALID_ARGUMENT, backend_create(scene.backend, &tree, &strange));
    FAILS(CODE_INVALID_ARGUMENT, backend_create(scene.backend, &tree, &both));
    FAILS(CODE_FAILED_PRECONDITION, create(SNAPSHOT("settings"), MIB));
    FAILS(CODE_INVALID_ARGUMENT, copy(image, tree, 0));
}

/* ---- notes ---- */

static void
check_note(struct data data)
{
    char note[BACKEND_NOTE_SIZE], got[BACKEND_NOTE_SIZE + 1];
    size_t size = 0;
    for (size_t i = 0; i < sizeof note; i++)
        note[i] = (char)i;
    FAILS(CODE_NOT_FOUND, backend_read_note(scene.backend, &data, got, sizeof got, &size));
    SUCCEEDS(backend_write_note(scene.backend, &data, "first", 5));
    SUCCEEDS(backend_write_note(scene.backend, &data, note, sizeof note));
    SUCCEEDS(backend_read_note(scene.backend, &data, got, sizeof got, &size));
    EXPECT(size == sizeof note && !memcmp(got, note, size));
    FAILS(CODE_OUT_OF_RANGE, backend_write_note(scene.backend, &data, got, BACKEND_NOTE_SIZE + 1));
    SUCCEEDS(backend_write_note(scene.backend, &data, "last", 4));
    scene_close();
    if (!scene_open())
        exit(1);
    SUCCEEDS(backend_read_note(scene.backend, &data, got, sizeof got, &size));
    EXPECT(size == 4 && !memcmp(got, "last", 4));
}

static void
a_note_stands_beside_the_data_and_survives_a_restart(void)
{
    SUCCEEDS(create(VOLUME("noted"), 0));
    SUCCEEDS(create(IMAGE("noted"), MIB));
    SUCCEEDS(copy(VOLUME("noted"), SNAPSHOT("noted"), 0));
    check_note(VOLUME("noted"));
    check_note(IMAGE("noted"));
    check_note(SNAPSHOT("noted"));
    SUCCEEDS(copy(VOLUME("noted"), VOLUME("noted-copy"), 0));
    struct data copied = VOLUME("noted-copy");
    char got[8];
    size_t size;
    FAILS(CODE_NOT_FOUND, backend_read_note(scene.backend, &copied, got, sizeof got, &size));
    SUCCEEDS(drop(SNAPSHOT("noted")));
    SUCCEEDS(drop(VOLUME("noted")));
    SUCCEEDS(drop(IMAGE("noted")));
    SUCCEEDS(drop(copied));
}

static bool
has_note(struct data data, const char *text)
{
    char got[32];
    size_t size = 0;
    return SUCCEEDS(backend_read_note(scene.backend, &data, got, sizeof got, &size)) &&
           size == strlen(text) && !memcmp(got, text, size);
}

static void
a_note_comes_with_the_data_and_with_every_change(void)
{
    struct data image = IMAGE("with-note"), clone = IMAGE("with-note-2");
    struct data tree = VOLUME("with-note"), snapshot = SNAPSHOT("with-note");
    struct data_settings first = {.size_bytes = MIB, .note = {"first", 5}};
    struct data_settings second = {.size_bytes = 2 * MIB, .note = {"second", 6}};
    struct data_settings longest = {.note = {&longest, BACKEND_NOTE_SIZE + 1}};
    SUCCEEDS(backend_create(scene.backend, &image, &first));
    EXPECT(has_note(image, "first"));
    SUCCEEDS(backend_copy(scene.backend, &image, &clone, &second, NULL));
    EXPECT(has_note(clone, "second"));
    EXPECT(has_note(image, "first"));
    SUCCEEDS(backend_change(scene.backend, &image, &second));
    EXPECT(has_note(image, "second"));
    SUCCEEDS(backend_create(scene.backend, &tree, &first));
    SUCCEEDS(backend_copy(scene.backend, &tree, &snapshot, &second, NULL));
    EXPECT(has_note(snapshot, "second"));
    SUCCEEDS(backend_change(scene.backend, &tree, &(struct data_settings){.size_bytes = 2 * MIB}));
    EXPECT(has_note(tree, "first"));
    FAILS(CODE_OUT_OF_RANGE, backend_change(scene.backend, &tree, &longest));
    SUCCEEDS(drop(image));
    SUCCEEDS(drop(clone));
    SUCCEEDS(drop(tree));
    SUCCEEDS(drop(snapshot));
}

/* ---- listing ---- */

struct listing {
    unsigned count;
    unsigned halves;
    char text[4096];
};

static struct error *
take_entry(void *context, const struct backend_entry *entry)
{
    struct listing *listing = context;
    listing->count++;
    listing->halves += !entry->is_whole;
    snprintf(listing->text + strlen(listing->text), sizeof listing->text - strlen(listing->text),
             "%c%c%c:%s ", entry->is_whole ? 'w' : 'h', entry->data.role == ROLE_VOLUME ? 'v' : 's',
             entry->data.kind == KIND_TREE ? 't' : 'i', entry->data.handle);
    return NULL;
}

static struct listing
list_all(void)
{
    struct listing listing = {0};
    SUCCEEDS(backend_list(scene.backend, take_entry, &listing));
    return listing;
}

static void
list_finds_everything_and_nothing_else(void)
{
    SUCCEEDS(create(VOLUME("a"), 0));
    SUCCEEDS(create(IMAGE("a"), MIB));
    SUCCEEDS(copy(VOLUME("a"), SNAPSHOT("b"), 0));
    SUCCEEDS(copy(IMAGE("a"), IMAGE_SNAPSHOT("c"), 0));
    SUCCEEDS(copy(SNAPSHOT("b"), VOLUME("d"), 0));
    scene_close();
    if (!scene_open())
        exit(1);
    struct listing listing = list_all();
    EXPECT(listing.count == 5);
    EXPECT(listing.halves == 0);
    EXPECT(strstr(listing.text, "wvt:a ") && strstr(listing.text, "wvi:a ") &&
           strstr(listing.text, "wst:b ") && strstr(listing.text, "wsi:c ") &&
           strstr(listing.text, "wvt:d "));
    SUCCEEDS(drop(VOLUME("a")));
    SUCCEEDS(drop(IMAGE("a")));
    SUCCEEDS(drop(SNAPSHOT("b")));
    SUCCEEDS(drop(IMAGE_SNAPSHOT("c")));
    SUCCEEDS(drop(VOLUME("d")));
    EXPECT(list_all().count == 0);
}

static struct error *
refuse_entry(void *context, const struct backend_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return error_new(CODE_ABORTED, "enough");
}

static void
an_error_of_the_finder_ends_the_list(void)
{
    unsigned calls = 0;
    SUCCEEDS(create(VOLUME("a"), 0));
    SUCCEEDS(create(VOLUME("b"), 0));
    FAILS(CODE_ABORTED, backend_list(scene.backend, refuse_entry, &calls));
    EXPECT(calls == 1);
    SUCCEEDS(drop(VOLUME("a")));
    SUCCEEDS(drop(VOLUME("b")));
}

/* ---- interrupted copies ---- */

static void
die_halfway(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    if (done > total / 3)
        _exit(9);
}

/* In a process of its own, which dies in the middle. */
static void
interrupt_copy(struct data from, struct data to)
{
    struct data_settings settings = {.size_bytes = 64 * MIB};
    struct progress progress = {.report = die_halfway};
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        error_free(backend_copy(scene.backend, &from, &to, &settings, &progress));
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

static void
an_interrupted_copy_is_no_volume_and_is_told_to_the_sweep(void)
{
    if (scene.backend->copies_are_instant) {
        scene.not_for_this = "copies are instant here";
        return;
    }
    char name[16];
    SUCCEEDS(create(VOLUME("source"), 64 * MIB));
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "file%d", i);
        EXPECT(fill_random(path_of(VOLUME("source"), name), 0, MIB));
    }
    interrupt_copy(VOLUME("source"), VOLUME("half"));
    interrupt_copy(VOLUME("source"), SNAPSHOT("half"));
    EXPECT(path_of(VOLUME("half"), NULL)[0] == 0);
    struct listing listing = list_all();
    EXPECT(listing.count == 3 && listing.halves == 2);
    EXPECT(strstr(listing.text, "hvt:half ") && strstr(listing.text, "hst:half "));
    SUCCEEDS(drop(SNAPSHOT("half")));
    EXPECT(list_all().halves == 1);
    SUCCEEDS(copy(VOLUME("source"), VOLUME("half"), 64 * MIB));
    EXPECT(list_all().halves == 0);
    EXPECT(is_same_file(path_of(VOLUME("source"), "file19"), path_of(VOLUME("half"), "file19")));
    SUCCEEDS(drop(VOLUME("half")));
    SUCCEEDS(drop(VOLUME("source")));
    EXPECT(list_all().count == 0);
}

/* The path of a holder that has nothing in it yet, as a crash leaves it. */
static void
leave_empty_holder(const char *handle)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", path_of(VOLUME("whole"), NULL));
    char *place = strstr(path, "/whole/tree");
    EXPECT(place);
    if (place)
        snprintf(place, sizeof path - (size_t)(place - path), "/%s", handle);
    EXPECT(mkdir(path, 0700) == 0);
}

static void
what_a_crash_has_left_is_finished_or_removed(void)
{
    SUCCEEDS(create(VOLUME("whole"), 0));
    EXPECT(put_text(path_of(VOLUME("whole"), "file"), "text"));
    leave_empty_holder("made");
    leave_empty_holder("copied");
    leave_empty_holder("removed");
    SUCCEEDS(create(VOLUME("made"), MIB));
    SUCCEEDS(copy(VOLUME("whole"), VOLUME("copied"), MIB));
    EXPECT(put_text(path_of(VOLUME("made"), "file"), "text"));
    EXPECT(has_text(path_of(VOLUME("copied"), "file"), "text"));
    SUCCEEDS(drop(VOLUME("removed")));
    EXPECT(list_all().count == 3);
    SUCCEEDS(drop(VOLUME("whole")));
    SUCCEEDS(drop(VOLUME("made")));
    SUCCEEDS(drop(VOLUME("copied")));
    EXPECT(list_all().count == 0);
}

struct watch {
    uint64_t done, total;
    unsigned calls, cancel_at;
};

static void
watch_report(void *context, uint64_t done, uint64_t total)
{
    struct watch *watch = context;
    EXPECT(done >= watch->done && done <= total);
    watch->done = done;
    watch->total = total;
    watch->calls++;
}

static bool
watch_cancelled(void *context)
{
    struct watch *watch = context;
    return watch->cancel_at && watch->calls >= watch->cancel_at;
}

static void
a_copy_tells_its_progress_and_can_be_cancelled(void)
{
    if (scene.backend->copies_are_instant) {
        scene.not_for_this = "copies are instant here";
        return;
    }
    struct watch watch = {0};
    struct progress progress = {watch_report, watch_cancelled, &watch};
    struct data_settings settings = {.size_bytes = 64 * MIB};
    struct data tree = VOLUME("watched"), image = IMAGE("watched"), to = VOLUME("to");
    struct data image_to = IMAGE("to");
    SUCCEEDS(create(tree, 64 * MIB));
    SUCCEEDS(create(image, 64 * MIB));
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "file%d", i);
        EXPECT(fill_random(path_of(tree, name), 0, 2 * MIB));
    }
    EXPECT(fill_random(path_of(image, NULL), 0, 40 * MIB));
    SUCCEEDS(backend_copy(scene.backend, &tree, &to, &settings, &progress));
    EXPECT(watch.calls > 5 && watch.done >= 20 * MIB && watch.done <= watch.total);
    SUCCEEDS(drop(to));
    watch = (struct watch){.cancel_at = 3};
    FAILS(CODE_CANCELLED, backend_copy(scene.backend, &tree, &to, &settings, &progress));
    watch = (struct watch){.cancel_at = 1};
    FAILS(CODE_CANCELLED, backend_copy(scene.backend, &image, &image_to, &settings, &progress));
    EXPECT(list_all().count == 2);
    SUCCEEDS(drop(tree));
    SUCCEEDS(drop(image));
}

/* ---- at the same time ---- */

static void *
live_and_die(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    struct error *error = NULL;
    for (unsigned i = 0; i < 25 && !error; i++) {
        char handle[32], other[32];
        snprintf(handle, sizeof handle, "thread-%u-%u", number, i);
        snprintf(other, sizeof other, "thread-%u-%u-copy", number, i);
        error = create(VOLUME(handle), MIB);
        if (!error && !put_text(path_of(VOLUME(handle), "file"), handle))
            error = error_from_errno(errno, "write");
        if (!error)
            error = copy(VOLUME(handle), VOLUME(other), 2 * MIB);
        if (!error && !has_text(path_of(VOLUME(other), "file"), handle))
            error = error_new(CODE_DATA_LOSS, "the copy differs");
        if (!error)
            error = drop(VOLUME(handle));
        if (!error)
            error = drop(VOLUME(other));
    }
    return error;
}

static void
different_handles_can_be_worked_on_at_the_same_time(void)
{
    pthread_t threads[8];
    for (uintptr_t i = 0; i < COUNT_OF(threads); i++)
        EXPECT(pthread_create(&threads[i], NULL, live_and_die, (void *)i) == 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *error = NULL;
        pthread_join(threads[i], &error);
        SUCCEEDS(error);
    }
    EXPECT(list_all().count == 0);
}

static void
a_directory_belongs_to_one_back_end(void)
{
    struct backend_options options = {.directory = scene.directory, .log = &scene.log};
    struct backend *other = NULL;
    const char *name = scene.backend->ops->name;
    FAILS(CODE_INVALID_ARGUMENT, backend_open("floppy", &options, &other));
    if (scene.backend->ops->is_volatile) {
        scene.not_for_this = "nothing of it lasts";
        return;
    }
    FAILS(CODE_FAILED_PRECONDITION,
          backend_open(strcmp(name, "dir") ? "dir" : "btrfs", &options, &other));
    if (SUCCEEDS(backend_open("auto", &options, &other))) {
        EXPECT(!strcmp(other->ops->name, name));
        backend_close(other);
    }
}

const struct fact facts_of_life[] = {
    {"create twice is fine and keeps what is there", create_twice_is_fine_and_keeps_what_is_there},
    {"a new tree is an empty directory with mode 0755",
     a_new_tree_is_an_empty_directory_with_mode_0755},
    {"remove twice is fine", remove_twice_is_fine},
    {"what is not there is not found", what_is_not_there_is_not_found},
    {"a handle that is no plain name is refused", a_handle_that_is_no_plain_name_is_refused},
    {"settings that make no sense are refused", settings_that_make_no_sense_are_refused},
    {"a note stands beside the data and survives a restart",
     a_note_stands_beside_the_data_and_survives_a_restart},
    {"a note comes with the data and with every change",
     a_note_comes_with_the_data_and_with_every_change},
    {"list finds everything and nothing else", list_finds_everything_and_nothing_else},
    {"an error of the finder ends the list", an_error_of_the_finder_ends_the_list},
    {"an interrupted copy is no volume and is told to the sweep",
     an_interrupted_copy_is_no_volume_and_is_told_to_the_sweep},
    {"what a crash has left is finished or removed", what_a_crash_has_left_is_finished_or_removed},
    {"a copy tells its progress and can be cancelled",
     a_copy_tells_its_progress_and_can_be_cancelled},
    {"different handles can be worked on at the same time",
     different_handles_can_be_worked_on_at_the_same_time},
    {"a directory belongs to one back end", a_directory_belongs_to_one_back_end},
    {NULL, NULL},
};
