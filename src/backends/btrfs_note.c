/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of the btrfs back end. The note and the size are extended attributes of the holder, not of
 * the data, so that read-only snapshots can have them too.
 */
#include <errno.h>
#include <sys/xattr.h>

#include "backends/btrfs.h"
#include "backends/layout.h"
#include "base/files.h"

#define NOTE_ATTRIBUTE "user.skycap.note"

struct error *
btrfs_put_note(int holder, const struct data_note *note)
{
    if (note->bytes && fsetxattr(holder, NOTE_ATTRIBUTE, note->bytes, note->size, 0) != 0)
        return error_from_errno(errno, "write a note of %zu bytes", note->size);
    return NULL;
}

struct error *
btrfs_write_note(struct backend *backend, const struct data *data, const void *note, size_t size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_holder(backend->root, data, &holder);
    return error ? error : btrfs_put_note(holder, &(struct data_note){note, size});
}

struct error *
btrfs_read_note(struct backend *backend, const struct data *data, void *note, size_t room,
                size_t *size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_holder(backend->root, data, &holder);
    if (error)
        return error;
    ssize_t got = fgetxattr(holder, NOTE_ATTRIBUTE, note, room);
    if (got < 0 && errno == ENODATA)
        return error_new(CODE_NOT_FOUND, "there is no note at %s", data->handle);
    if (got < 0)
        return error_from_errno(errno, "read the note at %s", data->handle);
    *size = (size_t)got;
    return NULL;
}
