/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where data lives. A back end keeps volumes and snapshots under handles made by skycap, never
 * under a name or id from a request. It knows nothing about rows, names or CSI.
 *
 * A back end is one file that ends in a `const struct backend_ops`, and one line in table.c. A
 * function that is NULL is not supported, and every reported capability is derived from that.
 * Callers use the functions of this header (backend.c), which make the checks that all back ends
 * have in common and answer UNIMPLEMENTED for functions that are NULL.
 *
 * Every function that makes something is idempotent: called again with the same handle, it finishes
 * or replaces what a crash has left, because nothing is visible before its row is in the store. All
 * functions may block; different handles may be used at the same time.
 *
 * After a power failure, copies, snapshots and changes that were answered are there, each with its
 * note. Until the file system commits by itself (btrfs: 30 s), a power failure may undo the
 * creation of an empty volume, the writing of a note alone and a removal. A row whose volume is
 * missing after a power failure is created again, empty as it was: if its user had made anything
 * durable, the volume would be durable too.
 */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

#define BACKEND_HANDLE_SIZE 64         /* with the NUL; [a-z0-9-]+ */
#define BACKEND_NOTE_SIZE (12u * 1024) /* maximum */
#define BACKEND_BLOCK 512u             /* image sizes are multiples of it */

enum volume_kind {
    KIND_TREE,  /* a directory */
    KIND_IMAGE, /* a disk image in a file: a raw block device, or a file system */
};

enum data_role {
    ROLE_VOLUME,
    ROLE_SNAPSHOT, /* read-only */
};

/* One volume or snapshot: its handle, and what it is. */
struct data {
    char handle[BACKEND_HANDLE_SIZE];
    enum volume_kind kind;
    enum data_role role;
};

/*
 * Stored beside the data, and survives the loss of the store: the row, for a rebuild. NULL bytes:
 * no note.
 */
struct data_note {
    const void *bytes;
    size_t size;
};

struct data_settings {
    /* 0: no limit for trees; copies of images get the size of the source */
    uint64_t size_bytes;
    const char *compression; /* NULL, "none", "zstd", "lzo", "zlib" */
    bool nocow;              /* no copy on write, no checksums */
    struct data_note note;   /* appears with the data, and is as durable */
};

#define DATA_USAGE_UNKNOWN UINT64_MAX

struct data_usage {
    uint64_t total_bytes; /* the enforced size; 0: none */
    uint64_t used_bytes;
    uint64_t total_inodes; /* 0: no limit */
    uint64_t used_inodes;  /* of a tree; DATA_USAGE_UNKNOWN: too many to count */
    bool is_counted;       /* file by file, which may take long */
};

struct backend_capacity {
    uint64_t total_bytes;
    uint64_t used_bytes; /* by volumes, snapshots and the file system, or by others beside them */
    uint64_t available_bytes;
    uint64_t largest_volume_bytes; /* 0: all that is available */
    bool is_limited_below;         /* the pool has more, but the disk below it does not */
};

#define BACKEND_MOST_DEVICES 16

/* Errors of a device that the file system has counted since it was made, or since a reset. */
struct backend_device {
    uint64_t id; /* in the file system, from 1 on */
    uint64_t write_errors;
    uint64_t read_errors;
    uint64_t flush_errors;
    uint64_t corruption_errors; /* a wrong checksum */
    uint64_t generation_errors; /* an old block in place of a new one */
};

struct backend_devices {
    struct backend_device items[BACKEND_MOST_DEVICES];
    size_t count;
    /* Unix time at which the last complete scrub began; 0: not known that there was one */
    int64_t scrubbed_s;
};

/*
 * How much of an interrupted copy is there. It stays so after a power failure for an image, and
 * until the machine goes down for a tree.
 */
struct copy_position {
    uint64_t offset; /* of an image: everything before it is copied. Of a tree: 0 */
    uint64_t done_bytes;
    uint64_t source_inode; /* of the image that is copied, */
    int64_t source_changed_ns;
};

