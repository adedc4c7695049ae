/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the objects of a repository are: whole, immutable pieces of bytes under names of 32 bytes.
 * An object's key is KIND/NAME in hex, so that every file system and every S3 server accepts it.
 * Safe from any thread.
 */
#ifndef REPOSITORY_OBJECTS_H
#define REPOSITORY_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "repository/repository.h"

enum object_kind {
    OBJECT_CONFIG = 0,
    OBJECT_PACK = 1,
    OBJECT_INDEX = 2,
    OBJECT_SNAPSHOT = 3,
    OBJECT_WRITER = 4,
    OBJECT_GARBAGE = 5,
    OBJECT_WITNESS = 6,
    OBJECT_KINDS
};

#define OBJECT_NAME_BYTES 32u
#define OBJECT_KEY_BYTES 68u         /* "KIND/NAME" with its NUL */
#define OBJECT_BYTES_MAX (16u << 20) /* of any object */

struct object_name {
    uint8_t bytes[OBJECT_NAME_BYTES];
};

enum objects_put {
    OBJECTS_NOW,     /* durable when it returns */
    OBJECTS_SOON,    /* durable, and visible, after objects_sync at the latest */
    OBJECTS_REPLACE, /* durable when it returns, in place of one of the same name */
};

typedef struct error *objects_each(const struct object_name *name, uint64_t size, void *context);

struct objects;

struct objects_ops {
    struct error *(*put)(struct objects *objects, const char *key, const uint8_t *bytes,
                         size_t size, enum objects_put how);
    struct error *(*sync)(struct objects *objects);
    struct error *(*get)(struct objects *objects, const char *key, uint64_t offset, uint8_t *bytes,
                         size_t size);
    /* `age_ms`: since it was put, by the clock of the place; 0: it does not tell. */
    struct error *(*size)(struct objects *objects, const char *key, uint64_t *size,
                          uint64_t *age_ms);
    struct error *(*list)(struct objects *objects, enum object_kind kind, objects_each *each,
                          void *context);
    struct error *(*delete)(struct objects *objects, const char *key);
    void (*close)(struct objects *objects);
    unsigned uploads; /* that are worth having under way at once */
};

/* The first member of each implementation's own struct. */
struct objects {
    const struct objects_ops *ops;
    atomic_uint losses; /* how often objects that were put "soon" were lost, for any user */
};

/* `creates`: the place is made if it is missing. */
MUST_CHECK struct error *objects_open(const struct repository_options *options, bool creates,
                                      struct objects **out);
/* NULL is fine. */
void objects_close(struct objects *objects);

/* Whole or not at all. With OBJECTS_NOW and _SOON, an object of that name stays as it is. */
MUST_CHECK struct error *objects_put(struct objects *objects, enum object_kind kind,
                                     const struct object_name *name, const void *bytes, size_t size,
                                     enum objects_put how);
/*
 * Makes durable what was put "soon", by any thread. After an error, `losses` has changed: it may be
 * another user's object that is lost.
 */
MUST_CHECK struct error *objects_sync(struct objects *objects);

/* Exactly these bytes. NOT_FOUND: no such object. DATA_LOSS: it is too short. */
MUST_CHECK struct error *objects_get(struct objects *objects, enum object_kind kind,
                                     const struct object_name *name, uint64_t offset, void *bytes,
                                     size_t size);
MUST_CHECK struct error *objects_size(struct objects *objects, enum object_kind kind,
                                      const struct object_name *name, uint64_t *size);

/* How long ago it was put, by the clock of the place; 0: the place does not tell. */
MUST_CHECK struct error *objects_age(struct objects *objects, enum object_kind kind,
                                     const struct object_name *name, uint64_t *age_ms);

/* Calls `each` for the objects of a kind, in any order, until it gives an error. */
MUST_CHECK struct error *objects_list(struct objects *objects, enum object_kind kind,
                                      objects_each *each, void *context);

/* Appends the names of all objects of a kind, OBJECT_NAME_BYTES each. */
MUST_CHECK struct error *objects_list_names(struct objects *objects, enum object_kind kind,
                                            struct buffer *names);
/* The name at this byte of such a row. */
struct object_name objects_name_at(const struct buffer *names, size_t at);

/* Durable. An object that is not there is fine. */
MUST_CHECK struct error *objects_delete(struct objects *objects, enum object_kind kind,
                                        const struct object_name *name);

void object_key_print(enum object_kind kind, const struct object_name *name,
                      char key[OBJECT_KEY_BYTES]);
/* The only object whose name does not tell its contents. Of several that are put, one stays. */
bool object_key_is_config(const char *key);
/* 64 lower-case hex digits and no more. */
bool object_name_parse(const char *text, struct object_name *out);

/* ---- the places ---- */

MUST_CHECK struct error *objects_directory_open(const char *path, bool creates,
                                                struct objects **out);
/* The bucket exists. */
MUST_CHECK struct error *objects_s3_open(const struct repository_options *options,
                                         struct objects **out);

#endif
