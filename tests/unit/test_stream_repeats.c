/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a receiver has applied behind its last commit, another one that continues from there
 * makes the same tree. Each stream is committed behind each of its commands and cut behind each
 * later one.
 */
#include "stream/stream_frames.h"
#include "stream_ends.h"

#define CUTS_MAX 64u

static struct stream_ends ends;
static size_t cuts[CUTS_MAX];
static unsigned cut_count;

/* ---- what is checked ---- */

static struct error *
take_cut(void *context, const struct stream_frame *frame)
{
    const struct stream_frames *frames = context;
    (void)frame;
    if (cut_count < CUTS_MAX)
        cuts[cut_count++] = frames->position.offset;
    return NULL;
}

static void
find_cuts(void)
{
    struct stream_frames frames = {0};
    const struct stream_frame_sink sink = {take_cut, &frames};
    cut_count = 0;
    CHECK(!stream_frames_feed(&frames, ends.stream.bytes, ends.stream.size, &sink));
    CHECK(cut_count < CUTS_MAX);
    stream_frames_clear(&frames);
}

static void
run_in_tree(const char *script, char *output, size_t room)
{
    char command[1024];
    snprintf(command, sizeof command, "cd '%s' && { %s; }", ends.directory, script);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    size_t size = pipe ? fread(output, 1, room - 1, pipe) : 0;
    output[size] = 0;
    CHECK(pipe && pclose(pipe) == 0);
}

/* All names with their contents, in one line. */
static const char *
describe(void)
{
    static char text[1024];
    run_in_tree("find . -mindepth 1 | LC_ALL=C sort | while read -r f; do "
                "if [ -d \"$f\" ]; then printf '%s/ ' \"${f#./}\"; "
                "else printf '%s=%s ' \"${f#./}\" \"$(tr '\\0' . <\"$f\")\"; fi; done",
                text, sizeof text);
    return text;
}

static void
feed(struct stream_receiver *receiver, size_t from, size_t to)
{
    struct error *error = stream_receiver_feed(receiver, ends.stream.bytes + from, to - from);
    if (error)
        fprintf(stderr, "%s\n", error->message);
    CHECK(!error);
    error_free(error);
}

/* Commits behind one command, stops behind another, continues. Returns the commits of its own. */
static void
interrupt(const char *base, size_t committed, size_t stopped, const char *wanted)
{
    char nothing[16];
    ends_new_directory(&ends);
    run_in_tree(base, nothing, sizeof nothing);
    struct stream_receiver *receiver = ends_open(&ends, 0);
    feed(receiver, 0, committed);
    CHECK(!stream_receiver_commit(receiver));
    feed(receiver, committed, stopped);
    stream_receiver_close(receiver);

    receiver = ends_open(&ends, 0);
    CHECK(ends.saved.offset <= stopped);
    feed(receiver, ends.saved.offset, ends.stream.size);
    CHECK(!stream_receiver_finish(receiver, &ends.end));
    stream_receiver_close(receiver);
    CHECK_TEXT(describe(), wanted);
    ends_remove_directory(&ends);
}

static void
interrupt_everywhere(const char *base, const char *wanted)
{
    ends_finish(&ends);
    find_cuts();
    for (unsigned i = 0; i < cut_count; i++)
        for (unsigned j = i; j < cut_count; j++)
            interrupt(base, cuts[i], cuts[j], wanted);
}

/* ---- streams ---- */

static void
names_that_are_exchanged(void)
{
    ends_begin(&ends);
    ends_rename(&ends, "a", "o1");
    ends_rename(&ends, "b", "a");
    ends_rename(&ends, "o1", "b");
    interrupt_everywhere("printf A >a; printf B >b", "a=B b=A ");
}

static void
directories_that_are_exchanged(void)
{
    ends_begin(&ends);
    ends_write_text(&ends, "d/x", 1, "1");
    ends_rename(&ends, "d", "o1");
    ends_rename(&ends, "e", "d");
    ends_rename(&ends, "o1", "e");
    ends_write_text(&ends, "e/x", 2, "2");
    ends_write_text(&ends, "d/x", 2, "3");
    interrupt_everywhere("mkdir d e; printf X >d/x; printf Y >e/x", "d/ d/x=Y.3 e/ e/x=X12 ");
}

static void
files_that_are_replaced(void)
{
    ends_begin(&ends);
    ends_rename(&ends, "a", "old");
    ends_make(&ends, "o9");
    ends_rename(&ends, "o9", "a");
    ends_write_text(&ends, "a", 0, "new");
    ends_add(&ends, STREAM_LINK, "c", STREAM_A_PATH_LINK, "a");
    ends_write_text(&ends, "c", 3, "er");
    ends_add(&ends, STREAM_UNLINK, "b", 0, NULL);
    ends_make(&ends, "b");
    ends_write_text(&ends, "b", 0, "third");
    interrupt_everywhere("printf A >a; printf B >b", "a=newer b=third c=newer old=A ");
}

