/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `skycap volume`, one file per topic; volume.c puts them into the table. */
#ifndef CLI_VOLUME_H
#define CLI_VOLUME_H

#include "base/text_map.h"
#include "cli/inventory.h"
#include "cli/verbs.h"

/* volume_create.c */
VERB(volume_run_create);
VERB(volume_run_clone);

/* volume_show.c */
VERB(volume_run_list);
VERB(volume_run_show);

/* volume_change.c */
VERB(volume_run_expand);
VERB(volume_run_modify);
VERB(volume_run_delete);

/* volume_publish.c */
VERB(volume_run_publish);
VERB(volume_run_unpublish);

/* What a new volume is to be; NULL: not said. */
struct volume_wish {
    const char *name;
    const char *size;
    const char *fs_type;
    bool block;
    struct text_list parameters; /* KEY=VALUE */
    const char *from_volume;     /* id or name, as all sources */
    const char *from_snapshot;
    const char *path;       /* where to publish it */
    const char *connection; /* where to make it */
};

/* The flags that `create` and whatever makes a volume of another have in common. */
#define VOLUME_SIZE_FLAG(wish)                                                                     \
    {                                                                                              \
        "size", 0, "SIZE", OPTION_TEXT, &(wish)->size,                                             \
            "size, such as 10Gi; default: that of the source, or 1Gi for images and no limit for " \
            "directories"                                                                          \
    }
#define VOLUME_PARAMETER_FLAG(wish)                                                                \
    {                                                                                              \
        "parameter", 0, "KEY=VALUE", OPTION_LIST, &(wish)->parameters,                             \
            "backend, compression, consistency, kind, label, nocow, sector-size, or an I/O "       \
            "limit; may be given several times"                                                    \
    }

#define VOLUME_CONNECTION_FLAG(wish)                                                               \
    {                                                                                              \
        "connection", 0, "NAME", OPTION_TEXT, &(wish)->connection,                                 \
            "connection to create it in; default: that of the source, or chosen by the server"     \
    }

#define VOLUME_PUBLISH_FLAG(wish)                                                                  \
    {                                                                                              \
        "publish", 0, "PATH", OPTION_TEXT, &(wish)->path, "also publish it at PATH"                \
    }

/*
 * Makes it, publishes it where that is wished, and shows it. Without a file system or block access
 * of its own it is of its source's type.
 */
MUST_CHECK struct error *volume_make(struct client *client, const struct volume_wish *wish);

/*
 * How a volume of this type ("block", "directory", a file system's name, "" for whatever the driver
 * likes) is made and used.
 */
Csi__V1__VolumeCapability *volume_capability(const char *type, struct arena *arena);

/*
 * At a path as the user gave it. `type` counts where the server does not know how the volume was
 * made, as of a third-party driver's.
 */
MUST_CHECK struct error *volume_publish(struct client *client, const volume_info *volume,
                                        const char *type, const char *path, bool read_only);

/* KEY=VALUE as a pair of the map. `what` names them in the error. */
MUST_CHECK struct error *volume_read_pair(const char *text, const char *what, struct arena *arena,
                                          struct text_map *map);

#endif
