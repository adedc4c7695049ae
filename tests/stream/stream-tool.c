/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and applies streams, for tests and benchmarks:
 *
 *     stream-tool walk DIRECTORY END [STATE]             to standard output
 *     stream-tool btrfs SUBVOLUME PARENT|- END [STATE]
 *     stream-tool image FILE RANGES|- END [STATE]        RANGES: lines of offset and size
 *     stream-tool receive DIRECTORY STATE END|- COMMIT_BYTES [STOP_AFTER]
 *     stream-tool move SUBVOLUME PARENT|- DIRECTORY STATE    makes and applies a stream
 *     stream-tool cuts                                   prints where the commands of its input end
 *
 * END is a file with the position that a producer ended with; STATE has the position that a
 * receiver saved. `receive` commits after each COMMIT_BYTES (0: only at the end). It dies without a
 * commit when it has applied STOP_AFTER bytes, or when its input ends and END is "-". It prints how
 * many commits it has made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "stream/stream_btrfs.h"
#include "stream/stream_frames.h"
#include "stream/stream_image.h"
#include "stream/stream_receiver.h"
#include "stream/stream_walk.h"

#define FEED_BYTES (256u << 10)

static unsigned commits;

static void
give_up(const char *what)
{
    fprintf(stderr, "FAILED: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
require(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "FAILED: %s: %s\n", error_code_name(error->code), error->message);
    exit(1);
}

static int
open_or_die(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(path);
    return fd;
}

/* ---- positions ---- */

/* A file that is missing means: from the beginning. */
static struct stream_position
load(const char *path)
{
    struct stream_position position = {0};
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return position;
    unsigned long long offset;
    if (fscanf(file, "%llu", &offset) != 1)
        give_up(path);
    position.offset = offset;
    for (unsigned i = 0; i < STREAM_SUM_BYTES; i++) {
        unsigned byte;
        if (fscanf(file, "%2x", &byte) != 1)
            give_up(path);
        position.sum[i] = (uint8_t)byte;
    }
    fclose(file);
    return position;
}

static void
store(const char *path, const struct stream_position *position)
{
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "we");
    if (!file)
        give_up(temporary);
    fprintf(file, "%llu ", (unsigned long long)position->offset);
    for (unsigned i = 0; i < STREAM_SUM_BYTES; i++)
        fprintf(file, "%02x", position->sum[i]);
    fprintf(file, "\n");
    if (fclose(file) != 0 || rename(temporary, path) != 0)
        give_up(path);
}

static struct error *
save(void *context, const struct stream_position *position)
{
    commits++;
    store(context, position);
    return NULL;
}

/* ---- producers ---- */