/*
 * The progress of long work. `cancelled` is called periodically; if it returns true, the work
 * cleans up and ends with CANCELLED. Work that waits for something outside calls progress_rest
 * between its attempts, which returns after the time, or when the work is cancelled; other work may
 * run meanwhile, and is waited for. progress_pause does not wait for it: for work during which
 * somebody cannot use something.
 */
struct progress {
    void (*report)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    bool (*cancelled)(void *context);
    void *context;
    void (*rest)(void *context, uint32_t ms);  /* may be NULL */
    void (*pause)(void *context, uint32_t ms); /* NULL: as rest */
    /*
     * Of a copy that can go on after a restart: saves its position durably, or that there is none
     * (NULL). What an attempt that failed has made then stays for the next one, which gets the
     * position; backend_remove removes it. NULL: each attempt begins anew.
     */
    struct error *(*save)(void *context, const struct copy_position *position);
    uint64_t save_bytes; /* about so much is copied between two saves; 0: 256 MiB */
    const struct copy_position *position; /* where an earlier attempt was; NULL: there was none */
};

/*
 * Forgets the position of an earlier attempt, before what that has made is removed. Returns in
 * `*out` the progress of one that begins anew; `progress` may be NULL.
 */
MUST_CHECK struct error *progress_begin_anew(const struct progress *progress, struct progress *out);

void progress_rest(const struct progress *progress, uint32_t ms);
void progress_pause(const struct progress *progress, uint32_t ms);

/* A range of bytes of an image. */
struct extent {
    uint64_t offset;
    uint64_t size;
};

/*
 * Gets extents in ascending order, merged, with gaps between them. An error ends the walk, which
 * returns it.
 */
struct extent_sink {
    struct error *(*take)(void *context, const struct extent *extent);
    void *context;
};

/* A volume or snapshot in a back end. */
struct backend_entry {
    struct data data;
    bool is_whole; /* false: left by an interrupted copy; only good for backend_remove */
};

typedef struct error *backend_found(void *context, const struct backend_entry *entry);

struct backend;
struct copying;

struct backend_options {
    const char *directory; /* for all its data; exists */
    const struct log *log;
    const char *pool_device; /* block device for the pool; NULL: a file */
    uint64_t pool_bytes;     /* size of the file; 0: chooses */
    bool pool_is_allocated;  /* the file gets all its blocks at once */
    bool is_known;           /* its data was in the directory before; set by backend_open.c */
    /*
     * Allows switching on quotas even if the directory is on a btrfs that is not skycap's. Simple
     * quotas change the file system permanently: kernels before 6.7 cannot mount it any more. If
     * this is false, trees have limits there only if quotas are on already.
     */
    bool may_switch_quotas_on;
};

