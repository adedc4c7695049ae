/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of objects in XML: see s3_list.h. */
#include "repository/s3_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8u
#define NAME_MAX_BYTES 64u

/* Where the reader is: the names of the open elements, and the text of the innermost. */
struct reader {
    const char *at;
    const char *end;
    char names[DEPTH_MAX][NAME_MAX_BYTES];
    unsigned depth;
    struct buffer text;
};

static struct error *
refuse(const char *what)
{
    return error_new(CODE_UNAVAILABLE, "the server's list cannot be understood: %s", what);
}

/* ---- text ---- */

static bool
append_character(struct buffer *out, unsigned long code)
{
    if (!code || code > 0x7f) /* keys and tokens have no others */
        return false;
    buffer_append_byte(out, (uint8_t)code);
    return true;
}

/* "&amp;" and so on; moves behind it. */
static bool
take_entity(struct reader *reader)
{
    static const struct {
        const char *name;
        char character;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    size_t left = (size_t)(reader->end - reader->at);
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        size_t size = strlen(entities[i].name);
        if (left >= size && !memcmp(reader->at, entities[i].name, size)) {
            reader->at += size;
            return append_character(&reader->text, (unsigned char)entities[i].character);
        }
    }
    char digits[12] = "";
    const char *stop = memchr(reader->at, ';', left < sizeof digits ? left : sizeof digits);
    if (!stop || left < 4 || reader->at[1] != '#')
        return false;
    memcpy(digits, reader->at + 2, (size_t)(stop - reader->at - 2));
    bool is_hex = digits[0] == 'x';
    char *rest = NULL;
    unsigned long code = strtoul(digits + is_hex, &rest, is_hex ? 16 : 10);
    if (rest == digits + is_hex || *rest)
        return false;
    reader->at = stop + 1;
    return append_character(&reader->text, code);
}

/* ---- elements ---- */

enum step { STEP_OPEN, STEP_CLOSE, STEP_END, STEP_BAD };

static enum step
open_element(struct reader *reader, const char *name, size_t size, bool is_empty)
{
    if (!size || size >= NAME_MAX_BYTES || reader->depth == DEPTH_MAX)
        return STEP_BAD;
    memcpy(reader->names[reader->depth], name, size);
    reader->names[reader->depth++][size] = 0;
    reader->text.size = 0;
    /* The reader meets the slash again, and closes it then. */
    return is_empty ? STEP_CLOSE : STEP_OPEN;
}

/* At '<'. */
static enum step
take_tag(struct reader *reader)
{
    const char *stop = memchr(reader->at, '>', (size_t)(reader->end - reader->at));
    if (!stop)
        return STEP_BAD;
    const char *name = reader->at + 1;
    size_t size = (size_t)(stop - name);
    reader->at = stop + 1;
    if (size && name[0] == '?')
        return STEP_OPEN; /* the declaration */
    if (size && name[0] == '/') {
        size_t bytes = size - 1;
        if (!reader->depth || strlen(reader->names[reader->depth - 1]) != bytes ||
            memcmp(reader->names[reader->depth - 1], name + 1, bytes) != 0)
            return STEP_BAD;
        return STEP_CLOSE;
    }
    if (!size || name[0] == '!')
        return STEP_BAD;
    bool is_empty = name[size - 1] == '/';
    return open_element(reader, name, strcspn(name, " \t\r\n/>"), is_empty);
}

/* Goes to the next begin or end of an element. After STEP_CLOSE the caller reduces the depth. */
static enum step
next_step(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at != '<') {
        if (*reader->at == '&') {
            if (!take_entity(reader))
                return STEP_BAD;
            continue;
        }
        buffer_append_byte(&reader->text, (uint8_t)*reader->at++);
    }
    return reader->at < reader->end ? take_tag(reader) : STEP_END;
}

static bool
is_at(const struct reader *reader, unsigned depth, const char *name)
{
    return reader->depth == depth && !strcmp(reader->names[depth - 1], name);
}

/* ---- the list ---- */

struct listing {
    struct reader reader;
    struct s3_list *list;
    struct error *(*each)(const char *key, uint64_t size, void *context);
    void *context;
    struct buffer key;
    uint64_t size;
};

static bool
parse_size(struct buffer *text, uint64_t *out)
{
    const char *digits = buffer_text(text);
    if (!text->size || text->size > 18 || strspn(digits, "0123456789") != text->size)
        return false;
    *out = strtoull(digits, NULL, 10);
    return true;
}

