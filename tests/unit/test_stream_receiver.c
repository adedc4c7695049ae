/* SPDX-License-Identifier: Apache-2.0 */
/* A stream from a peer changes nothing outside its directory, and nothing that it should not. */
#include <linux/falloc.h>
#include <sys/xattr.h>

#include "stream_ends.h"

static struct stream_ends ends;

static void
expect_code(struct error *error, enum code code, const char *what)
{
    enum code got = error ? error->code : CODE_OK;
    if (got != code)
        fprintf(stderr, "%s: %s\n", what, error ? error->message : "no error");
    CHECK_TEXT(error_code_name(got), error_code_name(code));
    error_free(error);
    ends_remove_directory(&ends);
}

static void
good_stream_is_applied(void)
{
    ends_begin(&ends);
    ends_add(&ends, STREAM_MKDIR, "d", 0, NULL);
    ends_make(&ends, "o257-7-0");
    ends_rename(&ends, "o257-7-0", "d/a");
    ends_write_text(&ends, "d/a", 0, "hello ");
    ends_write_text(&ends, "d/a", 6, "world");
    ends_add(&ends, STREAM_LINK, "b", STREAM_A_PATH_LINK, "d/a");
    ends_add(&ends, STREAM_SYMLINK, "s", STREAM_A_PATH_LINK, "/etc/passwd");
    ends_add_numbers(&ends, STREAM_TRUNCATE, "d/a", STREAM_A_SIZE, 8, 0, 0);
    ends_add_numbers(&ends, STREAM_CHMOD, "d", STREAM_A_MODE, 0755, 0, 0);
    ends_finish(&ends);
    struct error *error = ends_apply(&ends, 0);
    CHECK_TEXT(ends_read(&ends, "d/a"), "hello wo");
    CHECK_TEXT(ends_read(&ends, "b"), "hello wo");
    CHECK_TEXT(ends_read(&ends, "o257-7-0"), "missing");
    CHECK_NUMBER(ends.commits, 1);
    expect_code(error, CODE_OK, "a good stream");
}

/* A stream with one command that must be refused. */
static void
refuse(unsigned type, const char *path, unsigned attribute, const char *text)
{
    ends_begin(&ends);
    ends_add(&ends, STREAM_SYMLINK, "link", STREAM_A_PATH_LINK, "..");
    ends_add(&ends, STREAM_MKDIR, "other", 0, NULL);
    ends_add(&ends, type, path, attribute, text);
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_INVALID_ARGUMENT, path);
}

static void
paths_stay_inside(void)
{
    static const char *const paths[] = {"/x",   "../x", "..",     "./x",       "a/../x", "a/./x",
                                        "a//x", "x/",   "link/x", "link/../x", "//"};
    for (unsigned i = 0; i < COUNT_OF(paths); i++) {
        refuse(STREAM_MKFILE, paths[i], 0, NULL);
        refuse(STREAM_SYMLINK, paths[i], STREAM_A_PATH_LINK, "x");
        refuse(STREAM_RENAME, "link", STREAM_A_PATH_TO, paths[i]);
        refuse(STREAM_LINK, paths[i], STREAM_A_PATH_LINK, "link");
        refuse(STREAM_LINK, "x", STREAM_A_PATH_LINK, paths[i]);
        refuse(STREAM_UNLINK, paths[i], 0, NULL);
        refuse(STREAM_RMDIR, paths[i], 0, NULL);
    }
    refuse(STREAM_UNLINK, "", 0, NULL);
    refuse(STREAM_RENAME, "", STREAM_A_PATH_TO, "x");
}

