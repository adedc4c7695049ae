/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any line is a handshake or an error that says why. What is accepted is a local address, and
 * within the limits.
 */
#include <string.h>

#include "require.h"
#include "rpc/http2/address.h"
#include "velero/host_handshake.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct host_handshake handshake;
    struct address address;
    struct error *error AUTO(error_cleanup) =
        host_handshake_parse((const char *)data, size, &handshake);
    if (error) {
        REQUIRE(error->code == CODE_INVALID_ARGUMENT || error->code == CODE_FAILED_PRECONDITION);
        REQUIRE(strlen(error->message) < 600);
        return 0;
    }
    REQUIRE(handshake.certificate.size <= HOST_HANDSHAKE_MAX_CERTIFICATE_BYTES);
    error = address_parse(handshake.target, &address);
    REQUIRE(!error);
    REQUIRE(address_is_local(&address) || address.port);
    host_handshake_clear(&handshake);
    return 0;
}
