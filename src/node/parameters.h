/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parameters of a volume say of its use at a path: the label of its file system, and the
 * I/O limits of the pod that it is published for.
 */
#ifndef NODE_PARAMETERS_H
#define NODE_PARAMETERS_H

#include "node/use.h"

/*
 * Puts them in force. `backing` is the volume's, or NULL: it is looked up if it is needed. Warns
 * only: a volume is not kept from its user because a parameter is not in force.
 */
void parameters_try(struct engine *engine, const volume_record *volume, const struct use *use,
                    struct backing *backing, struct arena *arena);

/* Puts them in force wherever the volume is used. */
MUST_CHECK struct error *parameters_apply_all(struct engine *engine, const volume_record *volume,
                                              struct arena *arena);

/* Applies the I/O limits of all published volumes again. */
MUST_CHECK struct error *parameters_renew_limits(struct engine *engine);

#endif
