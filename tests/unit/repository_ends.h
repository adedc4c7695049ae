/* SPDX-License-Identifier: Apache-2.0 */
/* A repository in a directory of its own, for unit tests. */
#ifndef UNIT_REPOSITORY_ENDS_H
#define UNIT_REPOSITORY_ENDS_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "check.h"
#include "repository/repository.h"
#include "tests/repository/chunks.h"

#ifndef ENDS_PLACE
#define ENDS_PLACE "/tmp"
#endif

struct ends {
    char directory[64];
    char url[96], key_file[96], cache[96];
    struct repository_options options;
    struct repository *repository;
};

/* True if there was no error; prints and frees it otherwise. */
static inline bool
went_well(struct error *error)
{
    if (error)
        fprintf(stderr, "%s: %s\n", error_code_name(error->code), error->message);
    bool is_good = !error;
    error_free(error);
    return is_good;
}

static inline void
ends_open(struct ends *ends)
{
    repository_close(ends->repository);
    ends->repository = NULL;
    CHECK(went_well(repository_open(&ends->options, &ends->repository)));
}

static inline void
ends_make(struct ends *ends, bool encrypts)
{
    *ends = (struct ends){.directory = ENDS_PLACE "/skycap-repository-XXXXXX"};
    CHECK(mkdtemp(ends->directory) != NULL);
    snprintf(ends->url, sizeof ends->url, "file://%s/repository", ends->directory);
    snprintf(ends->key_file, sizeof ends->key_file, "%s/key", ends->directory);
    snprintf(ends->cache, sizeof ends->cache, "%s/cache", ends->directory);
    ends->options = (struct repository_options){.url = ends->url,
                                                .key_file = encrypts ? ends->key_file : NULL,
                                                .cache_directory = ends->cache};
    CHECK(went_well(repository_create(&ends->options)));
    ends_open(ends);
}

static inline void
ends_clear(struct ends *ends)
{
    char command[128];
    repository_close(ends->repository);
    snprintf(command, sizeof command, "rm -rf %s", ends->directory);
    CHECK_NUMBER(system(command), 0);
}

#endif
