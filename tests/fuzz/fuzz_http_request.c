/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the head of an HTTP request: it is refused, or every text of the result ends within
 * the head and has no line end, and the size of its body is bounded. Parameters decode to texts
 * without control characters.
 */
#include <string.h>

#include "base/memory.h"
#include "require.h"
#include "web/http_host.h"
#include "web/http_request.h"

static void
check_text(const char *text, const char *head, size_t size)
{
    if (!text || !text[0])
        return;
    REQUIRE(text >= head && text < head + size);
    REQUIRE(memchr(text, '\0', (size_t)(head + size - text)));
    REQUIRE(!strpbrk(text, "\r\n"));
}

static void
check_parameter(const struct http_request *request)
{
    struct arena arena;
    const char *value;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = http_request_parameter(request, "id", &arena, &value);
    for (size_t i = 0; !error && value[i]; i++)
        REQUIRE((unsigned char)value[i] >= ' ');
    REQUIRE(error || strlen(value) <= strlen(request->query));
    error_free(error);
    arena_clear(&arena);
}

static void
check_request(const struct http_request *request, const char *head, size_t size)
{
    const char *texts[] = {request->path,
                           request->query,
                           request->host,
                           request->origin,
                           request->content_type,
                           request->authorization,
                           request->accept_encoding,
                           request->if_none_match};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_text(texts[i], head, size);
    REQUIRE(request->path && request->path[0] == '/' && request->query);
    REQUIRE(!request->minor || request->host);
    REQUIRE(request->body_size <= HTTP_REQUEST_MAX_BODY);
    check_parameter(request);
    http_request_accepts_gzip(request);
    if (request->host) {
        static const char *const names[] = {"skycap.example"};
        http_host_is_known(request->host, names, COUNT_OF(names));
        if (request->origin)
            http_host_is_origin(request->host, request->origin);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t used = http_request_head_size((const char *)data, size);
    REQUIRE(used <= size);
    if (!used || used > HTTP_REQUEST_MAX_HEAD)
        return 0;
    char *head = memory_new(used);
    struct http_request request;
    memcpy(head, data, used);
    struct error *error = http_request_parse(head, used, &request);
    if (!error)
        check_request(&request, head, used);
    error_free(error);
    free(head);
    return 0;
}
