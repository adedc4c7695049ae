/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the files of the web page: see assets.h. */
#include "web/assets.h"

#include <string.h>

static const struct asset *
find(const char *path)
{
    if (strcmp(path, "/") == 0)
        path = "/index.html";
    for (size_t i = 0; i < assets_count; i++)
        if (strcmp(assets_table[i].path, path) == 0)
            return &assets_table[i];
    return NULL;
}

/* A browser asks each time, and gets the file only if it has changed. */
void
assets_serve(const struct http_request *request, struct http_answer *answer)
{
    const struct asset *asset = find(request->path);
    if (!asset) {
        http_answer_text(answer, 404, "");
        return;
    }
    bool is_packed = http_request_accepts_gzip(request);
    answer->status = 200;
    answer->content_type = asset->content_type;
    answer->cache = "no-cache";
    buffer_print(&answer->fields, "ETag: W/%s\r\nVary: Accept-Encoding\r\n", asset->tag);
    if (request->if_none_match && strstr(request->if_none_match, asset->tag)) {
        answer->status = 304;
        return;
    }
    if (is_packed)
        buffer_append_text(&answer->fields, "Content-Encoding: gzip\r\n");
    answer->fixed = is_packed ? asset->packed : asset->bytes;
    answer->fixed_size = is_packed ? asset->packed_size : asset->size;
}