struct backend_ops {
    const char *name;
    bool is_volatile; /* its data is lost when the machine goes down */
    bool compresses;
    const struct copying *copying; /* if it copies file by file: copying.h; or NULL */
    /* The directory is locked (flock) during these two. */
    struct error *(*open)(const struct backend_options *options, struct backend **out);
    void (*close)(struct backend *backend);
    /* Called before any function below except `tend`. NULL: it is always ready. */
    struct error *(*wake)(struct backend *backend);
    /* An empty volume. */
    struct error *(*create)(struct backend *backend, const struct data *data,
                            const struct data_settings *settings);
    /*
     * Makes `to` a copy of `from`. Each may be a volume or a snapshot, of the same kind. An image
     * does not get smaller.
     */
    struct error *(*copy)(struct backend *backend, const struct data *from, const struct data *to,
                          const struct data_settings *settings, const struct progress *progress);
    /*
     * Takes snapshots of several volumes at one instant, all or none. ABORTED: no common instant
     * was found, try again. `notes`: NULL, or one for each.
     */
    struct error *(*snapshot_group)(struct backend *backend, const struct data *const *from,
                                    const struct data *const *to, const struct data_note *notes,
                                    size_t count);
    /* Success if it does not exist. Removes incomplete data too. */
    struct error *(*remove)(struct backend *backend, const struct data *data);
    /* Grows an image or changes the limits of a tree; durable when it returns. */
    struct error *(*change)(struct backend *backend, const struct data *data,
                            const struct data_settings *settings);
    /*
     * Whether a size or a parameter is not in force, so that `change` would repair it. NULL: cannot
     * tell.
     */
    struct error *(*differs)(struct backend *backend, const struct data *data,
                             const struct data_settings *settings, bool *differs);
    struct error *(*usage)(struct backend *backend, const struct data *data,
                           struct data_usage *usage);
    struct error *(*capacity)(struct backend *backend, struct backend_capacity *capacity);
    /*
     * UNAVAILABLE if nothing can be written at the moment, with the reason and what to do. NULL:
     * writing is always possible.
     */
    struct error *(*check)(struct backend *backend);
    /* Errors of the devices below it. NULL: it cannot tell. */
    struct error *(*devices)(struct backend *backend, struct backend_devices *out);
    /* The absolute path of a tree's directory or an image's file. */
    struct error *(*path)(struct backend *backend, const struct data *data, char *out, size_t size);
    /* Lists everything, for the sweep at start. */
    struct error *(*list)(struct backend *backend, backend_found *found, void *context);
    /*
     * The allocated bytes of an image, from `offset` on. With `base`, all bytes that differ from
     * it, and perhaps some that do not. The cost depends on the number of extents, not on the size.
     * FAILED_PRECONDITION if the file system cannot tell changes.
     */
    struct error *(*extents)(struct backend *backend, const struct data *data,
                             const struct data *base, uint64_t offset,
                             const struct extent_sink *sink);
    /* Replaces only the note. */
    struct error *(*write_note)(struct backend *backend, const struct data *data, const void *note,
                                size_t size);
    struct error *(*read_note)(struct backend *backend, const struct data *data, void *note,
                               size_t room, size_t *size);
    /*
     * Makes everything that was made, changed or removed until now durable. NULL if nothing is
     * durable.
     */
    struct error *(*sync)(struct backend *backend);
    /* Background work, called every other second by one thread at a time. NULL: none. */
    struct error *(*tend)(struct backend *backend);
};

/* The beginning of every back end's own struct. `open` sets the flags, and they do not change. */
struct backend {
    const struct backend_ops *ops;
    struct backend *next;    /* of several: the next one */
    int lock;                /* the directory it was opened in; only for backend_open.c */
    char *path;              /* where the layout (layout.h) begins, absolute; owned */
    int root;                /* the same directory, open */
    bool copies_are_instant; /* the cost of a copy does not depend on the amount of data */
    bool cuts_images;        /* a copy of an image is of one instant, even if it is written to */
    bool enforces_tree_size; /* writing to a full tree fails */
    bool finds_changes;      /* extents works with a base */
};

/* All back ends, with a NULL at the end (table.c). */
extern const struct backend_ops *const all_backends[];

/*
 * Opens a back end by name. "auto" chooses the best that works in the directory, and logs the
 * choice and the reason.
 */
MUST_CHECK struct error *backend_open(const char *name, const struct backend_options *options,
                                      struct backend **out);
void backend_close(struct backend *backend);

/*
 * Opens several back ends. The first name is the default; its data is in the directory as if it
 * were the only one. The data of any other is in DIRECTORY/backends/NAME. A back end that has been
 * used there is opened again even if it is not named.
 *
 * The result is the first back end and stands for all of them: every function below finds the back
 * end by the handle. Handles of the others end in "-NAME". The flags, `ops` and capacity are
 * those of the first. FAILED_PRECONDITION: the first is volatile.
 */
MUST_CHECK struct error *backend_open_several(const char *const *names, size_t count,
                                              const struct backend_options *options,
                                              struct backend **out);

