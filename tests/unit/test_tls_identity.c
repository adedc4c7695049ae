/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/tls/tls_identity.c. */
#include "tls_identity_checks.h"

int
main(void)
{
    ends_set_up();
    an_identity_is_trusted_by_who_knows_it();
    ends_clean_up();
    return check_report("test_tls_identity");
}
