/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a stream says, nothing outside its directory changes, and no device is opened.
 *
 * The first byte says whether the rest is raw, or commands whose sizes and checksums are made right
 * here (type, 2 bytes of size, attributes), and at which of them the receiver is replaced by another
 * one that continues.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "require.h"
#include "stream/stream_format.h"
#include "stream/stream_receiver.h"
#include "stream/stream_sums.h"

#define RAW 1u
#define OUTSIDE_MODE 0640

static char parent[64], root[80], outside[80];
static struct stream_position saved;

/* Without these nothing worse than a full disk can come of a mistake. */
static void
drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    REQUIRE(syscall(SYS_capget, &header, data) == 0);
    data[0].effective &= ~(1u << CAP_MKNOD | 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_RAWIO);
    REQUIRE(syscall(SYS_capset, &header, data) == 0);
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void
remove_parent(void)
{
    nftw(parent, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void
start(void)
{
    snprintf(parent, sizeof parent, "%s/fuzzXXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    REQUIRE(mkdtemp(parent));
    atexit(remove_parent);
    snprintf(root, sizeof root, "%s/root", parent);
    snprintf(outside, sizeof outside, "%s/outside", parent);
    int fd = open(outside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, "text", 4) == 4 && fchmod(fd, OUTSIDE_MODE) == 0);
    close(fd);
    drop_capabilities();
}

static void
check_outside(void)
{
    struct stat status;
    char text[8];
    unsigned count = 0;
    int fd = open(outside, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && fstat(fd, &status) == 0 && read(fd, text, sizeof text) == 4);
    REQUIRE(!memcmp(text, "text", 4) && (status.st_mode & 07777) == OUTSIDE_MODE);
    close(fd);
    DIR *directory = opendir(parent);
    REQUIRE(directory);
    while (readdir(directory))
        count++;
    REQUIRE(count == 4); /* with "." and ".." */
    closedir(directory);
}

static struct error *
save(void *context, const struct stream_position *position)
{
    (void)context;
    REQUIRE(position->offset >= saved.offset);
    saved = *position;
    return NULL;
}

static void
append_command(struct buffer *stream, uint8_t type, const uint8_t *attributes, size_t size)
{
    size_t start = stream->size;
    uint8_t head[STREAM_COMMAND_BYTES] = {0};
    stream_store(head, size, 4);
    stream_store(head + 4, type, 2);
    buffer_append(stream, head, sizeof head);
    buffer_append(stream, attributes, size);
    uint8_t *command = stream->bytes + start;
    stream_store(command + 6, stream_sums_check(command, stream->size - start), 4);
}

static void
make_stream(struct buffer *stream, const uint8_t *data, size_t size)
{
    uint8_t version[4] = {STREAM_VERSION};
    buffer_append(stream, STREAM_MAGIC, STREAM_MAGIC_BYTES);
    buffer_append(stream, version, sizeof version);
    while (size >= 3) {
        size_t length = (size_t)stream_load(data + 1, 2) % 8192;
        length = length < size - 3 ? length : size - 3;
        append_command(stream, data[0], data + 3, length);
        data += 3 + length;
        size -= 3 + length;
    }
}

/* Returns whether all was applied. */
static bool
feed(const struct buffer *stream, size_t end)
{
    struct stream_receiver *receiver;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stream_receiver_options options = {
        .root = fd, .from = saved, .max_file_bytes = 1 << 20, .save = save};
    REQUIRE(fd >= 0 && !stream_receiver_open(&options, &receiver));
    close(fd);
    size_t from = saved.offset;
    struct error *error = stream_receiver_feed(receiver, stream->bytes + from, end - from);
    REQUIRE(!error || (error->code > CODE_OK && error->code < CODE_COUNT && error->message[0]));
    bool is_done = !error;
    error_free(error);
    stream_receiver_close(receiver);
    return is_done;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!parent[0])
        start();
    if (!size)
        return 0;
    struct buffer stream AUTO(buffer_clear) = {0};
    if (data[0] & RAW)
        buffer_append(&stream, data + 1, size - 1);
    else
        make_stream(&stream, data + 1, size - 1);
    saved = (struct stream_position){0};
    REQUIRE(mkdir(root, 0700) == 0);
    if (feed(&stream, stream.size * (data[0] >> 1) / 128))
        feed(&stream, stream.size);
    check_outside();
    REQUIRE(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
    return 0;
}
