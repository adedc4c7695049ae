/* SPDX-License-Identifier: Apache-2.0 */
/* skycap probe: is the server ready? */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/client.h"
#include "proto/csi.pb-c.h"

static void
print_json(bool is_ready, const char *degraded)
{
    struct buffer line AUTO(buffer_clear) = {0};
    buffer_print(&line, "{\"ready\":%s", is_ready ? "true" : "false");
    if (degraded[0])
        json_append_member(&line, "degraded", degraded);
    buffer_append_byte(&line, '}');
    puts(buffer_text(&line));
}

static struct error *
probe(struct client *client)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    const char *degraded;
    struct error *error = client_ask_trailer(client, "csi.v1.Identity/Probe", &request, &reply,
                                             "skycap-degraded", &degraded);
    if (error)
        return error;
    bool is_ready = !reply->ready || reply->ready->value;
    if (client->as_json)
        print_json(is_ready, degraded);
    if (!is_ready)
        return error_new(CODE_UNAVAILABLE, "the server at %s is not ready%s%s",
                         client->flags.endpoint, degraded[0] ? ": " : "", degraded);
    if (client->as_json)
        return NULL;
    puts("ready");
    if (degraded[0])
        printf("degraded: %s\n", degraded);
    return NULL;
}

const struct command probe_command = {
    .name = "probe",
    .summary = "check whether the server is ready",
    .help = "Asks the server whether it is ready. If it is not, or does not answer in time (5 "
            "seconds unless --timeout\nsays otherwise), a line says so and the exit code is 1. "
            "Connections that are down are named; the server is ready\nas long as one is not.",
    .timeout_s = 5,
    .run = probe,
};
