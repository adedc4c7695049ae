/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generated tables of services and methods (proto/NAME.rpc.c), and the interface to handlers.
 *
 * tools/generate-rpc makes them from the .proto files, which are the only list of RPCs. For each
 * service there is a struct of typed handlers, and a `struct service` with paths, kinds and message
 * types.
 */
#ifndef MESSAGE_SERVICE_H
#define MESSAGE_SERVICE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct call;

enum method_kind {
    METHOD_UNARY,
    METHOD_CLIENT_STREAM,
    METHOD_SERVER_STREAM,
    METHOD_BIDI_STREAM,
};

struct method {
    const char *path; /* "/csi.v1.Identity/Probe" */
    const char *name; /* "Probe" */
    enum method_kind kind;
    const ProtobufCMessageDescriptor *input;
    const ProtobufCMessageDescriptor *output;
    /*
     * Runs the handler that `handlers` has for this method. `request` and `reply` are NULL if the
     * kind has none.
     */
    struct error *(*run)(const void *handlers, struct call *call, const void *request, void *reply);
    /* Is there a handler? Does it run on the loop? */
    bool (*exists)(const void *handlers);
    bool (*on_loop)(const void *handlers);
};

/* The client sends a stream of messages, not one. */
static inline bool
method_is_client_streaming(const struct method *method)
{
    return method->kind == METHOD_CLIENT_STREAM || method->kind == METHOD_BIDI_STREAM;
}

/* The server sends a stream of messages, not one. */
static inline bool
method_is_server_streaming(const struct method *method)
{
    return method->kind == METHOD_SERVER_STREAM || method->kind == METHOD_BIDI_STREAM;
}

struct service {
    const char *name; /* "csi.v1.Identity" */
    const struct method *methods;
    size_t method_count;
};

/* A field whose value must not be logged: options csi.v1.csi_secret and skycap.v1.secret. */
struct secret_field {
    const ProtobufCMessageDescriptor *message;
    uint32_t field;
};

/* A .proto file, for reflection. */
struct proto_file {
    const char *name;          /* "csi.proto" */
    const uint8_t *descriptor; /* serialized FileDescriptorProto */
    size_t descriptor_size;
    const char *const *imports; /* file names, NULL-terminated */
    const char *const *symbols; /* full names of all its definitions, NULL-terminated */
};

/*
 * Everything the program was built with, generated. Each list ends with NULL (or a field with
 * message NULL).
 */
extern const struct service *const all_services[];
extern const struct secret_field all_secret_fields[];
extern const struct proto_file *const all_proto_files[];

/*
 * Accepts "/csi.v1.Identity/Probe", "csi.v1.Identity/Probe" or "csi.v1.Identity.Probe". Returns
 * NULL if there is no such method.
 */
const struct method *service_find_method(const char *name);

bool service_field_is_secret(const ProtobufCMessageDescriptor *message, uint32_t field);

#endif
