/* SPDX-License-Identifier: Apache-2.0 */
/* A second back end without root: directories under another name, behind the one that is there. One in a process. */
#ifndef UNIT_SEVERAL_BACKENDS_H
#define UNIT_SEVERAL_BACKENDS_H

#include <sys/stat.h>

#include "backends/backend.h"
#include "check.h"

static struct backend_ops second_ops;

/* `directory` is made. The name is that of a back end that exists, so that a restart would find it. */
static inline void
add_second(struct backend *first, const char *directory, const char *name, bool is_volatile,
           const struct log *log)
{
    struct error *error =
        mkdir(directory, 0700) == 0
            ? backend_open("dir", &(struct backend_options){.directory = directory, .log = log},
                           &first->next)
            : error_new(CODE_INTERNAL, "cannot make %s", directory);
    CHECK_TEXT(error ? error->message : "", "");
    error_free(error);
    second_ops = *first->next->ops;
    second_ops.name = name;
    second_ops.is_volatile = is_volatile;
    first->next->ops = &second_ops;
}

#endif
