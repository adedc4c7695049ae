/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Objects, repositories that this node keeps for others. A call opens the
 * directory of the repository and closes it, so that nothing is kept between calls: what a call has
 * put is durable, and a change of the file takes effect with the next call.
 */
#include <string.h>

#include "base/memory.h"
#include "connections/router/router_internal.h"
#include "repository/objects.h"
#include "volumes/repository_pool.h"

#define MOST_PUTS 4u /* at a time, each with an object in memory */
#define PIECE_BYTES (512u << 10)
#define LIST_NAMES 1024u /* in a message */

static void
close_objects(struct objects **objects)
{
    objects_close(*objects);
}

/* NOT_FOUND is the answer for an object, so that a repository that is not there has another. */
static struct error *
find_place(struct call *call, const char *name, struct repository_place *out)
{
    const struct repository_places *places = router_of(call)->repositories;
    if (!places)
        return error_new(CODE_FAILED_PRECONDITION,
                         "this node has no repositories: start it with --repositories DIR");
    struct error *error = places->find(places->context, name, call_arena(call), out);
    if (error && (error->code == CODE_NOT_FOUND || error->code == CODE_INVALID_ARGUMENT))
        error->code = CODE_FAILED_PRECONDITION;
    if (!error && !out->is_shared)
        error = error_new(CODE_PERMISSION_DENIED,
                          "the repository \"%s\" is not for other nodes: its file does not say "
                          "`shared: true`",
                          name);
    return error;
}

static struct error *
open_directory(struct call *call, const char *name, bool creates, struct objects **out)
{
    struct repository_place place = {.options.url = ""};
    struct error *error = find_place(call, name, &place);
    if (error)
        return error;
    return objects_directory_open(place.options.url + strlen("file://"), creates, out);
}

static struct error *
open_objects(struct call *call, const char *name, struct objects **out)
{
    struct error *error = open_directory(call, name, false, out);
    if (error && error->code == CODE_NOT_FOUND)
        error->code = CODE_FAILED_PRECONDITION;
    return error;
}

static struct error *
check_kind(uint32_t kind)
{
    return kind < OBJECT_KINDS ? NULL
                               : error_new(CODE_INVALID_ARGUMENT, "there is no kind %u", kind);
}

static struct error *
read_key(const Skycap__V1__ObjectKey *key, struct object_name *name)
{
    if (!key || key->name.len != sizeof name->bytes)
        return error_new(CODE_INVALID_ARGUMENT, "the name of an object has %zu bytes",
                         sizeof name->bytes);
    memcpy(name->bytes, key->name.data, sizeof name->bytes);
    return check_kind(key->kind);
}

/* For `struct objects *objects AUTO(close_objects) = NULL`. */
static struct error *
open_for(struct call *call, const Skycap__V1__ObjectKey *key, struct object_name *name,
         struct objects **out)
{
    struct error *error = read_key(key, name);
    return error ? error : open_objects(call, key->repository, out);
}

static struct error *
open(struct call *call, const Skycap__V1__OpenObjectsRequest *request,
     Skycap__V1__OpenObjectsReply *reply)
{
    (void)reply;
    struct objects *objects AUTO(close_objects) = NULL;
    return open_directory(call, request->repository, request->creates, &objects);
}

/* ---- put ---- */

struct put {
    struct objects *objects;
    enum object_kind kind;
    struct object_name name;
    bool replaces;
    uint32_t size;
    struct buffer bytes;
};

static struct error *
begin_put(struct call *call, const Skycap__V1__PutObjectRequest *first, struct put *put)
{
    if (!first)
        return error_new(CODE_INVALID_ARGUMENT, "there is no object");
    if (first->size > OBJECT_BYTES_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "an object has at most %u bytes", OBJECT_BYTES_MAX);
    struct error *error = open_for(call, first->key, &put->name, &put->objects);
    if (error)
        return error;
    put->kind = (enum object_kind)first->key->kind;
    put->size = first->size;
    put->replaces = first->replaces;
    return NULL;
}

/* Takes the pieces until the client ends. A client that breaks off is an error of call_recv. */
static struct error *
receive(struct call *call, const Skycap__V1__PutObjectRequest *piece, struct put *put)
{
    while (piece) {
        if (piece->bytes.len > put->size - put->bytes.size)
            return error_new(CODE_INVALID_ARGUMENT, "there is more than was announced");
        if (piece->bytes.len)
            buffer_append(&put->bytes, piece->bytes.data, piece->bytes.len);
        struct error *error = call_recv(call, &piece);
        if (error)
            return error;
    }
    if (put->bytes.size != put->size)
        return error_new(CODE_INVALID_ARGUMENT, "there is less than was announced");
    return NULL;
}