static void
long_names_are_refused(void)
{
    char name[4200];
    memset(name, 'x', sizeof name);
    name[256] = 0;
    refuse(STREAM_MKFILE, name, 0, NULL);
    for (unsigned i = 0; i < 4095; i++)
        name[i] = i % 2 ? '/' : 'x';
    name[4095] = 0;
    ends_begin(&ends);
    ends_add(&ends, STREAM_UNLINK, "x", 0, NULL);
    CHECK_NUMBER(stream_writer_begin(&ends.writer, STREAM_MKFILE, name) == NULL, 1);
    stream_writer_close(&ends.writer);
}

/* What is written must go to regular files of the tree only. */
static void
links_and_devices_are_not_written(void)
{
    static const unsigned types[] = {STREAM_SYMLINK, STREAM_MKFIFO, STREAM_MKDIR};
    for (unsigned i = 0; i < COUNT_OF(types); i++) {
        ends_begin(&ends);
        ends_add(&ends, types[i], "x", STREAM_A_PATH_LINK,
                 types[i] == STREAM_SYMLINK ? "/dev/null" : NULL);
        ends_write_text(&ends, "x", 0, "text");
        ends_finish(&ends);
        expect_code(ends_apply(&ends, 0), CODE_INVALID_ARGUMENT, "a write to what is no file");
    }
    if (geteuid() != 0)
        return;
    ends_begin(&ends);
    ends_command(&ends, STREAM_MKNOD, "null");
    stream_writer_put_number(&ends.writer, STREAM_A_MODE, S_IFCHR | 0600);
    stream_writer_put_number(&ends.writer, STREAM_A_RDEV, 0x103);
    CHECK(!stream_writer_end(&ends.writer));
    ends_write_text(&ends, "null", 0, "text");
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_INVALID_ARGUMENT, "a write to a device");
}

/* The mode of the link's target, a file beside the tree, stays as it is. */
static void
links_are_not_followed(void)
{
    struct stat before, after;
    char outside[80];
    snprintf(outside, sizeof outside, "%s/outsideXXXXXX", getenv("SKYCAP_TMP") ?: "/tmp");
    int fd = mkstemp(outside);
    CHECK(fd >= 0 && fstat(fd, &before) == 0);
    ends_begin(&ends);
    ends_add(&ends, STREAM_SYMLINK, "x", STREAM_A_PATH_LINK, outside);
    ends_add_numbers(&ends, STREAM_CHOWN, "x", STREAM_A_UID, geteuid(), STREAM_A_GID, getegid());
    ends_command(&ends, STREAM_UTIMES, "x");
    stream_writer_put_time(&ends.writer, STREAM_A_ATIME, &(struct timespec){1, 2});
    stream_writer_put_time(&ends.writer, STREAM_A_MTIME, &(struct timespec){3, 4});
    CHECK(!stream_writer_end(&ends.writer));
    ends_add_numbers(&ends, STREAM_CHMOD, "x", STREAM_A_MODE, 0777, 0, 0);
    ends_finish(&ends);
    struct error *error = ends_apply(&ends, 0);
    CHECK(error != NULL);
    CHECK(fstat(fd, &after) == 0 && after.st_mode == before.st_mode &&
          after.st_mtim.tv_sec == before.st_mtim.tv_sec);
    error_free(error);
    ends_remove_directory(&ends);
    close(fd);
    unlink(outside);
}

static void
sizes_are_limited(void)
{
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_write_text(&ends, "a", 96, "1234");
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 100), CODE_OK, "a write within the limit");
    expect_code(ends_apply(&ends, 99), CODE_OUT_OF_RANGE, "a write beyond the limit");
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_write_text(&ends, "a", UINT64_MAX - 1, "1234");
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_OUT_OF_RANGE, "a write beyond all numbers");
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_add_numbers(&ends, STREAM_TRUNCATE, "a", STREAM_A_SIZE, 101, 0, 0);
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 100), CODE_OUT_OF_RANGE, "a size beyond the limit");
}