static struct error *
write_out(void *context, const uint8_t *bytes, size_t size)
{
    (void)context;
    while (size) {
        ssize_t written = write(STDOUT_FILENO, bytes, size);
        if (written < 0 && errno != EINTR)
            return error_from_errno(errno, "write the stream");
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return NULL;
}

static const struct stream_sink output = {write_out, NULL};

static void
send_ranges(struct stream_image *image, const char *path)
{
    FILE *file = strcmp(path, "-") ? fopen(path, "re") : NULL;
    unsigned long long offset, size;
    if (!file) {
        require(stream_image_add(image, 0, image->size));
        return;
    }
    while (fscanf(file, "%llu %llu", &offset, &size) == 2)
        require(stream_image_add(image, offset, size));
    fclose(file);
}

static int
run_producer(int count, char **words)
{
    struct stream_position end = {0};
    const char *what = words[1];
    bool is_walk = !strcmp(what, "walk");
    struct stream_position from = load(count > (is_walk ? 4 : 5) ? words[is_walk ? 4 : 5] : NULL);
    int fd = open_or_die(words[2], O_RDONLY);
    if (is_walk) {
        require(stream_walk_send(fd, &from, &output, &end));
    } else if (!strcmp(what, "btrfs")) {
        int parent = strcmp(words[3], "-") ? open_or_die(words[3], O_RDONLY) : -1;
        require(stream_btrfs_send(fd, parent, &from, &output, &end));
    } else {
        struct stream_image image AUTO(stream_image_close) = {0};
        require(stream_image_open(&image, fd, &from, &output));
        send_ranges(&image, words[3]);
        require(stream_image_finish(&image, &end));
    }
    store(words[is_walk ? 3 : 4], &end);
    return 0;
}

/* ---- the receiver ---- */

/* What there is, at most `room` bytes; 0 at the end. */
static size_t
read_input(uint8_t *bytes, size_t room)
{
    ssize_t got;
    do {
        got = read(STDIN_FILENO, bytes, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        give_up("read the stream");
    return (size_t)got;
}

static int
run_receiver(int count, char **words)
{
    uint64_t each = strtoull(words[5], NULL, 10), since = 0;
    uint64_t left = count > 6 ? strtoull(words[6], NULL, 10) : UINT64_MAX;
    struct stream_receiver *receiver;
    struct stream_receiver_options options = {.root = open_or_die(words[2], O_RDONLY | O_DIRECTORY),
                                              .from = load(words[3]),
                                              .save = save,
                                              .context = words[3]};
    uint8_t *bytes = memory_new(FEED_BYTES);
    size_t size;
    require(stream_receiver_open(&options, &receiver));
    while (left && (size = read_input(bytes, left < FEED_BYTES ? left : FEED_BYTES))) {
        require(stream_receiver_feed(receiver, bytes, size));
        left -= size;
        since += size;
        if (each && since >= each) {
            require(stream_receiver_commit(receiver));
            since = 0;
        }
    }
    if (!left || !strcmp(words[4], "-"))
        _exit(9);
    struct stream_position sent = load(words[4]);
    require(stream_receiver_finish(receiver, &sent));
    stream_receiver_close(receiver);
    free(bytes);
    printf("%u\n", commits);
    return 0;
}

static struct error *
feed(void *context, const uint8_t *bytes, size_t size)
{
    return stream_receiver_feed(context, bytes, size);
}

static int
run_move(char **words)
{
    struct stream_receiver *receiver;
    struct stream_position end;
    struct stream_receiver_options options = {
        .root = open_or_die(words[4], O_RDONLY | O_DIRECTORY), .save = save, .context = words[5]};
    int parent = strcmp(words[3], "-") ? open_or_die(words[3], O_RDONLY) : -1;
    require(stream_receiver_open(&options, &receiver));
    const struct stream_sink sink = {feed, receiver};
    require(stream_btrfs_send(open_or_die(words[2], O_RDONLY), parent, &(struct stream_position){0},
                              &sink, &end));
    require(stream_receiver_finish(receiver, &end));
    stream_receiver_close(receiver);
    return 0;
}

/* ---- cuts ---- */

static struct error *
print_cut(void *context, const struct stream_frame *frame)
{
    const struct stream_frames *frames = context;
    printf("%llu %u\n", (unsigned long long)frames->position.offset, frame->type);
    return NULL;
}

static int
run_cuts(void)
{
    struct stream_frames frames = {0};
    const struct stream_frame_sink sink = {print_cut, &frames};
    uint8_t *bytes = memory_new(FEED_BYTES);
    size_t size;
    while ((size = read_input(bytes, FEED_BYTES)))
        require(stream_frames_feed(&frames, bytes, size, &sink));
    stream_frames_clear(&frames);
    free(bytes);
    return 0;
}

int
main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "cuts"))
        return run_cuts();
    if (!strcmp(what, "receive") && count >= 6)
        return run_receiver(count, words);
    if (!strcmp(what, "move") && count == 6)
        return run_move(words);
    bool is_producer = (!strcmp(what, "walk") && count >= 4) ||
                       ((!strcmp(what, "btrfs") || !strcmp(what, "image")) && count >= 5);
    if (is_producer)
        return run_producer(count, words);
    fprintf(stderr, "see the beginning of tests/stream/stream-tool.c\n");
    return 2;
}
