/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, taken as a PersistentVolume: what is accepted can be changed, and reads back as it was changed, with everything else as it was.
 */
#include <string.h>

#include "base/utf8.h"
#include "require.h"
#include "velero/persistent_volume.h"

#define ANNOTATION "velero.skycap.dev/snapshot-id"

/* Prints the object and reads it again. */
static struct persistent_volume
read_back(const struct persistent_volume *volume, struct arena *arena)
{
    struct persistent_volume again = {0};
    size_t size;
    const char *text = (const char *)persistent_volume_print(volume, arena, &size);
    REQUIRE(size == strlen(text) && utf8_is_valid(text, size));
    REQUIRE(!persistent_volume_parse(text, size, &again));
    REQUIRE(strcmp(again.name, volume->name) == 0);
    REQUIRE(strcmp(again.driver, volume->driver) == 0);
    REQUIRE(strcmp(again.handle, volume->handle) == 0);
    return again;
}

static void
change(struct persistent_volume *volume, struct arena *arena)
{
    struct text_pair pair = {volume->name, volume->driver};
    const struct text_map segments = {&pair, 1, 1};
    struct error *nodes = persistent_volume_set_nodes(volume, &segments, 1);
    struct error *handle = persistent_volume_set_handle(volume, "v:local/1");
    struct error *note = persistent_volume_annotate(volume, ANNOTATION, "s:local/1");
    struct persistent_volume again = read_back(volume, arena);
    REQUIRE(handle || strcmp(again.handle, "v:local/1") == 0);
    REQUIRE(handle || !nodes); /* both are in the spec */
    REQUIRE(note || strcmp(persistent_volume_annotation(&again, ANNOTATION), "s:local/1") == 0);
    REQUIRE(!persistent_volume_annotate(&again, ANNOTATION, NULL));
    REQUIRE(!persistent_volume_annotation(&again, ANNOTATION)[0]);
    persistent_volume_clear(&again);
    error_free(nodes);
    error_free(handle);
    error_free(note);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct persistent_volume volume = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = persistent_volume_parse(data, size, &volume);
    REQUIRE(!error || error->code == CODE_INVALID_ARGUMENT);
    if (!error) {
        struct persistent_volume again = read_back(&volume, &arena);
        persistent_volume_clear(&again);
        change(&volume, &arena);
    }
    error_free(error);
    persistent_volume_clear(&volume);
    arena_clear(&arena);
    return 0;
}
