/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to report failures: a function that can fail returns `struct error *`; NULL is
 * success.
 *
 * The failing function says what it did, its callers wrap the error with their purpose, and only
 * the outermost logs it or replies with it. The caller owns the error: it frees it, passes it on,
 * or wraps it. Safe from any thread.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

/* The canonical gRPC status numbers. */
enum code {
    CODE_OK = 0,
    CODE_CANCELLED = 1,
    CODE_UNKNOWN = 2,
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_NOT_FOUND = 5,
    CODE_ALREADY_EXISTS = 6,
    CODE_PERMISSION_DENIED = 7,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_ABORTED = 10,
    CODE_OUT_OF_RANGE = 11,
    CODE_UNIMPLEMENTED = 12,
    CODE_INTERNAL = 13,
    CODE_UNAVAILABLE = 14,
    CODE_DATA_LOSS = 15,
    CODE_UNAUTHENTICATED = 16,
    CODE_COUNT
};

struct error {
    enum code code;
    char *message;
    /* A serialized google.rpc.Status for `grpc-status-details-bin`, or NULL. */
    uint8_t *details;
    size_t details_size;
    /* A server sent it, so the server was reached, whatever the code. */
    bool from_peer;
    /* The connection was lost: the call may or may not have been carried out. */
    bool in_doubt;
};

MUST_CHECK NEVER_NULL struct error *error_new(enum code code, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* From an errno value: chooses the code, and appends ": <text of errnum>" to the message. */
MUST_CHECK NEVER_NULL struct error *error_from_errno(int errnum, const char *format, ...)
    PRINTF_LIKE(2, 3);

#ifdef __clang_analyzer__ /* it ignores returns_nonnull */
static inline struct error *
error_is_there(struct error *error)
{
    if (!error)
        __builtin_unreachable();
    return error;
}
#define error_new(...) error_is_there(error_new(__VA_ARGS__))
#define error_from_errno(...) error_is_there(error_from_errno(__VA_ARGS__))
#endif

/*
 * Prepends "<message>: " to the cause's message and keeps its code. Takes the cause. NULL stays
 * NULL.
 */
MUST_CHECK struct error *error_wrap(struct error *cause, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends "; <advice>" to the message: what the user can do. Takes and returns the error. */
MUST_CHECK struct error *error_advise(struct error *error, const char *format, ...)
    PRINTF_LIKE(2, 3);

void error_free(struct error *error);

/* Takes the error. Returns NULL if it has this code, which is no error here. */
MUST_CHECK struct error *error_forgive(struct error *error, enum code code);

/* "NOT_FOUND" and so on; "UNKNOWN" for an unknown number. */
const char *error_code_name(enum code code);

/* For `struct error *e AUTO(error_cleanup)`. */
void error_cleanup(struct error **error);

#endif
