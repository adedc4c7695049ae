/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repository keeps the contents of exported snapshots: chunks, each stored once, and records that
 * refer to them. It is a directory or a bucket of S3-compatible storage; docs/repository.md has the
 * format.
 *
 * An export opens a writer, puts chunks, and commits one record: then the snapshot is there, and
 * not before. Several writers may be at work, in several processes and machines, beside a prune.
 * Memory does not grow with the number of chunks. All functions may be called from any thread,
 * except as noted.
 */
#ifndef REPOSITORY_REPOSITORY_H
#define REPOSITORY_REPOSITORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"

#define REPOSITORY_ID_BYTES 32u
#define REPOSITORY_CHUNK_MAX (4u << 20)  /* bytes of a chunk */
#define REPOSITORY_RECORD_MAX (8u << 20) /* bytes of a snapshot's record */
#define REPOSITORY_NAME_BYTES 65u        /* of an object in hex, with its NUL */

/* The id of a chunk: a function of its contents and the repository's key. */
struct repository_id {
    uint8_t bytes[REPOSITORY_ID_BYTES];
};

struct objects;

/* A repository that another node keeps. */
struct repository_node {
    const char *node, *name;
    bool creates;                   /* its directory is made if it is missing */
    const atomic_bool *is_stopping; /* as in repository_options */
};

/* How other nodes are reached. Outlives the repositories. */
struct repository_nodes {
    struct error *(*open)(void *context, const struct repository_node *what, struct objects **out);
    void *context;
};

/* Which writers are open in this process: see below. */
struct repository_roster;

struct repository_options {
    const char *url;      /* file:///PATH, s3://HOST[:PORT]/BUCKET[/PREFIX], or node://NODE/NAME */
    const char *key_file; /* NULL: the repository is not encrypted */
    const char *credentials_file; /* for S3 */
    const char *authorities_file; /* for S3: certificates to trust; NULL: those of the system */
    const char *region;           /* for S3; NULL: us-east-1 */
    bool uses_plain_http;         /* for S3: no TLS; for tests */
    const struct repository_nodes *nodes; /* NULL: there are none */
    const char *cache_directory;          /* for the local index; NULL: a temporary one in /tmp */
    const struct log *log;                /* may be NULL */
    unsigned threads; /* that compress and seal; 0: one for each CPU, at most four */
    /*
     * Once it is true, requests to a server that does not answer are not repeated. Outlives the
     * repository. NULL: they are, for some seconds.
     */
    const atomic_bool *is_stopping;
    struct repository_roster *roster; /* outlives the repository; NULL: none */
};

/*
 * The roster of a process, for all repositories that it opens. With it, prune notices what the
 * process itself has left behind while a repository could not be reached, and what earlier
 * processes of the node with the same directory have, also before a reboot. Without it, prune
 * waits until the process has ended, or for a day. `directory`: where a small file is kept; NULL:
 * nowhere. Only one process at a time uses the file; the others do without.
 */
MUST_CHECK struct error *repository_roster_open(const char *directory, const char *node_id,
                                                struct repository_roster **out);
/* NULL is fine. */
void repository_roster_close(struct repository_roster *roster);

/*
 * UNAVAILABLE: its server does not answer. Anything else is told by who opens it. One small
 * request, without a key.
 */
MUST_CHECK struct error *repository_probe(const struct repository_options *options);

struct repository;

/*
 * Makes a repository. The key file is made if it does not exist. ALREADY_EXISTS: there is a
 * repository.
 */
MUST_CHECK struct error *repository_create(const struct repository_options *options);

/*
 * NOT_FOUND: there is no repository. FAILED_PRECONDITION: the key does not open it. The options'
 * texts need not outlive the call, the log must.
 */
MUST_CHECK struct error *repository_open(const struct repository_options *options,
                                         struct repository **out);
/* NULL is fine. Writers are closed before. */
void repository_close(struct repository *repository);
/* For `struct repository *r AUTO(repository_cleanup) = NULL`. */
void repository_cleanup(struct repository **repository);

/* 32 secret bytes, the same for all who open it: the boundaries of chunks are made from them. */
const uint8_t *repository_chunker_secret(const struct repository *repository);

