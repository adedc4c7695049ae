/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of volumes while nodes do not answer: entries for the volumes of those nodes, from what was
 * listed before (seen_volumes.h). Each has a condition that tells what is wrong.
 */
#ifndef CONNECTIONS_ROUTER_LOST_VOLUMES_H
#define CONNECTIONS_ROUTER_LOST_VOLUMES_H

#include "connections/router/merged_list.h"
#include "connections/router/seen_volumes.h"

/* What an entry of a list says of its volume. */
typedef struct seen_volume lost_volumes_read(const void *entry);

/* Remembers a page that another node has returned for the token. */
void lost_volumes_note(const struct merged_list *list, const struct connection *connection,
                       const char *token, const struct list_page *page, lost_volumes_read *read);

/* ---- for lists of CSI, and for those of skycap.v1.Inventory: see merged_list.recall ---- */

struct seen_volume lost_volumes_read_csi(const void *entry);
struct seen_volume lost_volumes_read_info(const void *entry);
void lost_volumes_recall_csi(const struct merged_list *list, struct connection *connection,
                             const char *token, size_t most, struct list_page *out);
void lost_volumes_recall_health(const struct merged_list *list, struct connection *connection,
                                const char *token, size_t most, struct list_page *out);
void lost_volumes_recall_info(const struct merged_list *list, struct connection *connection,
                              const char *token, size_t most, struct list_page *out);

#endif
