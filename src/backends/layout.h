/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a back end's directory, the same for all:
 *
 *     volume-trees/HANDLE/tree           a directory, a subvolume, a mount: the volume's contents
 *     volume-images/HANDLE/disk/image    one disk image
 *     snapshot-trees/HANDLE/tree         and likewise for snapshots
 *     snapshot-images/HANDLE/disk/image
 *     making/ROLE-KIND-HANDLE/...        unfinished copies; moved to their place when done
 *
 * HANDLE/ is the holder: only skycap has access to it, it carries the note, and no two snapshots
 * share a parent directory. Role and kind are in the path, so that listing a hundred thousand
 * volumes reads five directories and no files.
 */
#ifndef BACKENDS_LAYOUT_H
#define BACKENDS_LAYOUT_H

#include "backends/backend.h"

#define LAYOUT_PATH_SIZE 160 /* of any path below the root, with the NUL */

/* What is in the holder: made, copied and removed as a whole. */
const char *layout_content(const struct data *data);

/*
 * Paths below the root: of the holder, of the holder while it is being made, and of the data
 * itself.
 */
void layout_print_holder(const struct data *data, char *out, size_t size);
void layout_print_making(const struct data *data, char *out, size_t size);
void layout_print_data(const struct data *data, char *out, size_t size);

/* Opens `backend->path` as the root, unless it is open, and makes the directories in it. */
MUST_CHECK struct error *layout_open(struct backend *backend);

/* Frees what all back ends have in common, and the back end. */
void layout_close(struct backend *backend);

/* NOT_FOUND if there is none. */
MUST_CHECK struct error *layout_open_holder(int root, const struct data *data, int *out);
MUST_CHECK struct error *layout_make_holder(int root, const struct data *data, int *out);

/*
 * The content: the directory of a tree, or the one that holds the image. NOT_FOUND if there is
 * none.
 */
MUST_CHECK struct error *layout_open_content(int root, const struct data *data, int *out);
/* The image in it. */
MUST_CHECK struct error *layout_open_image(int root, const struct data *data, int flags, int *out);

/* The directory of a tree, the file of an image. NOT_FOUND if there is none. */
MUST_CHECK struct error *layout_open_data(int root, const struct data *data, int flags, int *out);

/* Writes the note as a file in the holder. Settings may have none. */
MUST_CHECK struct error *layout_put_note(int holder, const struct data_note *note);

/* The size of an open image and the space that it uses. */
MUST_CHECK struct error *layout_measure_image(int image, struct data_usage *usage);

/* ---- see backend_ops ---- */

struct error *layout_find_path(struct backend *backend, const struct data *data, char *out,
                               size_t size);
struct error *layout_write_note(struct backend *backend, const struct data *data, const void *note,
                                size_t size);
struct error *layout_read_note(struct backend *backend, const struct data *data, void *note,
                               size_t room, size_t *size);
struct error *layout_list(struct backend *backend, backend_found *found, void *context);
struct error *layout_capacity(struct backend *backend, struct backend_capacity *out);
struct error *layout_sync(struct backend *backend);

#endif
