/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where data lives. A back end keeps volumes and snapshots under handles that skycap made (never a
 * name or id of a request); it knows nothing of rows, names or CSI.
 *
 * A back end is one file that ends in a `const struct backend_ops`, and one line in table.c. A NULL
 * function means "cannot", and every capability that is told to the outside is derived from that.
 * Callers use the functions of this header (backend.c), which check what all back ends have in
 * common and refuse with UNIMPLEMENTED what one cannot.
 *
 * Every function that makes something is idempotent: made again under the same handle it finishes
 * or replaces what a crash has left, because nothing is visible to anybody before its row is in the
 * store. All may block; different handles may be worked on at the same time.
 *
 * What a power failure leaves: copies and snapshots that were answered are there, and so are
 * changes, each with the note that came with it. A volume that was made empty, a note that was
 * written alone and a removal may be undone for as long as the file system has not committed by
 * itself (btrfs: 30 s): a row whose volume is missing after a power failure is made again, empty as
 * it was (whatever its user had made durable would have made the volume durable too).
 */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

#define BACKEND_HANDLE_SIZE 64         /* with the NUL; [a-z0-9-]+ */
#define BACKEND_NOTE_SIZE (12u * 1024) /* at most */
#define BACKEND_BLOCK 512u             /* the size of an image is a multiple of it */

enum volume_kind {
    KIND_TREE,  /* a directory */
    KIND_IMAGE, /* one disk image in a file: raw block, or a file system of its own */
};

enum data_role {
    ROLE_VOLUME,
    ROLE_SNAPSHOT, /* read-only */
};

/* One piece of data: where in the back end, and what. */
struct data {
    char handle[BACKEND_HANDLE_SIZE];
    enum volume_kind kind;
    enum data_role role;
};

/*
 * What stands beside the data and survives the loss of the store: the row, to rebuild it from. No
 * bytes: no note.
 */
struct data_note {
    const void *bytes;
    size_t size;
};

struct data_settings {
    /* 0: trees have no limit, copies of an image have the size of the source */
    uint64_t size_bytes;
    const char *compression; /* NULL, "none", "zstd", "lzo", "zlib" */
    bool nocow;              /* no copy on write, no checksums */
    struct data_note note;   /* there as soon as the data is, and as durable */
};

#define DATA_USAGE_UNKNOWN UINT64_MAX

struct data_usage {
    uint64_t total_bytes; /* the size that is enforced; 0: none */
    uint64_t used_bytes;
    uint64_t total_inodes; /* 0: not limited */
    uint64_t used_inodes;  /* of a tree; DATA_USAGE_UNKNOWN: they were too many to count */
    bool is_counted;       /* file by file, which takes its time */
};

struct backend_capacity {
    uint64_t total_bytes;
    uint64_t available_bytes;
    uint64_t largest_volume_bytes; /* 0: as available */
    bool is_limited_below;         /* a pool has more, the disk below it has not */
};

/*
 * How far a long piece of work is. `cancelled` is asked now and then; true ends it with CANCELLED
 * and cleans up.
 */
struct progress {
    void (*report)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    bool (*cancelled)(void *context);
    void *context;
};

/* A run of bytes of an image. */
struct extent {
    uint64_t offset;
    uint64_t size;
};

/*
 * Takes extents in ascending order, merged and apart from each other; an error ends the walk and
 * comes back from it.
 */
struct extent_sink {
    struct error *(*take)(void *context, const struct extent *extent);
    void *context;
};

/* One thing that a back end holds. */
struct backend_entry {
    struct data data;
    bool is_whole; /* false: what an interrupted copy has left; only good for backend_remove */
};

typedef struct error *backend_found(void *context, const struct backend_entry *entry);

struct backend;

struct backend_options {
    const char *directory; /* where it may keep everything; exists */
    const struct log *log;
    uint64_t pool_bytes; /* btrfs pool image: its size; 0: choose */
    bool is_known;       /* its data has been in the directory before; set by backend_open.c */
    /*
     * Quotas may be switched on also where the directory is on a btrfs that is not ours. Simple
     * quotas change the file system for good: kernels before 6.7 cannot mount it any more. Without
     * it trees have limits there only if quotas are on already.
     */
    bool may_switch_quotas_on;
};

