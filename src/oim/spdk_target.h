/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of an SPDK target, in the names of today, or in older ones, of 2019 and before,
 * where the target says that it does not know the first.
 *
 * One session, with a connection of its own, for each call of the controller: a target that was
 * restarted is connected to again by the next one. What is not there is told as such and is no
 * error; an error is UNAVAILABLE, DEADLINE_EXCEEDED, or what the target said against a request.
 */
#ifndef OIM_SPDK_TARGET_H
#define OIM_SPDK_TARGET_H

#include <stdatomic.h>

#include "oim/accelerator.h"
#include "oim/json_rpc.h"

/* SPDK_VHOST_SCSI_CTRLR_MAX_DEVS */
#define SPDK_TARGET_COUNT 8

enum spdk_method {
    SPDK_GET_BDEVS,
    SPDK_CREATE_MALLOC,
    SPDK_DELETE_MALLOC,
    SPDK_CREATE_RBD,
    SPDK_DELETE_RBD,
    SPDK_GET_CONTROLLERS,
    SPDK_ADD_TARGET,
    SPDK_REMOVE_TARGET,
    SPDK_METHOD_COUNT
};

struct spdk_target {
    const char *socket;
    atomic_uint known_name
        [SPDK_METHOD_COUNT]; /* which of a method's names it knew when it was asked last */
};

struct spdk_session {
    struct spdk_target *target;
    struct json_rpc rpc;
};

/* For `struct spdk_session session AUTO(spdk_session_close) = SPDK_SESSION_NONE`. */
#define SPDK_SESSION_NONE                                                                          \
    {                                                                                              \
        .rpc.fd = -1                                                                               \
    }
MUST_CHECK struct error *spdk_session_open(struct spdk_session *session, struct spdk_target *target,
                                           uint64_t deadline_ns);
void spdk_session_close(struct spdk_session *session);

/* ---- block devices ---- */

struct spdk_bdev {
    struct json_rpc_reply reply;
    const struct json_value *info; /* NULL: there is none of this name */
    bool is_malloc;
    /* another device of the target stands upon it, and nobody else may write to it */
    bool is_claimed;
    const struct json_value *rbd; /* what the target tells of an image of Ceph; NULL: it is none */
    uint64_t size_bytes;
};

/* For `struct spdk_bdev bdev AUTO(spdk_bdev_clear) = {0}`. */
void spdk_bdev_clear(struct spdk_bdev *bdev);
MUST_CHECK struct error *spdk_find_bdev(struct spdk_session *session, const char *name,
                                        struct spdk_bdev *out);

MUST_CHECK struct error *spdk_create_malloc(struct spdk_session *session, const char *name,
                                            uint64_t size_bytes);
MUST_CHECK struct error *spdk_create_rbd(struct spdk_session *session, const char *name,
                                         const struct ceph_image *image);
/* That it is not there is success. `method` is SPDK_DELETE_MALLOC or SPDK_DELETE_RBD. */
MUST_CHECK struct error *spdk_delete_bdev(struct spdk_session *session, enum spdk_method method,
                                          const char *name);

/* ---- vhost-scsi ---- */

struct spdk_place {
    const char *controller;
    unsigned target;
    unsigned lun;
};

/* Where a block device is used, among all vhost controllers. */
struct spdk_view {
    struct json_rpc_reply reply;
    struct spdk_place *places;
    size_t count;
    bool has_controller; /* there is one of the wanted name, and it is a vhost-scsi one */
    size_t taken;        /* of its targets */
    const char *disk_of; /* the vhost-blk controller whose disk it is; NULL: none */
};

/* For `struct spdk_view view AUTO(spdk_view_clear) = {0}`. */
void spdk_view_clear(struct spdk_view *view);
MUST_CHECK struct error *spdk_look(struct spdk_session *session, const char *controller,
                                   const char *bdev, struct spdk_view *out);

/* `number` -1: the first that is free. What the target refuses is in the reply. */
MUST_CHECK struct error *spdk_add_target(struct spdk_session *session, const char *controller,
                                         int number, const char *bdev,
                                         struct json_rpc_reply *reply);
/* That it is not there is success. */
MUST_CHECK struct error *spdk_remove_target(struct spdk_session *session,
                                            const struct spdk_place *place, const char *bdev);

/* What the target said against a request, by what it means: an error number, or 0 if it is none. */
int spdk_reply_errno(const struct json_rpc_reply *reply);
/* The same as an error. */
MUST_CHECK struct error *spdk_reply_error(enum spdk_method method,
                                          const struct json_rpc_reply *reply);

#endif
