/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accelerator `spdk`: block devices of an SPDK target, which appear on the host as disks of its
 * vhost-scsi controller. A volume is a bdev of the same name; it is mapped if it is the LUN of a
 * SCSI target.
 *
 * No state is kept here: SPDK is asked each time. So either side can restart at any time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "oim/pci_address.h"
#include "oim/spdk_target.h"

#define DEFAULT_SOCKET "/var/tmp/spdk.sock"
#define DEFAULT_CONTROLLER "vhost.0"

struct spdk {
    struct accelerator base; /* first */
    struct spdk_target target;
    char *socket;
    char *controller;
    char device[sizeof((struct mapping *)0)->device]; /* for every mapping */
};

static struct spdk *
of(struct accelerator *accelerator)
{
    return (struct spdk *)accelerator;
}

/* Opens the session and finds the bdev. */
static struct error *
begin(struct accelerator *accelerator, const char *name, uint64_t deadline_ns,
      struct spdk_session *session, struct spdk_bdev *bdev)
{
    struct error *error = spdk_session_open(session, &of(accelerator)->target, deadline_ns);
    return error ? error : spdk_find_bdev(session, name, bdev);
}

/* ---- block devices in memory ---- */

static struct error *
other_use_error(const char *name)
{
    return error_new(
        CODE_ALREADY_EXISTS,
        "SPDK has a block device \"%s\" that is not in memory: it is used for something else",
        name);
}

static struct error *
check_same(const struct spdk_bdev *bdev, const char *name, uint64_t size_bytes)
{
    if (!bdev->is_malloc)
        return other_use_error(name);
    if (bdev->size_bytes != size_bytes)
        return error_new(CODE_ALREADY_EXISTS,
                         "the block device \"%s\" exists with %llu bytes, not %llu", name,
                         (unsigned long long)bdev->size_bytes, (unsigned long long)size_bytes);
    return NULL;
}

static struct error *
provision(struct accelerator *accelerator, const char *name, uint64_t size_bytes,
          uint64_t deadline_ns)
{
    struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE;
    struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0};
    struct error *error = begin(accelerator, name, deadline_ns, &session, &bdev);
    if (error)
        return error;
    return bdev.info ? check_same(&bdev, name, size_bytes)
                     : spdk_create_malloc(&session, name, size_bytes);
}

/* Something that skycap did not create uses the bdev: its data must not be deleted or written. */
static struct error *
refuse_other_use(const struct spdk_bdev *bdev, const struct spdk_uses *uses, const char *name)
{
    if (uses->disk_of)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the block device \"%s\" is the disk of SPDK's vhost-blk controller %s: "
                         "remove that first",
                         name, uses->disk_of);
    if (bdev->is_claimed)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the block device \"%s\" is claimed by another SPDK device on top of it: "
                         "remove that first (`rpc.py bdev_get_bdevs` shows it)",
                         name);
    return NULL;
}

static struct error *
remove_unmapped(struct spdk_session *session, const struct spdk *spdk, const struct spdk_bdev *bdev,
                const char *name)
{
    struct spdk_uses uses AUTO(spdk_uses_clear) = {0};
    struct error *error = spdk_find_uses(session, spdk->controller, name, &uses);
    if (error)
        return error;
    if (uses.count)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the block device \"%s\" is mapped (target %u of %s): unmap it first",
                         name, uses.places[0].target, uses.places[0].controller);
    error = refuse_other_use(bdev, &uses, name);
    return error ? error : spdk_delete_bdev(session, SPDK_DELETE_MALLOC, name);
}

static struct error *
remove_bdev(struct accelerator *accelerator, const char *name, uint64_t deadline_ns)
{
    struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE;
    struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0};
    struct error *error = begin(accelerator, name, deadline_ns, &session, &bdev);
    if (error || !bdev.info)
        return error;
    if (!bdev.is_malloc)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the block device \"%s\" is not in memory, so it is not deleted", name);
    return remove_unmapped(&session, of(accelerator), &bdev, name);
}

static struct error *
check(struct accelerator *accelerator, const char *name, uint64_t deadline_ns)
{
    struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE;
    struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0};
    struct error *error = begin(accelerator, name, deadline_ns, &session, &bdev);
    if (error || bdev.is_malloc)
        return error;
    return error_new(CODE_NOT_FOUND, "SPDK has no block device \"%s\" in memory", name);
}

/* ---- mapping ---- */

static struct error *
full_error(const struct spdk *spdk)
{
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "all %d targets of the vhost-scsi controller %s are taken: unmap a volume",
                     SPDK_TARGET_COUNT, spdk->controller);
}