static void
what_no_producer_sends_is_refused(void)
{
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_command(&ends, STREAM_FALLOCATE, "a");
    stream_writer_put_number(&ends.writer, STREAM_A_FALLOCATE_MODE, 0);
    stream_writer_put_number(&ends.writer, STREAM_A_FILE_OFFSET, 0);
    stream_writer_put_number(&ends.writer, STREAM_A_SIZE, 1 << 20);
    CHECK(!stream_writer_end(&ends.writer));
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_UNIMPLEMENTED, "preallocation");
    ends_begin(&ends);
    ends_add(&ends, 77, "a", 0, NULL);
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_UNIMPLEMENTED, "an unknown command");
    ends_begin(&ends);
    ends_add(&ends, STREAM_RENAME, "a", 0, NULL);
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_INVALID_ARGUMENT, "a missing attribute");
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_add_numbers(&ends, STREAM_CHOWN, "a", STREAM_A_UID, UINT32_MAX, STREAM_A_GID, 0);
    ends_finish(&ends);
    expect_code(ends_apply(&ends, 0), CODE_INVALID_ARGUMENT, "an owner that is none");
}

static void
incomplete_streams_are_refused(void)
{
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_write_text(&ends, "a", 0, "text");
    ends_finish(&ends);
    size_t whole = ends.stream.size;
    for (size_t size = 0; size < whole; size++) {
        ends.stream.size = size;
        expect_code(ends_apply(&ends, 0), CODE_DATA_LOSS, "a stream without an end");
    }
    ends.stream.size = whole;
    ends.end.sum[5] ^= 1;
    expect_code(ends_apply(&ends, 0), CODE_DATA_LOSS, "another sum");
    ends.end.sum[5] ^= 1;
    buffer_append_byte(&ends.stream, 0);
    expect_code(ends_apply(&ends, 0), CODE_DATA_LOSS, "a byte behind the end");
    ends.stream.size = whole;
    ends.stream.bytes[STREAM_MAGIC_BYTES] = 1;
    expect_code(ends_apply(&ends, 0), CODE_FAILED_PRECONDITION, "version 1");
}

static void
every_changed_bit_is_found(void)
{
    ends_begin(&ends);
    ends_make(&ends, "a");
    ends_write_text(&ends, "a", 0, "some text");
    ends_finish(&ends);
    for (size_t bit = 0; bit < ends.stream.size * 8; bit++) {
        ends.stream.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct error *error = ends_apply(&ends, 0);
        CHECK(error != NULL);
        error_free(error);
        ends_remove_directory(&ends);
        ends.stream.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void
pieces_of_any_size_are_the_same(void)
{
    ends_begin(&ends);
    ends_make(&ends, "a");
    for (unsigned i = 0; i < 20; i++)
        ends_write_text(&ends, "a", 3 * i, "abc");
    ends_make(&ends, "b");
    ends_write_text(&ends, "b", 0, "xyz");
    ends_finish(&ends);
    for (size_t piece = 1; piece < ends.stream.size; piece++) {
        ends_new_directory(&ends);
        struct stream_receiver *receiver = ends_open(&ends, 0);
        CHECK(!ends_feed(&ends, receiver, ends.stream.size, piece));
        CHECK(!stream_receiver_finish(receiver, &ends.end));
        stream_receiver_close(receiver);
        CHECK_NUMBER(strlen(ends_read(&ends, "a")), 60);
        CHECK(!strncmp(ends_read(&ends, "a") + 54, "abcabc", 6));
        CHECK_TEXT(ends_read(&ends, "b"), "xyz");
        ends_remove_directory(&ends);
    }
}

int
main(void)
{
    good_stream_is_applied();
    paths_stay_inside();
    long_names_are_refused();
    links_and_devices_are_not_written();
    links_are_not_followed();
    sizes_are_limited();
    what_no_producer_sends_is_refused();
    incomplete_streams_are_refused();
    every_changed_bit_is_found();
    pieces_of_any_size_are_the_same();
    buffer_clear(&ends.stream);
    return check_report("stream_receiver");
}
