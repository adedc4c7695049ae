/* SPDX-License-Identifier: Apache-2.0 */
/* How long a call waits for a repository: see repositories_internal.h. */
#include "csi/repositories_internal.h"

static bool
is_cancelled(void *context)
{
    return call_is_cancelled(context);
}

struct patience
repositories_patience(struct call *call)
{
    return (struct patience){.is_over = is_cancelled, .context = call};
}
