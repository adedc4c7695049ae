/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a list of objects, and as an error, from an S3 server. */
#include <string.h>

#include "repository/s3_list.h"
#include "require.h"

static struct error *
each(const char *key, uint64_t size, void *context)
{
    unsigned *count = context;
    REQUIRE(key[0] && strlen(key) <= S3_KEY_MAX && size < UINT64_C(1000000000000000000));
    for (; *key; key++)
        REQUIRE((unsigned char)*key >= 1);
    ++*count;
    return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s3_list list = {0};
    unsigned count = 0;
    char code[32];
    struct error *error = s3_list_parse(data, size, &list, each, &count);
    REQUIRE(error || !list.is_truncated || (list.token.size && list.token.size <= S3_TOKEN_MAX));
    REQUIRE(count <= size / 10);
    /* The same page again has the same token. */
    if (!error && list.is_truncated) {
        error = s3_list_parse(data, size, &list, each, &count);
        REQUIRE(error && error->code == CODE_FAILED_PRECONDITION);
    }
    error_free(error);
    s3_list_clear(&list);
    s3_error_code(data, size, code, sizeof code);
    for (const char *c = code; *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~');
    return 0;
}
