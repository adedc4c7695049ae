/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that copies read themselves, without a temporary copy. Such a volume is attached to this
 * node for the copy and detached after it, unless somebody uses it. An orchestrator may begin to
 * use it during the copy: for the driver it is attached already, so only the router sees that.
 *
 * Any thread; nothing here waits.
 */
#ifndef CONNECTIONS_COPY_COPIED_SOURCES_H
#define CONNECTIONS_COPY_COPIED_SOURCES_H

#include "connections/config/connection.h"

struct copied_sources;
struct copied_source;

struct copied_sources *copied_sources_new(void);
void copied_sources_free(struct copied_sources *sources);

/* NULL: another copy is reading the volume. CSI stages a volume at one path of a node at a time. */
struct copied_source *copied_sources_begin(struct copied_sources *sources,
                                           const struct connection *connection,
                                           const char *volume_id);

/*
 * False: an orchestrator has begun to use the volume since the copy began. True: from now on
 * copied_sources_check refuses to let it begin.
 */
bool copied_source_may_detach(struct copied_source *source);

/* `*place` becomes NULL. It may be NULL. */
void copied_source_end(struct copied_source **place);

/*
 * An orchestrator's request, which is about to be forwarded, makes this node use the volume of that
 * handle. ABORTED: a copy is detaching it.
 */
MUST_CHECK struct error *copied_sources_check(struct copied_sources *sources,
                                              const struct connection *connection,
                                              const char *handle);

#endif
