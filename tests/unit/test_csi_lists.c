/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of csi.v1.Controller with more entries than fit into an answer; over a real connection. */
#include "csi_ends.h"

#define MOST 5000 /* entries of an answer */
#define COUNT (MOST + 500)

static void
fill(struct csi_ends *csi)
{
    char name[32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "volume-%d", i);
        csi_create_volume(csi, name, "", 1 << 20);
    }
}

/* A client that wants all gets pages, too. */
static void
a_long_list_of_volumes_has_pages(struct csi_ends *csi)
{
    Csi__V1__ListVolumesRequest request = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
    Csi__V1__ListVolumesResponse *reply;
    succeed(csi_call(csi, CSI_V1_CONTROLLER_LIST_VOLUMES, &request.base, &reply));
    CHECK_NUMBER(reply->n_entries, MOST);
    CHECK(reply->next_token[0]);
    request.starting_token = reply->next_token;
    request.max_entries = 2 * MOST;
    succeed(csi_call(csi, CSI_V1_CONTROLLER_LIST_VOLUMES, &request.base, &reply));
    CHECK_NUMBER(reply->n_entries, COUNT - MOST);
    CHECK_TEXT(reply->next_token, "");
}

/* Also if all are healthy, an answer comes after some of them. */
static void
a_long_list_of_health_has_pages(struct csi_ends *csi)
{
    Csi__V1__ControllerListVolumeHealthRequest request =
        CSI__V1__CONTROLLER_LIST_VOLUME_HEALTH_REQUEST__INIT;
    Csi__V1__ControllerListVolumeHealthResponse *reply;
    int pages = 0;
    do {
        succeed(
            csi_call(csi, CSI_V1_CONTROLLER_CONTROLLER_LIST_VOLUME_HEALTH, &request.base, &reply));
        CHECK_NUMBER(reply->n_entries, 0);
        request.starting_token = reply->next_token;
    } while (++pages < 10 && reply->next_token[0]);
    CHECK_NUMBER(pages, 2);
}

int
main(void)
{
    struct csi_ends csi;
    char directory[] = "/dev/shm/test_csi_lists.XXXXXX"; /* in memory, where nothing is synced */
    CHECK(mkdtemp(directory));
    csi_ends_open(&csi, "dir", directory);
    fill(&csi);
    a_long_list_of_volumes_has_pages(&csi);
    a_long_list_of_health_has_pages(&csi);
    csi_ends_close(&csi);
    csi_remove_directory(directory);
    return check_report("test_csi_lists");
}
