/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values: see error.h. */
#include "base/error.h"
#undef error_new
#undef error_from_errno

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const code_names[CODE_COUNT] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

static enum code
code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return CODE_NOT_FOUND;
    case EEXIST:
        return CODE_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
        return CODE_PERMISSION_DENIED;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return CODE_RESOURCE_EXHAUSTED;
    case EINVAL:
    case ENAMETOOLONG:
        return CODE_INVALID_ARGUMENT;
    case EBUSY:
    case ENOTEMPTY:
        return CODE_FAILED_PRECONDITION;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRINUSE:
        return CODE_UNAVAILABLE;
    case ETIMEDOUT:
        return CODE_DEADLINE_EXCEEDED;
    case ENOSYS:
    case EOPNOTSUPP:
        return CODE_UNIMPLEMENTED;
    default:
        return CODE_INTERNAL;
    }
}

static char *
format_message(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        memory_exhausted();
    return text;
}

static struct error *
error_with_message(enum code code, char *message)
{
    struct error *error = memory_zeroed(sizeof *error);
    error->code = code;
    error->message = message;
    return error;
}

struct error *
error_new(enum code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    return error_with_message(code, message);
}

/* Joins "<head>: <tail>" and frees the head. */
static char *
join_message(char *head, const char *tail)
{
    char *joined = NULL;
    if (asprintf(&joined, "%s: %s", head, tail) < 0)
        memory_exhausted();
    free(head);
    return joined;
}

struct error *
error_from_errno(int errnum, const char *format, ...)
{
    char buffer[128];
    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    return error_with_message(code_of_errno(errnum),
                              join_message(message, strerror_r(errnum, buffer, sizeof buffer)));
}

struct error *
error_wrap(struct error *cause, const char *format, ...)
{
    if (!cause)
        return NULL;
    va_list arguments;
    va_start(arguments, format);
    char *head = format_message(format, arguments);
    va_end(arguments);
    char *inner = cause->message;
    cause->message = join_message(head, inner);
    free(inner);
    return cause;
}

struct error *
error_advise(struct error *error, const char *format, ...)
{
    char *message = NULL;
    if (!error)
        return NULL;
    va_list arguments;
    va_start(arguments, format);
    char *advice = format_message(format, arguments);
    va_end(arguments);
    if (asprintf(&message, "%s; %s", error->message, advice) < 0)
        memory_exhausted();
    free(advice);
    free(error->message);
    error->message = message;
    return error;
}

struct error *
error_forgive(struct error *error, enum code code)
{
    if (!error || error->code != code)
        return error;
    error_free(error);
    return NULL;
}

void
error_free(struct error *error)
{
    if (!error)
        return;
    free(error->message);
    free(error->details);
    free(error);
}

void
error_cleanup(struct error **error)
{
    error_free(*error);
}

const char *
error_code_name(enum code code)
{
    return (unsigned)code < CODE_COUNT ? code_names[code] : "UNKNOWN";
}
