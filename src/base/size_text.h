/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them: "4096", "500M", "10Gi". */
#ifndef BASE_SIZE_TEXT_H
#define BASE_SIZE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* INVALID_ARGUMENT tells the format. */
MUST_CHECK struct error *size_text_parse(const char *text, int64_t *bytes);

/* The shortest form that is exact to a tenth: "1.5 GiB". */
void size_text_print(int64_t bytes, char *out, size_t size);

#endif