/* The repository's own id, in hex. */
const char *repository_id_text(const struct repository *repository);

/* For a temporary cache_db. */
const char *repository_work_directory(const struct repository *repository);

/* ---- writing ---- */

struct repository_writer;

struct repository_counters {
    uint64_t chunks;        /* put or reused */
    uint64_t bytes;         /* of chunks that were put */
    uint64_t chunks_reused; /* the repository had them */
    uint64_t bytes_new;     /* of chunks that it had not */
    uint64_t bytes_stored;  /* what those use: compressed, sealed, with their packs' lists */
    uint64_t packs;
};

MUST_CHECK struct error *repository_writer_open(struct repository *repository,
                                                struct repository_writer **out);

/*
 * Puts a chunk of 1 to REPOSITORY_CHUNK_MAX bytes and gives its id. The bytes are copied if they
 * are new. Waits while too much is under way. An error of this or an earlier chunk is final: the
 * writer can only be closed.
 */
MUST_CHECK struct error *repository_writer_put(struct repository_writer *writer, const void *bytes,
                                               size_t size, struct repository_id *id);

/*
 * Whether the repository has a chunk that an earlier snapshot refers to. If so, the new snapshot
 * may refer to it too: prune keeps it while the writer is open. If not, its bytes must be put.
 */
MUST_CHECK struct error *repository_writer_reuse(struct repository_writer *writer,
                                                 const struct repository_id *id, bool *known);

/*
 * Whether packs that the index names were missing when the writer was opened. Their chunks count as
 * ones that the repository does not have: what is put is stored anew. A snapshot whose chunks are
 * taken over without looking at each may lack some.
 */
bool repository_writer_has_losses(const struct repository_writer *writer);

/* Everything that was put so far survives a power failure, and other writers find it. */
MUST_CHECK struct error *repository_writer_flush(struct repository_writer *writer);

/*
 * Flushes: what was put stays, for snapshots that refer to it already. ABORTED: the writer was
 * quiet for more than a day and is taken for dead; begin again.
 */
MUST_CHECK struct error *repository_writer_finish(struct repository_writer *writer);

/*
 * Flushes, then makes a snapshot of the record, which may refer to all chunks put or reused by this
 * writer; `name` is its name in hex. When it returns NULL the snapshot is there for good. ABORTED
 * as above.
 */
MUST_CHECK struct error *repository_writer_commit(struct repository_writer *writer,
                                                  const void *record, size_t size,
                                                  char name[REPOSITORY_NAME_BYTES]);

void repository_writer_count(struct repository_writer *writer, struct repository_counters *out);

/* What was put and not committed is left for the next writer, or for prune. NULL is fine. */
void repository_writer_close(struct repository_writer *writer);
void repository_writer_cleanup(struct repository_writer **writer);

/* ---- reading ---- */

/*
 * Reads a chunk into `bytes`, which has REPOSITORY_CHUNK_MAX bytes, and checks it against its id.
 * NOT_FOUND: there is no such chunk. DATA_LOSS names the object that is damaged or missing.
 */
MUST_CHECK struct error *repository_read(struct repository *repository,
                                         const struct repository_id *id, void *bytes, size_t *size);

/* ---- snapshots ---- */

/* Calls `each` for every snapshot, in the order of names, until it gives an error. */
MUST_CHECK struct error *repository_snapshots_list(struct repository *repository,
                                                   struct error *(*each)(const char *name,
                                                                         void *context),
                                                   void *context);
/* Replaces `record`. NOT_FOUND, or DATA_LOSS. */
MUST_CHECK struct error *repository_snapshot_get(struct repository *repository, const char *name,
                                                 struct buffer *record);
/*
 * The same for one that was listed just now: a record never changes, so it is fetched once and then
 * read from the cache directory. Says nothing about damage in the repository, unless
 * repository_snapshot_get has found it.
 */
MUST_CHECK struct error *repository_snapshot_get_listed(struct repository *repository,
                                                        const char *name, struct buffer *record);
/* Durable. The space is freed by repository_prune. NOT_FOUND if there is none. */
MUST_CHECK struct error *repository_snapshot_remove(struct repository *repository,
                                                    const char *name);

