/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters for the use of a volume at a path: the label of its file system, and the I/O limits of
 * the pod for which it is published.
 */
#ifndef NODE_PARAMETERS_H
#define NODE_PARAMETERS_H

#include "node/use.h"

/*
 * Applies them. `backing` is the volume's, or NULL: looked up if needed. Failures are only logged:
 * a user gets the volume even if a parameter cannot be applied.
 */
void parameters_try(struct engine *engine, const volume_record *volume, const struct use *use,
                    struct backing *backing, struct arena *arena);

/* Applies them wherever the volume is used. */
MUST_CHECK struct error *parameters_apply_all(struct engine *engine, const volume_record *volume,
                                              struct arena *arena);

/* Applies the I/O limits of all published volumes again. */
MUST_CHECK struct error *parameters_renew_limits(struct engine *engine);

#endif
