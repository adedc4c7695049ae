/* SPDX-License-Identifier: Apache-2.0 */
/* The table of accelerators: see accelerator.h. */
#include "oim/accelerator.h"

#include <string.h>

#include "base/buffer.h"

/* The first is the default. */
static const struct accelerator_ops *const table[] = {
    &accelerator_kernel,
    &accelerator_spdk,
};

struct error *
accelerator_find(const char *name, const struct accelerator_ops **out)
{
    struct buffer names AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (!name || strcmp(table[i]->name, name) == 0) {
            *out = table[i];
            return NULL;
        }
        buffer_print(&names, "%s%s", i ? ", " : "", table[i]->name);
    }
    return error_new(CODE_INVALID_ARGUMENT, "there is no accelerator \"%s\"; there are: %s", name,
                     buffer_text(&names));
}
