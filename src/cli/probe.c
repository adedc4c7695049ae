/* SPDX-License-Identifier: Apache-2.0 */
/* skycap probe: is the server ready? For whoever watches over it. */
#include <stdio.h>

#include "cli/client.h"
#include "proto/csi.pb-c.h"

#define DEFAULT_SECONDS 5

static struct error *
probe(struct client *client)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    struct error *error = client_ask(client, "csi.v1.Identity/Probe", &request, &reply);
    if (error)
        return error;
    if (client->as_json)
        client_print_json(reply, 0);
    if (reply->ready && !reply->ready->value)
        return error_new(CODE_UNAVAILABLE, "the server at %s is not ready", client->flags.endpoint);
    if (!client->as_json)
        puts("ready");
    return NULL;
}

static struct error *
run(int count, char **arguments, enum exit_code *exit_code)
{
    struct client client AUTO(client_close) = {.flags.timeout_s = DEFAULT_SECONDS};
    const struct client_usage usage = {
        "skycap probe [options]",
        "Asks the server whether it is ready. If it is not, or does not answer in time (5 seconds "
        "unless --timeout\nsays otherwise), a line says so and the exit code is 1.",
        NULL,
        0,
        0,
        0};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    error = probe(&client);
    if (!error)
        *exit_code = EXIT_OK;
    return error;
}

const struct command probe_command = {"probe", "is the server ready?", run};