/*
 * Whether the repository has the snapshot, for a repository that is not open: it costs two small
 * requests and no key. An error: it cannot be told.
 */
MUST_CHECK struct error *repository_has_snapshot(const struct repository_options *options,
                                                 const char *name, bool *has);

/* ---- care ---- */

/* Who is told of the chunks that a snapshot refers to. */
struct repository_visitor {
    /* Called with every chunk, once or more often. */
    struct error *(*take)(const struct repository_id *id, void *context);
    /*
     * Snapshots share parts: chunks that list other chunks. `knows` is asked about a part before it
     * is read; if it is known, what it lists is left out. `note` is called when all of it was
     * listed. Both may be NULL.
     */
    struct error *(*knows)(const struct repository_id *part, bool *is, void *context);
    struct error *(*note)(const struct repository_id *part, void *context);
    void *context;
};

/*
 * Finds the chunks that a snapshot refers to; the code that writes records implements it. Gives
 * back the errors of the visitor.
 */
struct repository_references {
    struct error *(*list)(struct repository *repository, const void *record, size_t size,
                          const struct repository_visitor *visitor, void *context);
    void *context;
};

/*
 * What a long work tells while it runs: `done` never falls and never exceeds `total`, which may
 * grow. Verify and prune count objects: the packs that they check, rewrite or delete, and the
 * snapshots that they read. Rebuild counts packs. The work ends with CANCELLED soon after
 * `is_cancelled` says so, which is asked for every chunk.
 */
struct repository_progress {
    void (*report)(uint64_t done, uint64_t total, void *context); /* may be NULL */
    bool (*is_cancelled)(void *context);                          /* may be NULL */
    void *context;
};

enum repository_level {
    REPOSITORY_STRUCTURE, /* every chunk in use is listed, and its pack has the right size */
    REPOSITORY_DATA       /* every byte is read and checked */
};

/* Something that is wrong. */
struct repository_finding {
    const char *object;   /* KIND/NAME */
    const char *snapshot; /* one that is affected; NULL: the finding is about the object alone */
    const char *text;
};

struct repository_verify {
    enum repository_level level;
    const struct repository_references *references;
    void (*found)(const struct repository_finding *finding, void *context);
    void *context; /* of `found` */
    struct repository_progress progress;
    /* results */
    uint64_t snapshots, packs, chunks, bytes; /* looked at */
    uint64_t findings;
};

/* Findings are no error. Changes nothing. */
MUST_CHECK struct error *repository_verify(struct repository *repository,
                                           struct repository_verify *verify);

struct repository_prune {
    const struct repository_references *references;
    unsigned least_live_percent; /* packs with fewer live bytes are rewritten; 0: 50 */
    struct repository_progress progress;
    /* results */
    uint64_t snapshots; /* read */
    uint64_t packs_deleted, bytes_deleted;
    uint64_t packs_waiting; /* garbage that a later prune deletes, when a writer has ended */
    uint64_t packs_rewritten, packs_rescued;
};

/*
 * Frees the space of what no snapshot refers to. ABORTED: another prune is at work. DATA_LOSS: a
 * snapshot cannot be read; nothing was deleted then.
 */
MUST_CHECK struct error *repository_prune(struct repository *repository,
                                          struct repository_prune *prune);

/*
 * Makes the index anew from the packs: for packs that no index names; with REPOSITORY_DATA also for
 * those that are damaged. Sound chunks of damaged packs are stored in new ones. `*packs`: how many.
 */
MUST_CHECK struct error *repository_rebuild(struct repository *repository,
                                            enum repository_level level,
                                            const struct repository_progress *progress,
                                            uint64_t *packs);

struct repository_stats {
    uint64_t snapshots;
    uint64_t packs;
    uint64_t chunks;
    uint64_t bytes;        /* of chunks, before compression */
    uint64_t bytes_stored; /* of all objects */
};

MUST_CHECK struct error *repository_stats(struct repository *repository,
                                          struct repository_stats *out);

/* ---- small things ---- */

void repository_id_print(const struct repository_id *id, char text[REPOSITORY_NAME_BYTES]);

#endif
