/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an SPDK target: see spdk_target.h. */
#include "oim/spdk_target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"

#define BLOCK_BYTES 512
#define MAX_QUOTED 200
#define INVALID_STATE (-1) /* SPDK: the target has not finished its start */
/* Ceph's default is 300 s, and SPDK serves no other request while it waits for monitors. */
#define CEPH_CONNECT_SECONDS "10"

#define NAMES 3

static const struct {
    const char *names[NAMES]; /* newest first */
    bool has_secret;          /* in its request or reply, so its errors are not quoted */
} methods[SPDK_METHOD_COUNT] = {
    [SPDK_GET_BDEVS] = {{"bdev_get_bdevs", "get_bdevs"}, true},
    [SPDK_CREATE_MALLOC] = {{"bdev_malloc_create", "construct_malloc_bdev"}},
    [SPDK_DELETE_MALLOC] = {{"bdev_malloc_delete", "delete_malloc_bdev", "delete_bdev"}},
    [SPDK_CREATE_RBD] = {{"bdev_rbd_create", "construct_rbd_bdev"}, true},
    [SPDK_DELETE_RBD] = {{"bdev_rbd_delete", "delete_rbd_bdev", "delete_bdev"}},
    [SPDK_GET_CONTROLLERS] = {{"vhost_get_controllers", "get_vhost_controllers"}},
    [SPDK_ADD_TARGET] = {{"vhost_scsi_controller_add_target", "add_vhost_scsi_lun"}},
    [SPDK_REMOVE_TARGET] = {{"vhost_scsi_controller_remove_target", "remove_vhost_scsi_target"}},
};

static const char *
newest_name(enum spdk_method method)
{
    return methods[method].names[0];
}

struct error *
spdk_session_open(struct spdk_session *session, struct spdk_target *target, uint64_t deadline_ns)
{
    session->target = target;
    return json_rpc_connect(&session->rpc, target->socket, deadline_ns);
}

void
spdk_session_close(struct spdk_session *session)
{
    json_rpc_close(&session->rpc);
}

/* ---- replies ---- */

/* vhost methods always answer "invalid parameters", with the text of an errno as the message. */
static int
errno_of_text(const char *text)
{
    static const int known[] = {ENODEV, ENOENT, ENOSPC, EEXIST, EBUSY, ENOMEM};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strcmp(text, strerrordesc_np(known[i])) == 0)
            return known[i];
    return 0;
}

int
spdk_reply_errno(const struct json_rpc_reply *reply)
{
    if (reply->code == JSON_RPC_INVALID_PARAMS)
        return errno_of_text(reply->message);
    return reply->code < INVALID_STATE && reply->code > -4096 ? (int)-reply->code : 0;
}

struct error *
spdk_reply_error(enum spdk_method method, const struct json_rpc_reply *reply)
{
    const char *name = newest_name(method);
    int errnum = spdk_reply_errno(reply);
    if (errnum)
        return error_from_errno(errnum, "SPDK: %s", name);
    if (reply->code == JSON_RPC_UNKNOWN_METHOD)
        return error_new(
            CODE_FAILED_PRECONDITION,
            "SPDK does not know the method %s, nor its older names: it was built without it", name);
    const char *said = methods[method].has_secret ? "" : reply->message;
    return error_new(reply->code == INVALID_STATE ? CODE_FAILED_PRECONDITION : CODE_INTERNAL,
                     "SPDK: %s: error %" PRId64 "%s%.*s", name, reply->code, said[0] ? ": " : "",
                     (int)utf8_cut(said, strlen(said), MAX_QUOTED), said);
}

