/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of volumes and of snapshots. `skycap parameters` prints these tables, and
 * docs/reference.md is made from them.
 */
#ifndef VOLUMES_PARAMETER_TABLE_H
#define VOLUMES_PARAMETER_TABLE_H

#include <stdbool.h>

#include "base/buffer.h"

#define PARAMETER_TRANSFER_RATE "transfer-rate"
#define PARAMETER_REPLICAS "replicas"
#define PARAMETER_EXPORT "export"
#define PARAMETER_MOST_REPLICAS 16

struct parameter {
    const char *key;
    const char *const *words; /* the values that are allowed; NULL: see `value` */
    const char *value;        /* what a value is, if it is not one of a few words */
    bool is_rate;             /* io_limits_read reads the value */
    bool is_mutable;          /* ControllerModifyVolume can change it */
    const char *meaning;
};

/* Both end with {0}. */
extern const struct parameter parameter_table_of_volumes[];
extern const struct parameter parameter_table_of_snapshots[];

/* NULL: there is none with this key. */
const struct parameter *parameter_table_find(const struct parameter *table, const char *key);

/* Appends the keys, with ", " between them. */
void parameter_table_print_keys(const struct parameter *table, struct buffer *out);

/* Appends the values: the words with ", " between them, or what a value is. */
void parameter_table_print_values(const struct parameter *parameter, struct buffer *out);

#endif