/* Some versions answer with the number, some with `true`; then the list is searched. */
static struct error *
find_number(struct spdk_session *session, const struct spdk *spdk, const char *volume,
            const struct json_rpc_reply *reply, unsigned *out)
{
    struct spdk_uses uses AUTO(spdk_uses_clear) = {0};
    int64_t number;
    if (json_value_number(reply->result, &number) && number >= 0 && number < SPDK_TARGET_COUNT) {
        *out = (unsigned)number;
        return NULL;
    }
    struct error *error = spdk_find_uses(session, spdk->controller, volume, &uses);
    for (size_t i = 0; !error && i < uses.count; i++)
        if (strcmp(uses.places[i].controller, spdk->controller) == 0) {
            *out = uses.places[i].target;
            return NULL;
        }
    return error ? error
                 : error_new(CODE_INTERNAL,
                             "SPDK has added the volume \"%s\" to %s, but does not list it", volume,
                             spdk->controller);
}

/*
 * For versions that cannot choose the first free target. They do not always say why they refuse;
 * the list shows whether all targets are taken.
 */
static struct error *
add_at_any(struct spdk_session *session, const struct spdk *spdk, const char *volume, unsigned *out)
{
    struct spdk_uses uses AUTO(spdk_uses_clear) = {0};
    struct error *refusal AUTO(error_cleanup) = NULL;
    for (int number = 0; number < SPDK_TARGET_COUNT; number++) {
        struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
        struct error *error = spdk_add_target(session, spdk->controller, number, volume, &reply);
        if (error)
            return error;
        *out = (unsigned)number;
        if (!reply.code)
            return NULL;
        error_free(refusal);
        refusal = spdk_reply_error(SPDK_ADD_TARGET, &reply);
    }
    struct error *error = spdk_find_uses(session, spdk->controller, volume, &uses);
    if (error)
        return error;
    return uses.taken >= SPDK_TARGET_COUNT ? full_error(spdk) : STEAL(refusal);
}

static struct error *
add_target(struct spdk_session *session, const struct spdk *spdk, const char *volume, unsigned *out)
{
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    struct error *error = spdk_add_target(session, spdk->controller, -1, volume, &reply);
    if (error)
        return error;
    if (!reply.code)
        return find_number(session, spdk, volume, &reply, out);
    int errnum = spdk_reply_errno(&reply);
    if (errnum == ENOSPC)
        return full_error(spdk);
    if (errnum == EINVAL || (!errnum && reply.code == JSON_RPC_INVALID_PARAMS))
        return add_at_any(session, spdk, volume, out);
    return spdk_reply_error(SPDK_ADD_TARGET, &reply);
}

static struct error *
use_place(const struct spdk *spdk, const char *volume, const struct spdk_place *place,
          struct mapping *out)
{
    if (strcmp(place->controller, spdk->controller) != 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume \"%s\" is mapped at the vhost controller %s, not %s", volume,
                         place->controller, spdk->controller);
    snprintf(out->device, sizeof out->device, "%s", spdk->device);
    snprintf(out->scsi, sizeof out->scsi, "%u:%u", place->target, place->lun);
    return NULL;
}

/* The bdev exists. */
static struct error *
map_bdev(struct spdk_session *session, const struct spdk *spdk, const struct spdk_bdev *bdev,
         const char *volume, struct mapping *out)
{
    struct spdk_uses uses AUTO(spdk_uses_clear) = {0};
    struct error *error = spdk_find_uses(session, spdk->controller, volume, &uses);
    if (error)
        return error;
    if (uses.count)
        return use_place(spdk, volume, &uses.places[0], out);
    error = refuse_other_use(bdev, &uses, volume);
    if (error)
        return error;
    if (!uses.has_controller)
        return error_new(CODE_FAILED_PRECONDITION,
                         "SPDK has no vhost-scsi controller %s: create it with `rpc.py "
                         "vhost_create_scsi_controller %s`, or give another with "
                         "--vhost-controller",
                         spdk->controller, spdk->controller);
    struct spdk_place place = {.controller = spdk->controller};
    error = add_target(session, spdk, volume, &place.target);
    return error ? error : use_place(spdk, volume, &place, out);
}

static struct error *
map_malloc(struct accelerator *accelerator, const char *volume, uint64_t deadline_ns,
           struct mapping *out)
{
    struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE;
    struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0};
    struct error *error = begin(accelerator, volume, deadline_ns, &session, &bdev);
    if (error)
        return error;
    if (!bdev.info)
        return error_new(CODE_NOT_FOUND,
                         "there is no block device \"%s\": create it with ProvisionMallocBDev",
                         volume);
    if (!bdev.is_malloc)
        return other_use_error(volume);
    return map_bdev(&session, of(accelerator), &bdev, volume, out);
}

/* ---- Ceph ---- */

/* False if the target does not report the member. */
static bool
differs(const struct json_value *object, const char *member, const char *wanted)
{
    const char *told = json_value_text(json_value_member(object, member));
    return told && strcmp(told, wanted) != 0;
}

/* The name of the first parameter that differs; NULL: none. */
static const char *
find_difference(const struct spdk_bdev *bdev, const struct ceph_image *image)
{
    const struct json_value *config = json_value_member(bdev->rbd, "config");
    if (differs(bdev->rbd, "pool_name", image->pool))
        return "pool";
    if (differs(bdev->rbd, "rbd_name", image->image))
        return "image";
    if (differs(bdev->rbd, "user_id", image->user_id))
        return "user_id";
    if (differs(config, "mon_host", image->monitors))
        return "monitors";
    return differs(config, "key", image->secret) ? "secret" : NULL;
}

