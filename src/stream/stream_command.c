/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of streams: see stream_command.h. */
#include "stream/stream_command.h"

#define NEED(attribute) (UINT32_C(1) << STREAM_A_##attribute)
#define TIME_BYTES 12u

/* What is known about a type of command. */
struct shape {
    const char *name; /* NULL: an unknown command */
    uint32_t needs;   /* attributes */
};

static const struct shape shapes[STREAM_COMMAND_COUNT] = {
    [STREAM_SUBVOL] = {"subvol", NEED(PATH)},
    [STREAM_SNAPSHOT] = {"snapshot", NEED(PATH)},
    [STREAM_MKFILE] = {"mkfile", NEED(PATH)},
    [STREAM_MKDIR] = {"mkdir", NEED(PATH)},
    [STREAM_MKNOD] = {"mknod", NEED(PATH) | NEED(MODE) | NEED(RDEV)},
    [STREAM_MKFIFO] = {"mkfifo", NEED(PATH)},
    [STREAM_MKSOCK] = {"mksock", NEED(PATH)},
    [STREAM_SYMLINK] = {"symlink", NEED(PATH) | NEED(PATH_LINK)},
    [STREAM_RENAME] = {"rename", NEED(PATH) | NEED(PATH_TO)},
    [STREAM_LINK] = {"link", NEED(PATH) | NEED(PATH_LINK)},
    [STREAM_UNLINK] = {"unlink", NEED(PATH)},
    [STREAM_RMDIR] = {"rmdir", NEED(PATH)},
    [STREAM_SET_XATTR] = {"set_xattr", NEED(PATH) | NEED(XATTR_NAME) | NEED(XATTR_DATA)},
    [STREAM_REMOVE_XATTR] = {"remove_xattr", NEED(PATH) | NEED(XATTR_NAME)},
    [STREAM_WRITE] = {"write", NEED(PATH) | NEED(FILE_OFFSET) | NEED(DATA)},
    [STREAM_CLONE] = {"clone", NEED(PATH) | NEED(FILE_OFFSET) | NEED(CLONE_LEN) | NEED(CLONE_PATH) |
                                   NEED(CLONE_OFFSET)},
    [STREAM_TRUNCATE] = {"truncate", NEED(PATH) | NEED(SIZE)},
    [STREAM_CHMOD] = {"chmod", NEED(PATH) | NEED(MODE)},
    [STREAM_CHOWN] = {"chown", NEED(PATH) | NEED(UID) | NEED(GID)},
    [STREAM_UTIMES] = {"utimes", NEED(PATH) | NEED(ATIME) | NEED(MTIME)},
    [STREAM_END] = {"end", 0},
    [STREAM_UPDATE_EXTENT] = {"update_extent", 0},
    [STREAM_FALLOCATE] = {"fallocate",
                          NEED(PATH) | NEED(FALLOCATE_MODE) | NEED(FILE_OFFSET) | NEED(SIZE)},
    [STREAM_FILEATTR] = {"fileattr", 0},
};

/* The sizes of attributes that have a fixed one. */
static const uint8_t sizes[STREAM_A_COUNT] = {
    [STREAM_A_UUID] = 16,
    [STREAM_A_CTRANSID] = 8,
    [STREAM_A_INO] = 8,
    [STREAM_A_SIZE] = 8,
    [STREAM_A_MODE] = 8,
    [STREAM_A_UID] = 8,
    [STREAM_A_GID] = 8,
    [STREAM_A_RDEV] = 8,
    [STREAM_A_CTIME] = TIME_BYTES,
    [STREAM_A_MTIME] = TIME_BYTES,
    [STREAM_A_ATIME] = TIME_BYTES,
    [STREAM_A_OTIME] = TIME_BYTES,
    [STREAM_A_FILE_OFFSET] = 8,
    [STREAM_A_CLONE_UUID] = 16,
    [STREAM_A_CLONE_CTRANSID] = 8,
    [STREAM_A_CLONE_OFFSET] = 8,
    [STREAM_A_CLONE_LEN] = 8,
    [STREAM_A_FALLOCATE_MODE] = 4,
};

