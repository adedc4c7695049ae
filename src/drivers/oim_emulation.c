/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulations: see oim_emulation.h.
 *
 * ceph-csi has two forms of RBD volumes. The old one (0.3) lists the monitors (`monitors`, or
 * `monValueFromSecret`, the key of a secret) and a user, whose key is the secret of that name; the
 * image has the name of the volume, which is part of the staging path. The present one has a
 * `clusterID`, whose monitors are in a file of that driver and in `clusters:` of our connection,
 * and the secrets `userID` and `userKey`.
 */
#include "drivers/oim_emulation.h"

#include <string.h>

#define DEFAULT_USER "admin"
#define DEFAULT_IMAGE_PREFIX "csi-vol-"
#define UUID_SIZE 36

static const char *
find(const struct text_map *map, const char *key)
{
    const char *value = text_map_find(map, key);
    return value && value[0] ? value : NULL;
}

static struct error *
need(const struct text_map *map, const char *what, const char *key, char **out)
{
    *out = (char *)find(map, key);
    return *out ? NULL : error_new(CODE_INVALID_ARGUMENT, "%s has no \"%s\"", what, key);
}

/* ---- the old form ---- */

/* .../NAME/globalmount */
static struct error *
image_of_path(const char *path, struct arena *arena, char **out)
{
    static const char last[] = "/globalmount";
    size_t size = strlen(path);
    while (size && path[size - 1] == '/')
        size--;
    const char *end = path + size - (sizeof last - 1);
    if (size < sizeof last || strncmp(end, last, sizeof last - 1) != 0)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the image is unknown: volume_context has no \"imageName\", and "
                         "staging_target_path is not like .../IMAGE/globalmount");
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    *out = arena_copy(arena, start, (size_t)(end - start));
    return **out ? NULL : error_new(CODE_INVALID_ARGUMENT, "staging_target_path names no image");
}

static struct error *
read_old_monitors(const struct oim_emulated_volume *volume, Oim__V0__CephParams *out)
{
    const char *key = find(&volume->context, "monValueFromSecret");
    return key ? need(&volume->secrets, "secrets", key, &out->monitors)
               : need(&volume->context, "volume_context", "monitors", &out->monitors);
}

static struct error *
read_old(const struct oim_emulated_volume *volume, struct arena *arena, Oim__V0__CephParams *out)
{
    const char *user = find(&volume->context, "userid");
    const char *image = find(&volume->context, "imageName");
    out->user_id = (char *)(user ? user : DEFAULT_USER);
    out->image = (char *)image;
    struct error *error = read_old_monitors(volume, out);
    if (!error)
        error = need(&volume->secrets, "secrets", out->user_id, &out->secret);
    if (!error && !image)
        error = image_of_path(volume->staging_path, arena, &out->image);
    return error;
}

/* ---- the present form ---- */

/* The id and the image's name end with the same UUID. */
static struct error *
image_of_id(const struct oim_emulated_volume *volume, struct arena *arena, char **out)
{
    const char *fixed = find(&volume->context, "staticVolume");
    const char *prefix = find(&volume->context, "volumeNamePrefix");
    size_t size = strlen(volume->id);
    if (fixed && strcmp(fixed, "true") == 0) {
        *out = (char *)volume->id;
        return NULL;
    }
    if (size <= UUID_SIZE || volume->id[size - UUID_SIZE - 1] != '-')
        return error_new(CODE_INVALID_ARGUMENT,
                         "the image is unknown: volume_context has no \"imageName\", and the "
                         "volume's id does not end with a UUID");
    *out = arena_print(arena, "%s%s", prefix ? prefix : DEFAULT_IMAGE_PREFIX,
                       volume->id + size - UUID_SIZE);
    return NULL;
}

static struct error *
read_present(const struct oim_emulated_volume *volume, struct arena *arena,
             Oim__V0__CephParams *out)
{
    char *cluster;
    struct error *error = need(&volume->context, "volume_context", "clusterID", &cluster);
    if (error)
        return error;
    out->monitors = (char *)find(volume->clusters, cluster);
    if (!out->monitors)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the monitors of the cluster \"%s\" are not known: name them under "
                         "`clusters:` in the connection's options",
                         cluster);
    error = need(&volume->secrets, "secrets", "userID", &out->user_id);
    if (!error)
        error = need(&volume->secrets, "secrets", "userKey", &out->secret);
    out->image = (char *)find(&volume->context, "imageName");
    if (!error && !out->image)
        error = image_of_id(volume, arena, &out->image);
    return error;
}

static struct error *
set_ceph(const struct oim_emulated_volume *volume, struct arena *arena,
         Oim__V0__MapVolumeRequest *out)
{
    Oim__V0__CephParams *ceph = arena_alloc(arena, sizeof *ceph);
    oim__v0__ceph_params__init(ceph);
    out->params_case = OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH;
    out->ceph = ceph;
    struct error *error = need(&volume->context, "volume_context", "pool", &ceph->pool);
    bool is_old =
        find(&volume->context, "monitors") || find(&volume->context, "monValueFromSecret");
    if (!error)
        error = is_old ? read_old(volume, arena, ceph) : read_present(volume, arena, ceph);
    return error;
}

/* ---- the table ---- */

const struct oim_emulation oim_emulations[] = {
    {set_ceph},
};

const char *const oim_emulation_names[] = {"ceph-csi", NULL};