/* Tries the names of a method until one is known; that is tried first the next time. */
static struct error *
ask(struct spdk_session *session, enum spdk_method method, const char *params,
    struct json_rpc_reply *reply)
{
    atomic_uint *known_name = &session->target->known_name[method];
    unsigned first = atomic_load(known_name);
    struct error *error = NULL;
    for (unsigned i = 0; i < NAMES; i++) {
        unsigned n = (first + i) % NAMES;
        if (!methods[method].names[n])
            continue;
        json_rpc_reply_clear(reply);
        error = json_rpc_ask(&session->rpc, methods[method].names[n], params, reply);
        if (error || reply->code != JSON_RPC_UNKNOWN_METHOD) {
            atomic_store(known_name, error ? first : n);
            break;
        }
    }
    return error;
}

/* For requests whose result does not matter. */
static struct error *
demand(struct spdk_session *session, enum spdk_method method, const char *params)
{
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    struct error *error = ask(session, method, params, &reply);
    return error || !reply.code ? error : spdk_reply_error(method, &reply);
}

static struct error *
not_understood(enum spdk_method method)
{
    return error_new(CODE_INTERNAL, "SPDK: %s: unexpected reply", newest_name(method));
}

/* ---- params ---- */

static void
add_number(struct buffer *params, const char *name, int64_t number)
{
    buffer_print(params, "%s\"%s\":%" PRId64, params->size ? "," : "{", name, number);
}

static const char *
finish(struct buffer *params)
{
    buffer_append_byte(params, '}');
    return buffer_text(params);
}

/* ---- block devices ---- */

void
spdk_bdev_clear(struct spdk_bdev *bdev)
{
    json_rpc_reply_clear(&bdev->reply);
    *bdev = (struct spdk_bdev){0};
}

static bool
has_text(const struct json_value *object, const char *member, const char *wanted)
{
    const char *text = json_value_text(json_value_member(object, member));
    return text && strcmp(text, wanted) == 0;
}

static struct error *
read_bdevs(const char *name, struct spdk_bdev *out)
{
    int64_t blocks, block_bytes;
    if (!json_value_is_array(out->reply.result))
        return not_understood(SPDK_GET_BDEVS);
    for (size_t i = 0; !out->info && i < json_value_count(out->reply.result); i++) {
        const struct json_value *item = json_value_item(out->reply.result, i);
        if (has_text(item, "name", name))
            out->info = item;
    }
    if (!out->info)
        return NULL;
    if (!json_value_number(json_value_member(out->info, "num_blocks"), &blocks) ||
        !json_value_number(json_value_member(out->info, "block_size"), &block_bytes) ||
        blocks < 0 || block_bytes <= 0 ||
        __builtin_mul_overflow((uint64_t)blocks, (uint64_t)block_bytes, &out->size_bytes))
        return not_understood(SPDK_GET_BDEVS);
    out->is_malloc = has_text(out->info, "product_name", "Malloc disk");
    out->is_claimed = json_value_is_true(json_value_member(out->info, "claimed"));
    out->rbd = json_value_member(json_value_member(out->info, "driver_specific"), "rbd");
    return NULL;
}

/*
 * Old versions return the same error for an unknown device as for an invalid request. So all
 * devices are listed, in order not to mistake an error for an absent device.
 */
static struct error *
find_among_all(struct spdk_session *session, const char *name, struct spdk_bdev *out)
{
    json_rpc_reply_clear(&out->reply);
    struct error *error = ask(session, SPDK_GET_BDEVS, NULL, &out->reply);
    if (error)
        return error;
    return out->reply.code ? spdk_reply_error(SPDK_GET_BDEVS, &out->reply) : read_bdevs(name, out);
}

struct error *
spdk_find_bdev(struct spdk_session *session, const char *name, struct spdk_bdev *out)
{
    struct buffer params AUTO(buffer_clear) = {0};
    json_append_member(&params, "name", name);
    struct error *error = ask(session, SPDK_GET_BDEVS, finish(&params), &out->reply);
    if (error)
        return error;
    if (!out->reply.code)
        return read_bdevs(name, out);
    if (spdk_reply_errno(&out->reply) == ENODEV)
        return NULL;
    if (out->reply.code == JSON_RPC_INVALID_PARAMS)
        return find_among_all(session, name, out);
    return spdk_reply_error(SPDK_GET_BDEVS, &out->reply);
}

