/* SPDX-License-Identifier: Apache-2.0 */
/* How a command waits for a copy: it must not ask again for what was cancelled meanwhile. */
#include "cli/progress.h"

#include "proto/inventory.rpc.h"
#include "rpc_ends.h"

static struct gate requests = GATE_INIT;

/* Longer than a command with a progress bar waits for the first answer. */
static struct error *
create_volume(struct call *call, const Csi__V1__CreateVolumeRequest *request,
              Csi__V1__CreateVolumeResponse *reply)
{
    (void)call, (void)request, (void)reply;
    gate_pass(&requests);
    sleep_ms(800);
    return error_new(CODE_CANCELLED, "the copy was cancelled");
}

static struct error *
get_volume(struct call *call, const Skycap__V1__GetVolumeRequest *request,
           Skycap__V1__GetVolumeResponse *reply)
{
    (void)call, (void)reply;
    return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", request->volume);
}

static const struct csi_v1_controller controller = {.create_volume = {create_volume}};
static const struct skycap_v1_inventory inventory = {.get_volume = {get_volume}};

static void
test_cancelled_before_it_was_found(void)
{
    struct ends ends = {0};
    ends_choose_address(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    ends.server = server_new(ends.runtime, &(struct server_options){0});
    server_add_service(ends.server, &csi_v1_controller_service, &controller, NULL);
    server_add_service(ends.server, &skycap_v1_inventory_service, &inventory, NULL);
    succeed(server_listen(ends.server, ends.address, NULL));

    struct client client = {.flags.endpoint = ends.address};
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    request.name = "copy";
    client_init(&client);
    CHECK_CODE(progress_ask(&client, "csi.v1.Controller/CreateVolume", &request,
                            progress_find_volume, "copy", &reply),
               CODE_CANCELLED);
    CHECK_NUMBER(gate_count(&requests), 1);
    client_close(&client);
    ends_close(&ends);
}

int
main(void)
{
    /* On a terminal the command draws a bar, for which it asks in short intervals. */
    if (isatty(STDERR_FILENO))
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    test_cancelled_before_it_was_found();
    return check_report("cli_progress");
}