/* The back end that holds the data with this handle. */
struct backend *backend_of(struct backend *backend, const char *handle);

/* A back end of the table by name; NULL if there is none. */
const struct backend_ops *backend_find_ops(const char *name);

/* A back end in use by name. INVALID_ARGUMENT lists those in use. */
MUST_CHECK struct error *backend_find(struct backend *backend, const char *name,
                                      struct backend **out);

/* Marks a new handle as one of `home`, which is among the back ends. */
void backend_mark_handle(const struct backend *backend, const struct backend *home,
                         char handle[BACKEND_HANDLE_SIZE]);

/*
 * Whether the cost of a copy does not depend on the amount of data. Copies between back ends are
 * never instant.
 */
bool backend_copies_instantly(struct backend *backend, const struct data *from,
                              const struct data *to);

/* Whether a copy takes little time and shares all data: it is instant, or one of an image. */
bool backend_copies_cheaply(struct backend *backend, const struct data *from,
                            const struct data *to);

/* Whether a copy of an image is of one instant. `to` NULL: wherever it is copied to. */
bool backend_cuts_images(struct backend *backend, const struct data *from, const struct data *to);

MUST_CHECK struct error *backend_create(struct backend *backend, const struct data *data,
                                        const struct data_settings *settings);
MUST_CHECK struct error *backend_copy(struct backend *backend, const struct data *from,
                                      const struct data *to, const struct data_settings *settings,
                                      const struct progress *progress);
MUST_CHECK struct error *backend_snapshot_group(struct backend *backend,
                                                const struct data *const *from,
                                                const struct data *const *to,
                                                const struct data_note *notes, size_t count);
MUST_CHECK struct error *backend_remove(struct backend *backend, const struct data *data);
MUST_CHECK struct error *backend_change(struct backend *backend, const struct data *data,
                                        const struct data_settings *settings);
/* False if the back end cannot tell. */
MUST_CHECK struct error *backend_differs(struct backend *backend, const struct data *data,
                                         const struct data_settings *settings, bool *differs);
MUST_CHECK struct error *backend_usage(struct backend *backend, const struct data *data,
                                       struct data_usage *usage);
MUST_CHECK struct error *backend_capacity(struct backend *backend,
                                          struct backend_capacity *capacity);
/* Of one back end. No devices if it cannot tell. */
MUST_CHECK struct error *backend_devices(struct backend *backend, struct backend_devices *out);
/* Whether it can be used and written to. The error says why not and what to do. */
MUST_CHECK struct error *backend_check(struct backend *backend);
MUST_CHECK struct error *backend_path(struct backend *backend, const struct data *data, char *out,
                                      size_t size);
MUST_CHECK struct error *backend_list(struct backend *backend, backend_found *found, void *context);
MUST_CHECK struct error *backend_extents(struct backend *backend, const struct data *data,
                                         const struct data *base, uint64_t offset,
                                         const struct extent_sink *sink);
MUST_CHECK struct error *backend_write_note(struct backend *backend, const struct data *data,
                                            const void *note, size_t size);
MUST_CHECK struct error *backend_read_note(struct backend *backend, const struct data *data,
                                           void *note, size_t room, size_t *size);
MUST_CHECK struct error *backend_sync(struct backend *backend);

/* Whether any of them has background work. */
bool backend_needs_tending(const struct backend *backend);

/* Runs the background work of each back end, even if that of another fails. */
MUST_CHECK struct error *backend_tend(struct backend *backend);

/*
 * Makes a volume `to` in one back end with the contents of `from` in another, file by file or block
 * by block; durable when it returns. Goes on where an earlier attempt was, if that left a position.
 */
MUST_CHECK struct error *backend_copy_between(struct backend *from_backend, const struct data *from,
                                              struct backend *to_backend, const struct data *to,
                                              const struct data_settings *settings,
                                              const struct progress *progress);

#endif