struct error *
spdk_create_malloc(struct spdk_session *session, const char *name, uint64_t size_bytes)
{
    struct buffer params AUTO(buffer_clear) = {0};
    json_append_member(&params, "name", name);
    add_number(&params, "num_blocks", (int64_t)(size_bytes / BLOCK_BYTES));
    add_number(&params, "block_size", BLOCK_BYTES);
    return demand(session, SPDK_CREATE_MALLOC, finish(&params));
}

static void
add_ceph_config(struct buffer *params, const struct ceph_image *image)
{
    struct buffer config AUTO(buffer_clear) = {0};
    if (image->monitors[0])
        json_append_member(&config, "mon_host", image->monitors);
    if (image->secret[0])
        json_append_member(&config, "key", image->secret);
    if (!config.size) /* SPDK uses its ceph.conf */
        return;
    json_append_member(&config, "client_mount_timeout", CEPH_CONNECT_SECONDS);
    buffer_print(params, ",\"config\":%s", finish(&config));
}

/* SPDK says only that it failed. */
static struct error *
explain_ceph(struct error *error, const struct ceph_image *image)
{
    return error_wrap(error,
                      "open the Ceph image %s/%s as user %s at the monitors %s (SPDK's own log "
                      "says why it could not)",
                      image->pool, image->image, image->user_id[0] ? image->user_id : "admin",
                      image->monitors[0] ? image->monitors : "of SPDK's ceph.conf");
}

struct error *
spdk_create_rbd(struct spdk_session *session, const char *name, const struct ceph_image *image)
{
    struct buffer params AUTO(buffer_clear) = {0};
    json_append_member(&params, "name", name);
    if (image->user_id[0])
        json_append_member(&params, "user_id", image->user_id);
    json_append_member(&params, "pool_name", image->pool);
    json_append_member(&params, "rbd_name", image->image);
    add_number(&params, "block_size", BLOCK_BYTES);
    add_ceph_config(&params, image);
    return explain_ceph(demand(session, SPDK_CREATE_RBD, finish(&params)), image);
}

/* The bdev or target may have been removed meanwhile. Some versions report failure by `false`. */
static struct error *
check_removed(enum spdk_method method, const struct json_rpc_reply *reply)
{
    if (spdk_reply_errno(reply) == ENODEV)
        return NULL;
    if (reply->code)
        return spdk_reply_error(method, reply);
    if (json_value_is_false(reply->result))
        return error_new(CODE_INTERNAL, "SPDK: %s failed", newest_name(method));
    return NULL;
}

struct error *
spdk_delete_bdev(struct spdk_session *session, enum spdk_method method, const char *name)
{
    struct buffer params AUTO(buffer_clear) = {0};
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    json_append_member(&params, "name", name);
    struct error *error = ask(session, method, finish(&params), &reply);
    return error ? error : check_removed(method, &reply);
}

/* ---- vhost-scsi ---- */

void
spdk_uses_clear(struct spdk_uses *uses)
{
    json_rpc_reply_clear(&uses->reply);
    free(uses->places);
    *uses = (struct spdk_uses){0};
}

static bool
read_small(const struct json_value *object, const char *member, unsigned *out)
{
    int64_t number;
    if (!json_value_number(json_value_member(object, member), &number) || number < 0 ||
        number > UINT16_MAX)
        return false;
    *out = (unsigned)number;
    return true;
}