static struct error *
run_put(struct call *call)
{
    struct put put = {0};
    const Skycap__V1__PutObjectRequest *piece;
    struct error *error = call_recv(call, &piece);
    if (!error)
        error = begin_put(call, piece, &put);
    if (!error)
        error = receive(call, piece, &put);
    if (!error)
        error = objects_put(put.objects, put.kind, &put.name, put.bytes.bytes, put.size,
                            put.replaces ? OBJECTS_REPLACE : OBJECTS_NOW);
    objects_close(put.objects);
    buffer_clear(&put.bytes);
    return error;
}

static struct error *
put_object(struct call *call, Skycap__V1__PutObjectReply *reply)
{
    (void)reply;
    struct router *router = router_of(call);
    struct error *error =
        atomic_fetch_add(&router->puts, 1) < MOST_PUTS
            ? run_put(call)
            : error_new(CODE_UNAVAILABLE, "%u objects are being stored; try again", MOST_PUTS);
    atomic_fetch_sub(&router->puts, 1);
    return error;
}

/* ---- get ---- */

static struct error *
send_bytes(struct call *call, struct objects *objects, const struct object_name *name,
           const Skycap__V1__GetObjectRequest *request)
{
    Skycap__V1__GetObjectReply reply = SKYCAP__V1__GET_OBJECT_REPLY__INIT;
    struct error *error = NULL;
    reply.bytes.data = arena_alloc(call_arena(call), PIECE_BYTES);
    for (uint32_t done = 0; !error && done < request->size; done += (uint32_t)reply.bytes.len) {
        reply.bytes.len = request->size - done < PIECE_BYTES ? request->size - done : PIECE_BYTES;
        error = objects_get(objects, (enum object_kind)request->key->kind, name,
                            request->offset + done, reply.bytes.data, reply.bytes.len);
        if (!error)
            error = call_send(call, &reply.base);
    }
    return error;
}

static struct error *
get(struct call *call, const Skycap__V1__GetObjectRequest *request)
{
    struct objects *objects AUTO(close_objects) = NULL;
    struct object_name name;
    struct error *error = open_for(call, request->key, &name, &objects);
    if (error)
        return error;
    if (request->size > OBJECT_BYTES_MAX || request->offset > OBJECT_BYTES_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "an object has at most %u bytes", OBJECT_BYTES_MAX);
    return send_bytes(call, objects, &name, request);
}

static struct error *
size(struct call *call, const Skycap__V1__SizeObjectRequest *request,
     Skycap__V1__SizeObjectReply *reply)
{
    struct objects *objects AUTO(close_objects) = NULL;
    struct object_name name;
    struct error *error = open_for(call, request->key, &name, &objects);
    enum object_kind kind = error ? OBJECT_CONFIG : (enum object_kind)request->key->kind;
    if (!error)
        error = objects_size(objects, kind, &name, &reply->size);
    return error ? error : objects_age(objects, kind, &name, &reply->age_ms);
}

static struct error *
delete_object(struct call *call, const Skycap__V1__DeleteObjectRequest *request,
              Skycap__V1__DeleteObjectReply *reply)
{
    (void)reply;
    struct objects *objects AUTO(close_objects) = NULL;
    struct object_name name;
    struct error *error = open_for(call, request->key, &name, &objects);
    return error ? error : objects_delete(objects, (enum object_kind)request->key->kind, &name);
}

/* ---- list ---- */

struct listing {
    struct call *call;
    Skycap__V1__ListObjectsReply page;
};

static struct error *
send_page(struct listing *listing)
{
    struct error *error =
        listing->page.n_sizes ? call_send(listing->call, &listing->page.base) : NULL;
    listing->page.names.len = listing->page.n_sizes = 0;
    return error;
}

static struct error *
add_object(const struct object_name *name, uint64_t bytes, void *context)
{
    struct listing *listing = context;
    Skycap__V1__ListObjectsReply *page = &listing->page;
    memcpy(page->names.data + page->names.len, name->bytes, sizeof name->bytes);
    page->names.len += sizeof name->bytes;
    page->sizes[page->n_sizes++] = bytes;
    return page->n_sizes == LIST_NAMES ? send_page(listing) : NULL;
}

static struct error *
list(struct call *call, const Skycap__V1__ListObjectsRequest *request)
{
    struct objects *objects AUTO(close_objects) = NULL;
    struct listing listing = {call, SKYCAP__V1__LIST_OBJECTS_REPLY__INIT};
    listing.page.names.data = arena_alloc(call_arena(call), LIST_NAMES * OBJECT_NAME_BYTES);
    listing.page.sizes = arena_alloc(call_arena(call), LIST_NAMES * sizeof(uint64_t));
    struct error *error = check_kind(request->kind);
    if (!error)
        error = open_objects(call, request->repository, &objects);
    if (!error)
        error = objects_list(objects, (enum object_kind)request->kind, add_object, &listing);
    return error ? error : send_page(&listing);
}

const struct skycap_v1_objects router_objects_handlers = {
    .open = {open},
    .put = {put_object},
    .get = {get},
    .size = {size},
    .list = {list},
    .delete = {delete_object},
};
