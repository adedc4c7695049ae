/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the caller of verify what is wrong, and how far it is. */
#include "repository/verify_internal.h"

void
verify_report(struct verify *verify, enum object_kind kind, const struct object_name *name,
              const char *snapshot, const char *text)
{
    char key[OBJECT_KEY_BYTES];
    struct repository_finding finding = {.object = key, .snapshot = snapshot, .text = text};
    object_key_print(kind, name, key);
    verify->request->findings++;
    if (verify->request->found)
        verify->request->found(&finding, verify->request->context);
}

struct error *
verify_take(struct verify *verify, enum object_kind kind, const struct object_name *name,
            struct error *error)
{
    if (!error || (error->code != CODE_DATA_LOSS && error->code != CODE_NOT_FOUND))
        return error;
    verify_report(verify, kind, name, NULL, error->message);
    error_free(error);
    return NULL;
}

struct error *
verify_count(struct verify *verify)
{
    verify->done++;
    if (verify->total < verify->done) /* a snapshot is new */
        verify->total = verify->done;
    return repository_report(&verify->request->progress, verify->done, verify->total);
}
