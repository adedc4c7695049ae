/* SPDX-License-Identifier: Apache-2.0 */
/* Header fields of an outgoing request: see request_fields.h. */
#include "rpc/client/request_fields.h"

#include <string.h>

#include "base/base64.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/version.h"
#include "rpc/grpc/grpc_text.h"

#define NO_COPY (NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)
#define MAX_OWN_FIELDS 8

static void
add(struct request_fields *fields, const char *name, size_t name_size, const char *value,
    size_t value_size)
{
    fields->items[fields->count++] =
        (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, name_size, value_size, NO_COPY};
}

static void
add_text(struct request_fields *fields, const char *name, const char *value)
{
    add(fields, name, strlen(name), value, strlen(value));
}

void
request_fields_begin(struct request_fields *fields, struct arena *arena,
                     const struct channel *channel, const char *path, size_t more)
{
    fields->arena = arena;
    fields->count = 0;
    fields->items = MAX_OWN_FIELDS + more <= COUNT_OF(fields->inline_items)
                        ? fields->inline_items
                        : arena_alloc(arena, (MAX_OWN_FIELDS + more) * sizeof *fields->items);
    add_text(fields, ":method", "POST");
    add_text(fields, ":scheme", channel->tls ? "https" : "http");
    add_text(fields, ":path", path);
    add_text(fields, ":authority", channel->authority);
}

void
request_fields_add_grpc(struct request_fields *fields)
{
    add_text(fields, "te", "trailers");
    add_text(fields, "content-type", "application/grpc");
    add_text(fields, "user-agent", "skycap/" SKYCAP_VERSION);
}

/* Applies to the field added last. */
static void
never_index(struct request_fields *fields)
{
    fields->items[fields->count - 1].flags |= NGHTTP2_NV_FLAG_NO_INDEX;
}

void
request_fields_add_timeout(struct request_fields *fields, uint64_t deadline_at)
{
    if (!deadline_at)
        return;
    uint64_t now = timers_now();
    char *text = arena_alloc(fields->arena, 16);
    size_t size = grpc_text_print_timeout(deadline_at > now ? deadline_at - now : 1, text);
    add(fields, "grpc-timeout", strlen("grpc-timeout"), text, size);
    /* Each value is unique: an entry in the HPACK table would only evict useful ones. */
    never_index(fields);
}

void
request_fields_add_raw(struct request_fields *fields, const struct metadata_entry *entry)
{
    add(fields, entry->key, entry->key_size, entry->value, entry->value_size);
    if (entry->is_secret)
        never_index(fields);
}

void
request_fields_add_metadata(struct request_fields *fields, const struct metadata *metadata)
{
    for (const struct metadata_entry *entry = metadata->first; entry; entry = entry->next) {
        if (!metadata_key_is_binary(entry->key, entry->key_size)) {
            request_fields_add_raw(fields, entry);
            continue;
        }
        struct buffer text AUTO(buffer_clear) = {0};
        base64_encode(entry->value, entry->value_size, false, &text);
        add(fields, entry->key, entry->key_size, arena_copy(fields->arena, text.bytes, text.size),
            text.size);
    }
}
