/* SPDX-License-Identifier: Apache-2.0 */
/* Channels to servers of drivers: see endpoint.h. */
#include "drivers/endpoint.h"

#include "base/clock.h"
#include "rpc/http2/address.h"

#define MAX_BACKOFF_MS 15u /* between attempts to connect; the monitor's pauses grow instead */
#define KEEPALIVE_MS 30000u

void
endpoint_init(struct endpoint *endpoint)
{
    *endpoint = (struct endpoint){0};
    breaker_init(&endpoint->breaker);
}

struct error *
endpoint_open(struct endpoint *endpoint, struct runtime *runtime,
              const struct endpoint_options *options)
{
    struct address address;
    struct error *error = address_parse(options->address, &address);
    if (error)
        return error;
    bool is_local = address_is_local(&address);
    struct channel_options channel = {
        .tls = is_local ? NULL : options->tls,
        .tls_name = options->tls_name,
        .connect_timeout_ms = options->connect_timeout_ms,
        .max_backoff_ms = MAX_BACKOFF_MS,
        .keepalive_ms = is_local ? 0 : KEEPALIVE_MS,
    };
    return channel_open(runtime, options->address, &channel, &endpoint->channel);
}

void
endpoint_close(struct endpoint *endpoint)
{
    channel_close(endpoint->channel);
    breaker_clear(&endpoint->breaker);
}

struct error *
endpoint_check(struct endpoint *endpoint)
{
    return breaker_check(&endpoint->breaker, clock_now_ms());
}

bool
endpoint_note(struct endpoint *endpoint, const struct error *error)
{
    return breaker_note(&endpoint->breaker, error, clock_now_ms());
}
