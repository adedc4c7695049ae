/* SPDX-License-Identifier: Apache-2.0 */
/* Connection files that are read and checked: see candidate.h. */
#include "connections/config/candidate.h"

#include <string.h>

#include "connections/config/known_drivers.h"
#include "connections/config/spec_set.h"

struct connection *
candidate_in_force(const struct candidate *candidate)
{
    return candidate->before ? candidate->before->connection : NULL;
}

bool
candidate_is_unchanged(const struct candidate *candidate)
{
    const struct connection *old = candidate_in_force(candidate);
    const struct directory_file *file = candidate->file;
    return old && !file->trouble && old->text && file->size == old->text_size &&
           memcmp(file->text, old->text, file->size) == 0;
}

void
candidate_init(struct candidate *candidate, const struct directory_file *file,
               const struct connection_slot *before)
{
    *candidate = (struct candidate){.file = file, .before = before};
    arena_init(&candidate->arena, NULL, 0, SIZE_MAX);
    if (candidate_is_unchanged(candidate)) {
        candidate->spec = candidate_in_force(candidate)->spec;
        return;
    }
    candidate->error = file->trouble ? error_new(CODE_INVALID_ARGUMENT, "%s", file->trouble)
                                     : spec_read(file->name, file->text, file->size,
                                                 &candidate->arena, &candidate->spec);
}

void
candidate_clear(struct candidate *candidate)
{
    error_free(candidate->error);
    arena_clear(&candidate->arena);
}

/* While a file is wrong, the last good one stays in force. */
static const struct connection_spec *
spec_that_counts(const struct candidate *candidate)
{
    const struct connection *old = candidate_in_force(candidate);
    return candidate->spec ? candidate->spec : old ? old->spec : NULL;
}

void
candidates_check(struct candidate *candidates, size_t count, const char *node_id,
                 struct store *store, struct arena *arena)
{
    struct spec_set_file *files = arena_alloc(arena, count * sizeof *files);
    for (size_t i = 0; i < count; i++)
        files[i] =
            (struct spec_set_file){candidates[i].file->name, spec_that_counts(&candidates[i]),
                                   candidate_in_force(&candidates[i]) != NULL};
    for (size_t i = 0; i < count; i++) {
        struct candidate *candidate = &candidates[i];
        if (!candidate->error)
            candidate->error = spec_set_check(files, count, i, node_id);
        if (!candidate->error && !candidate_is_unchanged(candidate))
            candidate->error = known_drivers_check(store, candidate->spec);
    }
}