struct backend_ops {
    const char *name;
    bool is_volatile; /* its data does not outlive the machine's uptime */
    bool compresses;
    /* The directory is locked (flock) while one of these two runs. */
    struct error *(*open)(const struct backend_options *options, struct backend **out);
    void (*close)(struct backend *backend);
    /* Called before any function below but `tend`. NULL: it is always ready. */
    struct error *(*wake)(struct backend *backend);
    /* An empty volume. */
    struct error *(*create)(struct backend *backend, const struct data *data,
                            const struct data_settings *settings);
    /*
     * `to` becomes a copy of `from` (either may be a volume or a snapshot; same kind). Never
     * smaller than an image was.
     */
    struct error *(*copy)(struct backend *backend, const struct data *from, const struct data *to,
                          const struct data_settings *settings, const struct progress *progress);
    /*
     * Snapshots of several volumes at one instant, all or none. ABORTED: no instant was found for
     * them, try again. `notes`: NULL, or one for each.
     */
    struct error *(*snapshot_group)(struct backend *backend, const struct data *const *from,
                                    const struct data *const *to, const struct data_note *notes,
                                    size_t count);
    /* Gone or never there is success. Takes also what is not whole. */
    struct error *(*remove)(struct backend *backend, const struct data *data);
    /* Grows an image, or changes what limits a tree; durable when it returns. */
    struct error *(*change)(struct backend *backend, const struct data *data,
                            const struct data_settings *settings);
    /*
     * Whether a size or a parameter is not in force: `change` would put it right. NULL: cannot
     * tell.
     */
    struct error *(*differs)(struct backend *backend, const struct data *data,
                             const struct data_settings *settings, bool *differs);
    struct error *(*usage)(struct backend *backend, const struct data *data,
                           struct data_usage *usage);
    struct error *(*capacity)(struct backend *backend, struct backend_capacity *capacity);
    /*
     * Why nothing can be written at the moment, and what to do: UNAVAILABLE. NULL: it always can.
     */
    struct error *(*check)(struct backend *backend);
    /* The directory of a tree, the file of an image; absolute. */
    struct error *(*path)(struct backend *backend, const struct data *data, char *out, size_t size);
    /* Everything that is there, for the sweep at start. */
    struct error *(*list)(struct backend *backend, backend_found *found, void *context);
    /*
     * The bytes of an image that are allocated; with `base` those that may differ from it (all that
     * do are among them). From `offset` on. The work is proportional to the extents, not to the
     * size. FAILED_PRECONDITION if the file system cannot tell changes.
     */
    struct error *(*extents)(struct backend *backend, const struct data *data,
                             const struct data *base, uint64_t offset,
                             const struct extent_sink *sink);
    /* Another note, alone. */
    struct error *(*write_note)(struct backend *backend, const struct data *data, const void *note,
                                size_t size);
    struct error *(*read_note)(struct backend *backend, const struct data *data, void *note,
                               size_t room, size_t *size);
    /*
     * What was made, changed or removed until now outlasts a power failure. NULL where nothing
     * does.
     */
    struct error *(*sync)(struct backend *backend);
    /* Makes the place itself larger, where it has a size of its own; never smaller. */
    struct error *(*grow)(struct backend *backend, uint64_t size_bytes);
    /* What it has to do by itself, every other second, by one thread at a time. NULL: nothing. */
    struct error *(*tend)(struct backend *backend);
};

/* What every back end's own struct begins with. The flags are found out by open and stay. */
struct backend {
    const struct backend_ops *ops;
    struct backend *next;    /* of several: the one behind it */
    int lock;                /* the directory it was opened in; only for backend_open.c */
    char *path;              /* where the layout (layout.h) begins, absolute; owned */
    int root;                /* the same directory, open */
    bool copies_are_instant; /* copy costs the same for any amount of data */
    bool cuts_images; /* a copy of an image is of one instant, whoever writes to it meanwhile */
    bool enforces_tree_size; /* a tree that is full says so to its writer */
    bool finds_changes;      /* extents works with a base */
};

/* All that there are, NULL at the end (table.c). */
extern const struct backend_ops *const all_backends[];

/* By name, or "auto": the best that works in the directory, and says in the log which and why. */
MUST_CHECK struct error *backend_open(const char *name, const struct backend_options *options,
                                      struct backend **out);
void backend_close(struct backend *backend);

/*
 * Several at once. The first name is the default, and lives in the directory as if it were alone;
 * any other one in DIRECTORY/backends/NAME. What has been used there once is opened again, named or
 * not.
 *
 * What comes out stands for all of them: it is the first, and every function below finds out by the
 * handle whose data it is. Handles of the others end in "-NAME". Flags, `ops`, capacity and grow
 * are those of the first. FAILED_PRECONDITION: the first is volatile.
 */
MUST_CHECK struct error *backend_open_several(const char *const *names, size_t count,
                                              const struct backend_options *options,
                                              struct backend **out);

/* The one that keeps what has this handle: of several, or the only one. */
struct backend *backend_of(struct backend *backend, const char *handle);

/* A back end of the table; NULL if there is none of that name. */
const struct backend_ops *backend_find_ops(const char *name);

/* INVALID_ARGUMENT says which there are. */
MUST_CHECK struct error *backend_find(struct backend *backend, const char *name,
                                      struct backend **out);

/* Makes a new handle one of `home`'s, which is among them. */
void backend_mark_handle(const struct backend *backend, const struct backend *home,
                         char handle[BACKEND_HANDLE_SIZE]);

/*
 * Whether a copy costs the same for any amount of data. From one back end to another it never does.
 */
bool backend_copies_instantly(struct backend *backend, const struct data *from,
                              const struct data *to);

/* Whether a copy of an image is of one instant. `to` is NULL: wherever it may be copied to. */
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
/* Of a back end that cannot tell: no. */
MUST_CHECK struct error *backend_differs(struct backend *backend, const struct data *data,
                                         const struct data_settings *settings, bool *differs);
MUST_CHECK struct error *backend_usage(struct backend *backend, const struct data *data,
                                       struct data_usage *usage);
MUST_CHECK struct error *backend_capacity(struct backend *backend,
                                          struct backend_capacity *capacity);
/* Can it be used, and written to? The error says why not and what to do. */
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
MUST_CHECK struct error *backend_grow(struct backend *backend, uint64_t size_bytes);

/* Has one of them something to do by itself? */
bool backend_needs_tending(const struct backend *backend);

/* Each of several has its turn, whether or not another one fails. */
MUST_CHECK struct error *backend_tend(struct backend *backend);

/*
 * A volume `to` of one back end with the contents of `from` in another: file by file, or block by
 * block; durable when it returns.
 */
MUST_CHECK struct error *backend_copy_between(struct backend *from_backend, const struct data *from,
                                              struct backend *to_backend, const struct data *to,
                                              const struct data_settings *settings,
                                              const struct progress *progress);

#endif
