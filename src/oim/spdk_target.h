/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to an SPDK target, by their current names, or by those of 2019 and before if the target
 * does not know the current ones.
 *
 * Each call of the controller has a session with its own connection, so a restart of SPDK affects
 * only the current call. A missing bdev is not an error; errors are UNAVAILABLE, DEADLINE_EXCEEDED,
 * and those that the target returns.
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
    atomic_uint known_name[SPDK_METHOD_COUNT]; /* the name of each method that it knew last */
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
    const struct json_value *info; /* NULL: it does not exist */
    bool is_malloc;
    bool is_claimed;              /* another SPDK device uses it exclusively */
    const struct json_value *rbd; /* of a Ceph image; NULL: it is not one */
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
/* Succeeds if it does not exist. `method` is SPDK_DELETE_MALLOC or SPDK_DELETE_RBD. */
MUST_CHECK struct error *spdk_delete_bdev(struct spdk_session *session, enum spdk_method method,
                                          const char *name);

/* ---- vhost-scsi ---- */

struct spdk_place {
    const char *controller;
    unsigned target;
    unsigned lun;
};

/* Where a block device is used, among all vhost controllers. */
struct spdk_uses {
    struct json_rpc_reply reply;
    struct spdk_place *places;
    size_t count;
    bool has_controller; /* the wanted controller exists, and is a vhost-scsi one */
    size_t taken;        /* of its targets */
    const char *disk_of; /* the vhost-blk controller whose disk it is; NULL: none */
};

/* For `struct spdk_uses uses AUTO(spdk_uses_clear) = {0}`. */
void spdk_uses_clear(struct spdk_uses *uses);
MUST_CHECK struct error *spdk_find_uses(struct spdk_session *session, const char *controller,
                                        const char *bdev, struct spdk_uses *out);

/* `number` -1: the first free one. An error of the target is returned in the reply. */
MUST_CHECK struct error *spdk_add_target(struct spdk_session *session, const char *controller,
                                         int number, const char *bdev,
                                         struct json_rpc_reply *reply);
/* Succeeds if it does not exist. */
MUST_CHECK struct error *spdk_remove_target(struct spdk_session *session,
                                            const struct spdk_place *place, const char *bdev);

/* The errno of the target's error; 0 if it has none. */
int spdk_reply_errno(const struct json_rpc_reply *reply);
MUST_CHECK struct error *spdk_reply_error(enum spdk_method method,
                                          const struct json_rpc_reply *reply);

#endif
