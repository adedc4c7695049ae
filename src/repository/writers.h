/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at work in the repository: each writer has an object while it lives. Prune does not delete
 * what a writer may be about to use. A writer that was killed, or whose repository could not be
 * reached when it ended, leaves its object. It is taken for dead if its process is missing, on the
 * same machine; if it is our own, or of an earlier process with our data directory, and not in the
 * roster; or if it was not refreshed for a day.
 */
#ifndef REPOSITORY_WRITERS_H
#define REPOSITORY_WRITERS_H

#include "repository/repository_internal.h"

#define WRITERS_REFRESH_MS (UINT64_C(10) * 60 * 1000)
#define WRITERS_STALE_MS (UINT64_C(24) * 60 * 60 * 1000)

enum writers_role { WRITERS_EXPORT, WRITERS_PRUNE };

/* Our own object. */
struct writers_own {
    struct object_name name;
    enum writers_role role;
    uint64_t started_ms;   /* Unix time */
    uint64_t refreshed_at; /* on the clock that runs while the machine sleeps */
};

MUST_CHECK struct error *writers_register(struct repository *repository, enum writers_role role,
                                          struct writers_own *out);
/* ABORTED: others take this writer for dead. */
MUST_CHECK struct error *writers_check(struct repository *repository,
                                       const struct writers_own *own);
/* Refreshes the object if it is time. ABORTED as above. */
MUST_CHECK struct error *writers_refresh(struct repository *repository, struct writers_own *own);
/* After an error the object stays, until a prune of this process or of another finds it. */
MUST_CHECK struct error *writers_end(struct repository *repository, const struct writers_own *own);

struct writers_found {
    struct object_name name;
    enum writers_role role;
    bool is_dead;
};

/*
 * Calls `each` for all writers. A damaged object is taken for an export that lives until the object
 * is a day old.
 */
MUST_CHECK struct error *writers_list(struct repository *repository,
                                      struct error *(*each)(const struct writers_found *writer,
                                                            void *context),
                                      void *context);

/* ---- work that only one may do ---- */

/*
 * Registers a prune or a rebuild, and removes the objects of dead writers. ABORTED: another is at
 * work. Two that begin at once may both be refused. Call writers_end_alone in any case.
 */
MUST_CHECK struct error *writers_begin_alone(struct repository *repository,
                                             struct writers_own *own);
/* Gives `error` back, or that of the end. */
MUST_CHECK struct error *writers_end_alone(struct repository *repository,
                                           const struct writers_own *own, struct error *error);

#endif
