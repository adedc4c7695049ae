/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a store on etcd: members and prefix from the URL, and the keys below the prefix. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "rpc/http2/address.h"
#include "store/etcd_internal.h"

#define DEFAULT_PREFIX "skycap/"
#define MAX_PREFIX 256
#define MAX_MEMBERS 16

/* ---- the URL ---- */

static struct error *
wrong_place(const char *text, const char *why)
{
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"etcd:%s\": %s; say etcd://HOST:PORT[,HOST:PORT...][/PREFIX]", text, why);
}

static struct error *
check_member(const char *text, const char *member)
{
    struct address address;
    struct error *error AUTO(error_cleanup) = address_parse(member, &address);
    if (error)
        return wrong_place(text, error->message);
    if (address.kind != ADDRESS_TCP || !address.host[0] || !address.port)
        return wrong_place(text, "a member is a host and a port");
    return NULL;
}

static struct error *
add_member(struct etcd_place *place, const char *text, const char *member, size_t size)
{
    if (place->count == MAX_MEMBERS)
        return wrong_place(text, "there are more than 16 members");
    char *copy = memory_new(size + 1);
    memcpy(copy, member, size);
    copy[size] = '\0';
    place->members[place->count++] = copy;
    return check_member(text, copy);
}

static struct error *
parse_members(struct etcd_place *place, const char *text, const char *members, size_t size)
{
    place->members = memory_zeroed(MAX_MEMBERS * sizeof *place->members);
    place->members_text = memory_new(size + 1);
    memcpy(place->members_text, members, size);
    place->members_text[size] = '\0';
    const char *end = members + size;
    for (;;) {
        const char *comma = memchr(members, ',', (size_t)(end - members));
        const char *stop = comma ? comma : end;
        struct error *error = add_member(place, text, members, (size_t)(stop - members));
        if (error || !comma)
            return error;
        members = comma + 1;
    }
}

static bool
is_plain_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return utf8_is_valid(text, size);
}

/* The prefix in the URL may end in a slash or not. */
static struct error *
parse_prefix(struct etcd_place *place, const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    if (size > MAX_PREFIX || !is_plain_text(prefix, size))
        return wrong_place(text, "the prefix is at most 256 bytes of text");
    if (!size) {
        place->prefix = memory_string(DEFAULT_PREFIX);
        return NULL;
    }
    struct buffer whole AUTO(buffer_clear) = {0};
    buffer_print(&whole, "%s%s", prefix, prefix[size - 1] == '/' ? "" : "/");
    place->prefix = memory_string(buffer_text(&whole));
    return NULL;
}

struct error *
etcd_place_parse(const char *text, struct etcd_place *out)
{
    *out = (struct etcd_place){0};
    if (strncmp(text, "//", 2) != 0 || !text[2])
        return wrong_place(text, "it names no member");
    const char *members = text + 2;
    const char *slash = strchr(members, '/');
    size_t size = slash ? (size_t)(slash - members) : strlen(members);
    struct error *error = parse_members(out, text, members, size);
    if (!error)
        error = parse_prefix(out, text, slash ? slash + 1 : "");
    if (error)
        etcd_place_clear(out);
    return error;
}

void
etcd_place_clear(struct etcd_place *place)
{
    for (size_t i = 0; i < place->count; i++)
        free(place->members[i]);
    free(place->members);
    free(place->members_text);
    free(place->prefix);
    *place = (struct etcd_place){0};
}

/* ---- keys ---- */

ProtobufCBinaryData
etcd_key(const struct etcd_place *place, const char *key, struct arena *arena)
{
    char *whole = arena_print(arena, "%s%s", place->prefix, key);
    return (ProtobufCBinaryData){strlen(whole), (uint8_t *)whole};
}

/*
 * A last byte of 0xff cannot be incremented; the prefix ends in a slash, so there is always one
 * that can.
 */
ProtobufCBinaryData
etcd_key_end(ProtobufCBinaryData start, struct arena *arena)
{
    ProtobufCBinaryData end = {start.len, (uint8_t *)arena_copy(arena, start.data, start.len)};
    while (end.data[end.len - 1] == 0xff)
        end.len--;
    end.data[end.len - 1]++;
    return end;
}

ProtobufCBinaryData
etcd_key_next(ProtobufCBinaryData key, struct arena *arena)
{
    /* Includes the NUL that arena_copy appends. */
    return (ProtobufCBinaryData){key.len + 1, (uint8_t *)arena_copy(arena, key.data, key.len)};
}

const char *
etcd_own_key(const struct etcd_place *place, ProtobufCBinaryData key, struct arena *arena)
{
    size_t size = strlen(place->prefix);
    if (key.len <= size || memcmp(key.data, place->prefix, size) != 0 ||
        !utf8_is_valid((const char *)key.data + size, key.len - size) ||
        memchr(key.data, '\0', key.len))
        return NULL;
    return arena_copy(arena, key.data + size, key.len - size);
}
