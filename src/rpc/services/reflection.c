/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.reflection: see reflection.h.
 *
 * v1alpha and v1 have identical messages, byte for byte. One handler serves both: it treats a
 * v1alpha message as the v1 type of the same layout, which the assertions below check.
 */
#include "rpc/services/reflection.h"

#include <string.h>

#include "proto/reflection.rpc.h"
#include "proto/reflection_v1alpha.rpc.h"
#include "rpc/server/call.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse reflection_response;

#define REQUEST(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
#define RESPONSE(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name

static void
answer_error(struct arena *arena, reflection_response *response, enum code code, const char *text)
{
    Grpc__Reflection__V1__ErrorResponse *error = arena_alloc(arena, sizeof *error);
    grpc__reflection__v1__error_response__init(error);
    error->error_code = code;
    error->error_message = (char *)text;
    response->message_response_case = RESPONSE(ERROR_RESPONSE);
    response->error_response = error;
}

/* ---- files ---- */

static const struct proto_file *
find_file(const char *name)
{
    for (const struct proto_file *const *file = all_proto_files; *file; file++)
        if (strcmp((*file)->name, name) == 0)
            return *file;
    return NULL;
}

static const struct proto_file *
find_file_with(const char *symbol)
{
    for (const struct proto_file *const *file = all_proto_files; *file; file++)
        for (const char *const *known = (*file)->symbols; *known; known++)
            if (strcmp(*known, symbol) == 0)
                return *file;
    return NULL;
}

static size_t
count_files(void)
{
    size_t count = 0;
    while (all_proto_files[count])
        count++;
    return count;
}

static void
add_with_imports(const struct proto_file *file, ProtobufCBinaryData *list, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i].data == file->descriptor)
            return;
    list[(*count)++] = (ProtobufCBinaryData){file->descriptor_size, (uint8_t *)file->descriptor};
    for (const char *const *name = file->imports; *name; name++) {
        const struct proto_file *import = find_file(*name);
        if (import)
            add_with_imports(import, list, count);
    }
}

static void
answer_file(struct arena *arena, reflection_response *response, const struct proto_file *file)
{
    if (!file) {
        answer_error(arena, response, CODE_NOT_FOUND, "not known to this server");
        return;
    }
    Grpc__Reflection__V1__FileDescriptorResponse *files = arena_alloc(arena, sizeof *files);
    grpc__reflection__v1__file_descriptor_response__init(files);
    files->file_descriptor_proto =
        arena_alloc(arena, count_files() * sizeof *files->file_descriptor_proto);
    add_with_imports(file, files->file_descriptor_proto, &files->n_file_descriptor_proto);
    response->message_response_case = RESPONSE(FILE_DESCRIPTOR_RESPONSE);
    response->file_descriptor_response = files;
}

/* ---- services ---- */

static void
answer_services(struct arena *arena, reflection_response *response, const struct server *server)
{
    const struct service *const *services = server_services(server);
    Grpc__Reflection__V1__ListServiceResponse *list = arena_alloc(arena, sizeof *list);
    grpc__reflection__v1__list_service_response__init(list);
    while (services[list->n_service])
        list->n_service++;
    list->service = arena_alloc(arena, list->n_service * sizeof(void *));
    for (size_t i = 0; i < list->n_service; i++) {
        list->service[i] = arena_alloc(arena, sizeof *list->service[i]);
        grpc__reflection__v1__service_response__init(list->service[i]);
        list->service[i]->name = (char *)services[i]->name;
    }
    response->message_response_case = RESPONSE(LIST_SERVICES_RESPONSE);
    response->list_services_response = list;
}

/* ---- the stream ---- */

static void
answer(struct arena *arena, const reflection_request *request, reflection_response *response,
       const struct server *server)
{
    switch (request->message_request_case) {
    case REQUEST(LIST_SERVICES):
        answer_services(arena, response, server);
        break;
    case REQUEST(FILE_BY_FILENAME):
        answer_file(arena, response, find_file(request->file_by_filename));
        break;
    case REQUEST(FILE_CONTAINING_SYMBOL):
        answer_file(arena, response, find_file_with(request->file_containing_symbol));
        break;
    case REQUEST(FILE_CONTAINING_EXTENSION):
    case REQUEST(ALL_EXTENSION_NUMBERS_OF_TYPE):
        answer_error(arena, response, CODE_NOT_FOUND, "no such extension is known to this server");
        break;
    default:
        answer_error(arena, response, CODE_INVALID_ARGUMENT, "the request is empty");
    }
}

static struct error *
serve(struct call *call)
{
    /*
     * A stream may bring any number of requests, so each one's memory is freed after its response.
     */
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    reflection_request *request;
    for (;;) {
        struct error *error = call_recv(call, &request);
        if (error || !request)
            return error;
        arena_clear(&arena);
        reflection_response response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
        response.valid_host = request->host;
        response.original_request = request;
        answer(&arena, request, &response, call_context(call));
        error = call_send(call, &response.base);
        if (error)
            return error;
    }
}

_Static_assert(sizeof(reflection_request) ==
                   sizeof(Grpc__Reflection__V1alpha__ServerReflectionRequest),
               "v1 and v1alpha have the same requests");
_Static_assert(sizeof(reflection_response) ==
                   sizeof(Grpc__Reflection__V1alpha__ServerReflectionResponse),
               "v1 and v1alpha have the same responses");

static const struct grpc_reflection_v1_server_reflection v1_handlers = {
    .server_reflection_info = {serve},
};
static const struct grpc_reflection_v1alpha_server_reflection v1alpha_handlers = {
    .server_reflection_info = {serve},
};

void
reflection_add(struct server *server)
{
    server_add_service(server, &grpc_reflection_v1_server_reflection_service, &v1_handlers, server);
    server_add_service(server, &grpc_reflection_v1alpha_server_reflection_service,
                       &v1alpha_handlers, server);
}
