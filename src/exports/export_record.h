/* SPDX-License-Identifier: Apache-2.0 */
/* Records of exported snapshots, and the chunks that they refer to. */
#ifndef EXPORTS_EXPORT_RECORD_H
#define EXPORTS_EXPORT_RECORD_H

#include "base/arena.h"
#include "proto/exports.pb-c.h"
#include "repository/repository.h"

typedef Skycap__Exports__ExportRecord export_record;
#define EXPORT_KIND(name) SKYCAP__EXPORTS__EXPORT_RECORD__KIND__##name

/* In the arena. DATA_LOSS if it is no such record. */
MUST_CHECK struct error *export_record_read(struct repository *repository, const char *id,
                                            struct arena *arena, export_record **out);

/* The same for one that was listed just now: repository_snapshot_get_listed. */
MUST_CHECK struct error *export_record_read_listed(struct repository *repository, const char *id,
                                                   struct arena *arena, export_record **out);

struct repository_id export_record_manifest(const export_record *record);

/* For repository_verify and repository_prune. */
extern const struct repository_references export_references;

#endif