static bool
is_path(struct stream_text path)
{
    const char *end = path.bytes + path.size;
    if (path.size > STREAM_PATH_MAX || memchr(path.bytes, 0, path.size))
        return false;
    for (const char *name = path.bytes; path.size; name++) {
        const char *slash = memchr(name, '/', (size_t)(end - name));
        size_t size = (size_t)((slash ? slash : end) - name);
        bool is_dots = (size == 1 && name[0] == '.') || (size == 2 && !memcmp(name, "..", 2));
        if (size == 0 || size > STREAM_NAME_MAX || is_dots)
            return false;
        if (!slash)
            return true;
        name = slash;
    }
    return true;
}

/* The contents of a symbolic link are not looked at, and nothing follows it. */
static bool
is_sound(unsigned type, unsigned attribute, struct stream_text value)
{
    switch (attribute) {
    case STREAM_A_PATH_LINK:
        if (type == STREAM_SYMLINK)
            return value.size > 0 && value.size <= STREAM_PATH_MAX &&
                   !memchr(value.bytes, 0, value.size);
        return is_path(value);
    case STREAM_A_PATH:
    case STREAM_A_PATH_TO:
    case STREAM_A_CLONE_PATH:
        return is_path(value);
    case STREAM_A_XATTR_NAME:
        return value.size > 0 && value.size <= STREAM_NAME_MAX &&
               !memchr(value.bytes, 0, value.size);
    default:
        return !sizes[attribute] || value.size == sizes[attribute];
    }
}

/* Finds the attribute at the position, which it moves behind it. False if the bytes are too few. */
static bool
find_attribute(const uint8_t **position, const uint8_t *end, unsigned *type,
               struct stream_text *value)
{
    size_t left = (size_t)(end - *position);
    if (left < 2)
        return false;
    *type = (unsigned)stream_load(*position, 2);
    bool is_data = *type == STREAM_A_DATA;
    size_t head = is_data ? 2 : 4;
    if (left < head)
        return false;
    size_t size = is_data ? left - head : (size_t)stream_load(*position + 2, 2);
    if (size > left - head)
        return false;
    *value = (struct stream_text){(const char *)*position + head, size};
    *position += head + size;
    return true;
}

struct error *
stream_command_parse(const struct stream_frame *frame, struct stream_command *out)
{
    if (frame->type >= STREAM_COMMAND_COUNT || !shapes[frame->type].name)
        return error_new(CODE_UNIMPLEMENTED, "the stream has a command of the unknown type %u",
                         frame->type);
    const struct shape *shape = &shapes[frame->type];
    const uint8_t *position = frame->bytes + STREAM_COMMAND_BYTES;
    const uint8_t *end = frame->bytes + frame->size;
    uint32_t found = 0;
    *out = (struct stream_command){.type = frame->type};
    while (position < end) {
        unsigned type;
        struct stream_text value;
        if (!find_attribute(&position, end, &type, &value))
            return error_new(CODE_INVALID_ARGUMENT, "an attribute of %s is cut off", shape->name);
        if (type >= STREAM_A_COUNT)
            continue;
        if (!is_sound(frame->type, type, value))
            return error_new(CODE_INVALID_ARGUMENT, "the attribute %u of %s is not valid", type,
                             shape->name);
        out->attributes[type] = value;
        found |= UINT32_C(1) << type;
    }
    if ((found & shape->needs) != shape->needs)
        return error_new(CODE_INVALID_ARGUMENT, "%s lacks an attribute", shape->name);
    return NULL;
}

uint64_t
stream_command_number(const struct stream_command *command, unsigned attribute)
{
    return stream_load((const uint8_t *)command->attributes[attribute].bytes, sizes[attribute]);
}

struct timespec
stream_command_time(const struct stream_command *command, unsigned attribute)
{
    const uint8_t *bytes = (const uint8_t *)command->attributes[attribute].bytes;
    return (struct timespec){.tv_sec = (time_t)stream_load(bytes, 8),
                             .tv_nsec = (long)stream_load(bytes + 8, 4)};
}