static struct error *
check_same_image(const struct spdk_bdev *bdev, const char *volume, const struct ceph_image *image)
{
    if (!bdev->rbd)
        return error_new(CODE_ALREADY_EXISTS,
                         "SPDK has a block device \"%s\" that is not a Ceph image", volume);
    const char *other = find_difference(bdev, image);
    if (other)
        return error_new(CODE_ALREADY_EXISTS,
                         "the volume \"%s\" is already mapped with another %s: unmap it first",
                         volume, other);
    return NULL;
}

/* If mapping fails, the new bdev is deleted; if that fails too, unmapping deletes it. */
static struct error *
map_new_image(struct spdk_session *session, const struct spdk *spdk, const char *volume,
              const struct ceph_image *image, struct mapping *out)
{
    struct error *error = spdk_create_rbd(session, volume, image);
    if (error)
        return error;
    error = map_bdev(session, spdk, &(struct spdk_bdev){0}, volume, out);
    if (error)
        error_free(spdk_delete_bdev(session, SPDK_DELETE_RBD, volume));
    return error;
}

static struct error *
map_ceph(struct accelerator *accelerator, const char *volume, const struct ceph_image *image,
         uint64_t deadline_ns, struct mapping *out)
{
    struct spdk *spdk = of(accelerator);
    struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE;
    struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0};
    struct error *error = begin(accelerator, volume, deadline_ns, &session, &bdev);
    if (error)
        return error;
    if (!bdev.info)
        return map_new_image(&session, spdk, volume, image, out);
    error = check_same_image(&bdev, volume, image);
    return error ? error : map_bdev(&session, spdk, &bdev, volume, out);
}

/* ---- unmapping ---- */

static struct error *
remove_targets(struct spdk_session *session, const struct spdk *spdk, const char *volume)
{
    struct spdk_uses uses AUTO(spdk_uses_clear) = {0};
    struct error *error = spdk_find_uses(session, spdk->controller, volume, &uses);
    for (size_t i = 0; !error && i < uses.count; i++)
        error = spdk_remove_target(session, &uses.places[i], volume);
    return error;
}

/* A bdev in memory is kept for the next mapping. Other kinds were not created by skycap. */
static struct error *
unmap(struct accelerator *accelerator, const char *volume, uint64_t deadline_ns)
{
    struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE;
    struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0};
    struct error *error = spdk_session_open(&session, &of(accelerator)->target, deadline_ns);
    if (!error)
        error = remove_targets(&session, of(accelerator), volume);
    if (!error)
        error = spdk_find_bdev(&session, volume, &bdev);
    if (error || !bdev.rbd)
        return error;
    return spdk_delete_bdev(&session, SPDK_DELETE_RBD, volume);
}

/* ---- opening ---- */

static void
close_spdk(struct accelerator *accelerator)
{
    struct spdk *spdk = of(accelerator);
    free(spdk->socket);
    free(spdk->controller);
    free(spdk);
}

static struct error *
open_spdk(const struct accelerator_options *options, struct accelerator **out)
{
    char device[sizeof((struct spdk *)0)->device];
    bool is_whole;
    if (!options->vhost_device)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the accelerator spdk needs --vhost-device: the PCI address at which the "
                         "host sees the vhost controller");
    struct error *error =
        pci_address_to_link_part(options->vhost_device, device, sizeof device, &is_whole);
    if (error)
        return error_wrap(error, "--vhost-device");
    if (!is_whole)
        log_warn(options->log,
                 "the PCI address of the vhost controller is incomplete: it may match other "
                 "devices, too",
                 LOG_TEXT("address", options->vhost_device), LOG_TEXT("device", device));
    struct spdk *spdk = memory_zeroed(sizeof *spdk);
    spdk->base.ops = &accelerator_spdk;
    spdk->socket = memory_string(options->spdk_socket ? options->spdk_socket : DEFAULT_SOCKET);
    spdk->controller =
        memory_string(options->vhost_controller ? options->vhost_controller : DEFAULT_CONTROLLER);
    spdk->target.socket = spdk->socket;
    memcpy(spdk->device, device, sizeof device);
    log_info(options->log, "volumes are mapped by SPDK", LOG_TEXT("socket", spdk->socket),
             LOG_TEXT("vhost", spdk->controller), LOG_TEXT("device", spdk->device));
    *out = &spdk->base;
    return NULL;
}

const struct accelerator_ops accelerator_spdk = {
    .name = "spdk",
    .open = open_spdk,
    .close = close_spdk,
    .provision = provision,
    .remove = remove_bdev,
    .check = check,
    .map_malloc = map_malloc,
    .map_ceph = map_ceph,
    .unmap = unmap,
};
