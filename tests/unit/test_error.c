/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/error.c */
#include "base/error.h"

#include <errno.h>

#include "check.h"

static void
an_error_has_its_code_and_message(void)
{
    struct error *error AUTO(error_cleanup) = error_new(CODE_NOT_FOUND, "volume %s", "v1");
    CHECK_NUMBER(error->code, CODE_NOT_FOUND);
    CHECK_TEXT(error->message, "volume v1");
    CHECK(!error->details && !error->details_size);
}

static void
a_wrapped_error_keeps_its_code_and_says_why(void)
{
    struct error *error AUTO(error_cleanup) = error_new(CODE_ABORTED, "the key is in use");
    error = error_wrap(error, "create %s", "v1");
    error = error_wrap(error, "CreateVolume");
    CHECK_NUMBER(error->code, CODE_ABORTED);
    CHECK_TEXT(error->message, "CreateVolume: create v1: the key is in use");
}

static void
success_stays_success_when_wrapped(void)
{
    CHECK(error_wrap(NULL, "create %s", "v1") == NULL);
    error_free(NULL);
}

static void
only_what_is_forgiven_goes(void)
{
    CHECK(error_forgive(NULL, CODE_NOT_FOUND) == NULL);
    CHECK(error_forgive(error_new(CODE_NOT_FOUND, "gone"), CODE_NOT_FOUND) == NULL);
    struct error *kept AUTO(error_cleanup) =
        error_forgive(error_new(CODE_ABORTED, "busy"), CODE_NOT_FOUND);
    CHECK(kept != NULL);
    CHECK_TEXT(kept->message, "busy");
}

static void
an_errno_value_gets_the_code_that_fits(void)
{
    static const struct {
        int errnum;
        enum code code;
    } expected[] = {
        {ENOENT, CODE_NOT_FOUND},          {EEXIST, CODE_ALREADY_EXISTS},
        {EACCES, CODE_PERMISSION_DENIED},  {EPERM, CODE_PERMISSION_DENIED},
        {ENOSPC, CODE_RESOURCE_EXHAUSTED}, {EDQUOT, CODE_RESOURCE_EXHAUSTED},
        {EMFILE, CODE_RESOURCE_EXHAUSTED}, {EINVAL, CODE_INVALID_ARGUMENT},
        {EBUSY, CODE_FAILED_PRECONDITION}, {ECONNREFUSED, CODE_UNAVAILABLE},
        {EADDRINUSE, CODE_UNAVAILABLE},    {ETIMEDOUT, CODE_DEADLINE_EXCEEDED},
        {EOPNOTSUPP, CODE_UNIMPLEMENTED},  {EIO, CODE_INTERNAL},
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct error *error AUTO(error_cleanup) = error_from_errno(expected[i].errnum, "x");
        CHECK_NUMBER(error->code, expected[i].code);
    }
}

static void
an_errno_value_is_told_in_words(void)
{
    struct error *error AUTO(error_cleanup) = error_from_errno(ENOENT, "open %s", "/x");
    CHECK_TEXT(error->message, "open /x: No such file or directory");
}

static void
every_code_has_the_name_that_grpc_gives_it(void)
{
    CHECK_TEXT(error_code_name(CODE_OK), "OK");
    CHECK_TEXT(error_code_name(CODE_CANCELLED), "CANCELLED");
    CHECK_TEXT(error_code_name(CODE_FAILED_PRECONDITION), "FAILED_PRECONDITION");
    CHECK_TEXT(error_code_name(CODE_UNAUTHENTICATED), "UNAUTHENTICATED");
    CHECK_TEXT(error_code_name((enum code)17), "UNKNOWN");
    CHECK_TEXT(error_code_name((enum code) - 1), "UNKNOWN");
    for (int i = 0; i < CODE_COUNT; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(error_code_name((enum code)i), error_code_name((enum code)j)) != 0);
}

int
main(void)
{
    an_error_has_its_code_and_message();
    a_wrapped_error_keeps_its_code_and_says_why();
    success_stays_success_when_wrapped();
    only_what_is_forgiven_goes();
    an_errno_value_gets_the_code_that_fits();
    an_errno_value_is_told_in_words();
    every_code_has_the_name_that_grpc_gives_it();
    return check_report("test_error");
}