static struct error *
read_target(const struct json_value *target, const char *bdev, struct spdk_place place,
            struct spdk_uses *out)
{
    const struct json_value *luns = json_value_member(target, "luns");
    if (!read_small(target, "scsi_dev_num", &place.target))
        return not_understood(SPDK_GET_CONTROLLERS);
    for (size_t i = 0; i < json_value_count(luns); i++) {
        const struct json_value *lun = json_value_item(luns, i);
        if (!has_text(lun, "bdev_name", bdev))
            continue;
        if (!read_small(lun, "id", &place.lun))
            return not_understood(SPDK_GET_CONTROLLERS);
        out->places = memory_resize(out->places, (out->count + 1) * sizeof *out->places);
        out->places[out->count++] = place;
    }
    return NULL;
}

/* A vhost-blk controller has one disk and no targets. */
static struct error *
read_controller(const struct json_value *info, const char *wanted, const char *bdev,
                struct spdk_uses *out)
{
    const struct json_value *targets =
        json_value_member(json_value_member(info, "backend_specific"), "scsi");
    const struct json_value *disk =
        json_value_member(json_value_member(info, "backend_specific"), "block");
    const char *name = json_value_text(json_value_member(info, "ctrlr"));
    if (!name)
        return not_understood(SPDK_GET_CONTROLLERS);
    if (has_text(disk, "bdev", bdev))
        out->disk_of = name;
    if (!json_value_is_array(targets))
        return NULL;
    if (strcmp(name, wanted) == 0) {
        out->has_controller = true;
        out->taken = json_value_count(targets);
    }
    struct error *error = NULL;
    for (size_t i = 0; !error && i < json_value_count(targets); i++)
        error = read_target(json_value_item(targets, i), bdev,
                            (struct spdk_place){.controller = name}, out);
    return error;
}

struct error *
spdk_find_uses(struct spdk_session *session, const char *controller, const char *bdev,
               struct spdk_uses *out)
{
    struct error *error = ask(session, SPDK_GET_CONTROLLERS, NULL, &out->reply);
    if (error)
        return error;
    if (out->reply.code)
        return spdk_reply_error(SPDK_GET_CONTROLLERS, &out->reply);
    if (!json_value_is_array(out->reply.result))
        return not_understood(SPDK_GET_CONTROLLERS);
    for (size_t i = 0; !error && i < json_value_count(out->reply.result); i++)
        error = read_controller(json_value_item(out->reply.result, i), controller, bdev, out);
    return error;
}

struct error *
spdk_add_target(struct spdk_session *session, const char *controller, int number, const char *bdev,
                struct json_rpc_reply *reply)
{
    struct buffer params AUTO(buffer_clear) = {0};
    json_append_member(&params, "ctrlr", controller);
    add_number(&params, "scsi_target_num", number);
    json_append_member(&params, "bdev_name", bdev);
    return ask(session, SPDK_ADD_TARGET, finish(&params), reply);
}

static struct error *
is_still_there(struct spdk_session *session, const struct spdk_place *place, const char *bdev,
               bool *out)
{
    struct spdk_uses uses AUTO(spdk_uses_clear) = {0};
    struct error *error = spdk_find_uses(session, place->controller, bdev, &uses);
    *out = false;
    for (size_t i = 0; !error && i < uses.count; i++)
        *out |= strcmp(uses.places[i].controller, place->controller) == 0 &&
                uses.places[i].target == place->target;
    return error;
}

/* SPDK answers EBUSY both for an empty target and for one that it is removing. */
struct error *
spdk_remove_target(struct spdk_session *session, const struct spdk_place *place, const char *bdev)
{
    struct buffer params AUTO(buffer_clear) = {0};
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    bool is_there = true;
    json_append_member(&params, "ctrlr", place->controller);
    add_number(&params, "scsi_target_num", place->target);
    struct error *error = ask(session, SPDK_REMOVE_TARGET, finish(&params), &reply);
    if (!error && spdk_reply_errno(&reply) == EBUSY)
        error = is_still_there(session, place, bdev, &is_there);
    return error || !is_there ? error : check_removed(SPDK_REMOVE_TARGET, &reply);
}