static void
files_that_take_the_name_of_removed_ones(void)
{
    ends_begin(&ends);
    ends_add(&ends, STREAM_UNLINK, "a", 0, NULL);
    ends_rename(&ends, "b", "a");
    ends_make(&ends, "b");
    ends_write_text(&ends, "b", 0, "new");
    ends_write_text(&ends, "a", 1, "2");
    ends_add(&ends, STREAM_UNLINK, "b", 0, NULL);
    ends_rename(&ends, "a", "b");
    interrupt_everywhere("printf A >a; printf B >b", "b=B2 ");
}

static void
directories_that_become_files_and_back(void)
{
    ends_begin(&ends);
    ends_add(&ends, STREAM_UNLINK, "d/x", 0, NULL);
    ends_add(&ends, STREAM_RMDIR, "d", 0, NULL);
    ends_make(&ends, "d");
    ends_write_text(&ends, "d", 0, "file");
    ends_add(&ends, STREAM_UNLINK, "f", 0, NULL);
    ends_add(&ends, STREAM_MKDIR, "f", 0, NULL);
    ends_make(&ends, "f/y");
    ends_rename(&ends, "f", "g");
    ends_add(&ends, STREAM_MKDIR, "f", 0, NULL);
    interrupt_everywhere("mkdir d; touch d/x f", "d=file f/ g/ g/y= ");
}

static void
directories_with_temporary_names(void)
{
    ends_begin(&ends);
    ends_add(&ends, STREAM_MKDIR, "o300", 0, NULL);
    ends_make(&ends, "o258");
    ends_rename(&ends, "o258", "o300/f");
    ends_write_text(&ends, "o300/f", 0, "text");
    ends_rename(&ends, "o300", "d");
    ends_make(&ends, "d/g");
    ends_rename(&ends, "d/f", "h");
    ends_rename(&ends, "d", "e");
    ends_rename(&ends, "h", "e/f");
    interrupt_everywhere(":", "e/ e/f=text e/g= ");
}

static void
empty_directories_that_are_replaced(void)
{
    ends_begin(&ends);
    ends_add(&ends, STREAM_UNLINK, "d/x", 0, NULL);
    ends_rename(&ends, "e", "d");
    interrupt_everywhere("mkdir d e; printf D >d/x; printf E >e/x", "d/ d/x=E ");
}

static void
clone(const char *from, const char *to)
{
    ends_command(&ends, STREAM_CLONE, to);
    stream_writer_put_number(&ends.writer, STREAM_A_FILE_OFFSET, 0);
    stream_writer_put_number(&ends.writer, STREAM_A_CLONE_LEN, 2);
    stream_writer_put_text(&ends.writer, STREAM_A_CLONE_PATH, from);
    stream_writer_put_number(&ends.writer, STREAM_A_CLONE_OFFSET, 0);
    CHECK(!stream_writer_end(&ends.writer));
}

static void
clones_of_what_changes_later(void)
{
    ends_begin(&ends);
    clone("a", "b");
    ends_write_text(&ends, "a", 0, "xy");
    clone("b", "c");
    ends_add_numbers(&ends, STREAM_TRUNCATE, "b", STREAM_A_SIZE, 1, 0, 0);
    clone("a", "b");
    ends_rename(&ends, "a", "d");
    interrupt_everywhere("printf 12 >a; printf 34 >b; printf 56 >c", "b=xy c=12 d=xy ");
}

static void
contents_that_change_often(void)
{
    ends_begin(&ends);
    ends_write_text(&ends, "a", 4, "four");
    ends_add_numbers(&ends, STREAM_TRUNCATE, "a", STREAM_A_SIZE, 6, 0, 0);
    ends_add_numbers(&ends, STREAM_TRUNCATE, "a", STREAM_A_SIZE, 9, 0, 0);
    ends_write_text(&ends, "a", 8, "8");
    ends_add_numbers(&ends, STREAM_TRUNCATE, "a", STREAM_A_SIZE, 10, 0, 0);
    interrupt_everywhere("printf 0123456789abc >a", "a=0123fo..8. ");
}

/* A stream without hazards is committed only when that is asked for. */
static void
whole_trees_need_no_commits(void)
{
    ends_begin(&ends);
    for (unsigned i = 0; i < 20; i++) {
        char temporary[16], name[16];
        snprintf(temporary, sizeof temporary, "o%u-7-0", i);
        snprintf(name, sizeof name, i ? "d0/f%u" : "d%u", i);
        ends_add(&ends, i ? STREAM_MKFILE : STREAM_MKDIR, temporary, 0, NULL);
        ends_rename(&ends, temporary, name);
        ends_add_numbers(&ends, STREAM_CHMOD, name, STREAM_A_MODE, 0700, 0, 0);
    }
    ends_finish(&ends);
    CHECK(!ends_apply(&ends, 0));
    CHECK_NUMBER(ends.commits, 1);
    ends_remove_directory(&ends);
}

int
main(void)
{
    names_that_are_exchanged();
    directories_that_are_exchanged();
    files_that_are_replaced();
    files_that_take_the_name_of_removed_ones();
    directories_that_become_files_and_back();
    directories_with_temporary_names();
    empty_directories_that_are_replaced();
    clones_of_what_changes_later();
    contents_that_change_often();
    whole_trees_need_no_commits();
    buffer_clear(&ends.stream);
    return check_report("stream_repeats");
}
