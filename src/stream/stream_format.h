/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the format: btrfs send streams, version 2. All integers are little-endian.
 *
 * A stream is a header and commands. A command is the size of its attributes (4 bytes), its type
 * (2), a checksum (4), and its attributes. The checksum is a CRC32C with initial value 0 and no
 * final inversion, over the whole command with 0 in place of the checksum. An attribute is a type
 * (2), a size (2) and a value; DATA has no size and extends to the end of the command.
 */
#ifndef STREAM_STREAM_FORMAT_H
#define STREAM_STREAM_FORMAT_H

#include <stdint.h>
#include <string.h>

#define STREAM_MAGIC "btrfs-stream" /* with its NUL */
#define STREAM_MAGIC_BYTES 13u
#define STREAM_VERSION 2u
#define STREAM_HEADER_BYTES 17u  /* magic and version */
#define STREAM_COMMAND_BYTES 10u /* size, type and checksum */

/* Limits. The kernel's largest command has 144 KiB, and its largest write 128 KiB. */
#define STREAM_ATTRIBUTES_MAX (160u << 10)
#define STREAM_WRITE_BYTES (128u << 10)
#define STREAM_PATH_MAX 4095u
#define STREAM_NAME_MAX 255u

enum stream_command_type {
    STREAM_SUBVOL = 1,
    STREAM_SNAPSHOT = 2,
    STREAM_MKFILE = 3,
    STREAM_MKDIR = 4,
    STREAM_MKNOD = 5,
    STREAM_MKFIFO = 6,
    STREAM_MKSOCK = 7,
    STREAM_SYMLINK = 8,
    STREAM_RENAME = 9,
    STREAM_LINK = 10,
    STREAM_UNLINK = 11,
    STREAM_RMDIR = 12,
    STREAM_SET_XATTR = 13,
    STREAM_REMOVE_XATTR = 14,
    STREAM_WRITE = 15,
    STREAM_CLONE = 16,
    STREAM_TRUNCATE = 17,
    STREAM_CHMOD = 18,
    STREAM_CHOWN = 19,
    STREAM_UTIMES = 20,
    STREAM_END = 21,
    STREAM_UPDATE_EXTENT = 22,
    STREAM_FALLOCATE = 23,
    STREAM_FILEATTR = 24,
    STREAM_COMMAND_COUNT
};

enum stream_attribute_type {
    STREAM_A_UUID = 1,
    STREAM_A_CTRANSID = 2,
    STREAM_A_INO = 3,
    STREAM_A_SIZE = 4,
    STREAM_A_MODE = 5,
    STREAM_A_UID = 6,
    STREAM_A_GID = 7,
    STREAM_A_RDEV = 8,
    STREAM_A_CTIME = 9,
    STREAM_A_MTIME = 10,
    STREAM_A_ATIME = 11,
    STREAM_A_OTIME = 12,
    STREAM_A_XATTR_NAME = 13,
    STREAM_A_XATTR_DATA = 14,
    STREAM_A_PATH = 15,
    STREAM_A_PATH_TO = 16,
    STREAM_A_PATH_LINK = 17,
    STREAM_A_FILE_OFFSET = 18,
    STREAM_A_DATA = 19,
    STREAM_A_CLONE_UUID = 20,
    STREAM_A_CLONE_CTRANSID = 21,
    STREAM_A_CLONE_PATH = 22,
    STREAM_A_CLONE_OFFSET = 23,
    STREAM_A_CLONE_LEN = 24,
    STREAM_A_FALLOCATE_MODE = 25,
    STREAM_A_COUNT
};

static inline uint64_t
stream_load(const uint8_t *bytes, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static inline void
stream_store(uint8_t *bytes, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

#endif
