/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page, src/web/page, which the build puts into the program. */
#ifndef WEB_ASSETS_H
#define WEB_ASSETS_H

#include <stddef.h>

#include "web/http.h"

struct asset {
    const char *path; /* "/app.js" */
    const char *content_type;
    const char *tag; /* for ETag */
    const unsigned char *bytes;
    size_t size;
    const unsigned char *packed; /* by gzip */
    size_t packed_size;
};

/* Made by tools/embed-assets. */
extern const struct asset assets_table[];
extern const size_t assets_count;

/* Answers with the file; "/" is index.html. */
void assets_serve(const struct http_request *request, struct http_answer *answer);

#endif