static int
compare_keys(const struct buffer *a, const struct buffer *b)
{
    int order = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static void
note_key(struct s3_list *list, const struct buffer *key)
{
    if (list->highest.size && compare_keys(key, &list->highest) <= 0)
        return;
    list->is_idle = false;
    list->highest.size = 0;
    buffer_append(&list->highest, key->bytes, key->size);
}

/* The element that ends here is ListBucketResult/NAME. */
static struct error *
end_part(struct listing *listing)
{
    struct reader *reader = &listing->reader;
    const char *text = buffer_text(&reader->text);
    if (is_at(reader, 2, "IsTruncated"))
        listing->list->is_truncated = !strcmp(text, "true");
    if (is_at(reader, 2, "NextContinuationToken")) {
        if (reader->text.size > S3_TOKEN_MAX)
            return refuse("a continuation token of more than 4096 bytes");
        listing->list->token.size = 0;
        buffer_append(&listing->list->token, reader->text.bytes, reader->text.size);
    }
    if (!is_at(reader, 2, "Contents"))
        return NULL;
    if (!listing->key.size || memchr(listing->key.bytes, 0, listing->key.size))
        return refuse("an object without a key");
    note_key(listing->list, &listing->key);
    return listing->each(buffer_text(&listing->key), listing->size, listing->context);
}

static struct error *
end_element(struct listing *listing)
{
    struct reader *reader = &listing->reader;
    bool is_object = reader->depth == 3 && !strcmp(reader->names[1], "Contents");
    if (is_object && is_at(reader, 3, "Key")) {
        if (reader->text.size > S3_KEY_MAX)
            return refuse("a key of more than 1024 bytes");
        listing->key.size = 0;
        buffer_append(&listing->key, reader->text.bytes, reader->text.size);
    }
    if (is_object && is_at(reader, 3, "Size") && !parse_size(&reader->text, &listing->size))
        return refuse("the size of an object");
    return reader->depth == 2 ? end_part(listing) : NULL;
}

static struct error *
parse(struct listing *listing)
{
    struct reader *reader = &listing->reader;
    bool has_root = false;
    for (;;) {
        enum step step = next_step(reader);
        if (step == STEP_BAD)
            return refuse("its XML");
        if (step == STEP_END)
            return has_root && !reader->depth ? NULL : refuse("its end is missing");
        if (step == STEP_OPEN && reader->depth == 1 && strcmp(reader->names[0], "ListBucketResult"))
            return refuse("it is something else");
        has_root |= reader->depth == 1;
        if (step == STEP_OPEN && is_at(reader, 2, "Contents")) {
            listing->key.size = 0;
            listing->size = 0;
        }
        if (step != STEP_CLOSE)
            continue;
        struct error *error = end_element(listing);
        if (error)
            return error;
        reader->depth--;
        reader->text.size = 0;
    }
}

/* ---- pages ---- */

static struct error *
endless(const char *what)
{
    return error_new(CODE_FAILED_PRECONDITION, "the server's list does not end: %s", what);
}

/*
 * A token is compared with one that is marked anew whenever the number of pages has doubled: so
 * tokens that come round are noticed, however many they are.
 */
static struct error *
check_token(struct s3_list *list)
{
    const struct buffer *token = &list->token, *marked = &list->marked;
    if (marked->size == token->size && !memcmp(marked->bytes, token->bytes, token->size))
        return endless("its continuation tokens repeat");
    if (list->pages & (list->pages - 1))
        return NULL;
    list->marked.size = 0;
    buffer_append(&list->marked, token->bytes, token->size);
    return NULL;
}

/* Behind a page: whether it leads to the end. */
static struct error *
check_progress(struct s3_list *list)
{
    list->pages++;
    list->idle_pages = list->is_idle ? list->idle_pages + 1 : 0;
    if (!list->is_truncated)
        return NULL;
    if (!list->token.size)
        return refuse("it goes on without saying where");
    if (list->idle_pages > S3_IDLE_PAGES_MAX)
        return endless("more than 100 pages in a row have no new key");
    if (list->pages >= S3_PAGES_MAX)
        return endless("it has 100000 pages");
    return check_token(list);
}

void
s3_list_clear(struct s3_list *list)
{
    buffer_clear(&list->token);
    buffer_clear(&list->highest);
    buffer_clear(&list->marked);
    *list = (struct s3_list){0};
}

struct error *
s3_list_parse(const uint8_t *bytes, size_t size, struct s3_list *list,
              struct error *(*each)(const char *key, uint64_t size, void *context), void *context)
{
    struct listing listing = {.list = list, .each = each, .context = context};
    listing.reader.at = (const char *)bytes;
    listing.reader.end = listing.reader.at + size;
    list->is_truncated = false;
    list->is_idle = true;
    list->token.size = 0;
    struct error *error = parse(&listing);
    buffer_clear(&listing.reader.text);
    buffer_clear(&listing.key);
    return error ? error : check_progress(list);
}

/* ---- errors ---- */

void
s3_error_code(const uint8_t *bytes, size_t size, char *out, size_t room)
{
    struct reader reader = {.at = (const char *)bytes, .end = (const char *)bytes + size};
    enum step step = STEP_OPEN;
    out[0] = 0;
    while (!out[0] && (step == STEP_OPEN || step == STEP_CLOSE)) {
        step = next_step(&reader);
        if (step != STEP_CLOSE)
            continue;
        if (is_at(&reader, 2, "Code"))
            snprintf(out, room, "%s", buffer_text(&reader.text));
        reader.depth--;
    }
    for (char *c = out; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    buffer_clear(&reader.text);
}
