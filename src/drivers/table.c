/* SPDX-License-Identifier: Apache-2.0 */
/* The list of drivers. A new one needs its file, a declaration, and an entry in list and names. */
#include <string.h>

#include "drivers/driver.h"

extern const struct driver_ops driver_csi;
extern const struct driver_ops driver_local;
extern const struct driver_ops driver_oim;

const struct driver_ops *const all_drivers[] = {
    &driver_local,
    &driver_csi,
    &driver_oim,
    NULL,
};

const char *
driver_names(void)
{
    return "local, csi, oim";
}

const struct driver_ops *
driver_find(const char *name)
{
    for (size_t i = 0; all_drivers[i]; i++) {
        if (!strcmp(all_drivers[i]->name, name))
            return all_drivers[i];
    }
    return NULL;
}
