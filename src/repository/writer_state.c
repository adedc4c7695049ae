/* SPDX-License-Identifier: Apache-2.0 */
/* What all threads of a writer share: its error, and whether others take it for dead. */
#include "repository/writer_internal.h"

void
writer_fail(struct repository_writer *writer, struct error *error)
{
    if (!error)
        return;
    if (writer->error)
        error_free(error);
    else
        writer->error = error;
    pthread_cond_broadcast(&writer->changed);
}

struct error *
writer_error(const struct repository_writer *writer)
{
    if (!writer->error)
        return NULL;
    return error_new(writer->error->code, "%s", writer->error->message);
}

struct error *
writer_check_alive(struct repository_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct writers_own own = writer->own;
    pthread_mutex_unlock(&writer->lock);
    return writers_check(writer->repository, &own);
}
