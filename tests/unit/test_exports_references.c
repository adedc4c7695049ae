/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that snapshots share are read once, and no chunk is left out because of that. */
#include "exports/image_manifest.h"
#include "exports_ends.h"
#include "message/message_bytes.h"
#include "repository/id_set.h"

#define MAKE_TREE                                                                                  \
    "cd \"$1\"; mkdir a b; (cd a; seq -f %0100g 15000 | xargs touch); head -c 3000000 "            \
    "/dev/urandom > b/large"

struct visited {
    struct id_set chunks, parts;
    unsigned read; /* parts */
};

static struct error *
take(const struct repository_id *id, void *context)
{
    id_set_add(&((struct visited *)context)->chunks, id->bytes);
    return NULL;
}

static struct error *
knows(const struct repository_id *part, bool *is, void *context)
{
    *is = id_set_has(&((struct visited *)context)->parts, part->bytes);
    return NULL;
}

static struct error *
note(const struct repository_id *part, void *context)
{
    struct visited *visited = context;
    id_set_add(&visited->parts, part->bytes);
    visited->read++;
    return NULL;
}

static void
visit_manifest(struct ends *ends, int kind, struct repository_id root, uint64_t size_bytes,
               const struct repository_visitor *visitor)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    export_record record = SKYCAP__EXPORTS__EXPORT_RECORD__INIT;
    size_t size;
    record.kind = (Skycap__Exports__ExportRecord__Kind)kind;
    record.size_bytes = (int64_t)size_bytes;
    record.manifest = (ProtobufCBinaryData){sizeof root.bytes, root.bytes};
    const uint8_t *bytes = message_bytes_pack(&record.base, &arena, &size);
    CHECK(went_well(export_references.list(ends->repository, bytes, size, visitor, NULL)));
}

static void
visit(struct ends *ends, const struct tree_export_result *tree,
      const struct repository_visitor *visitor)
{
    visit_manifest(ends, EXPORT_KIND(TREE), tree->root, 0, visitor);
}

/* ---- images ---- */

#define NODES 3u
#define CHUNKS ((NODES - 1) * IMAGE_NODE_IDS + 100) /* the last node is not full */

/* Each chunk is another, and none is there: only their ids count. One differs by the number. */
static struct repository_id
make_image(struct ends *ends, uint64_t changed, uint8_t number)
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    struct image_writer image;
    struct repository_id root;
    CHECK(went_well(repository_writer_open(ends->repository, &writer)));
    image_writer_init(&image, writer);
    for (uint64_t i = 0; i < CHUNKS; i++) {
        struct repository_id id = {{1, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};
        id.bytes[4] = i == changed ? number : 0;
        CHECK(went_well(image_writer_add(&image, &id)));
    }
    CHECK(went_well(image_writer_save(&image, &root)));
    CHECK(went_well(repository_writer_flush(writer)));
    image_writer_clear(&image);
    return root;
}

static void
nodes_of_images_are_read_once(struct ends *ends)
{
    struct visited shared = {0};
    struct repository_visitor sharing = {take, knows, note, &shared};
    uint64_t size = CHUNKS * (uint64_t)IMAGE_CHUNK;
    struct repository_id first = make_image(ends, 0, 0);
    struct repository_id second = make_image(ends, IMAGE_NODE_IDS + 5, 7);
    visit_manifest(ends, EXPORT_KIND(IMAGE), first, size, &sharing);
    CHECK_NUMBER(shared.read, NODES);
    CHECK_NUMBER(shared.chunks.count, CHUNKS + NODES + 1);
    visit_manifest(ends, EXPORT_KIND(IMAGE), first, size, &sharing);
    CHECK_NUMBER(shared.read, NODES);
    visit_manifest(ends, EXPORT_KIND(IMAGE), second, size, &sharing);
    CHECK_NUMBER(shared.read, NODES + 1);
    /* one chunk, its node and the root are new */
    CHECK_NUMBER(shared.chunks.count, CHUNKS + NODES + 1 + 3);
    id_set_clear(&shared.chunks);
    id_set_clear(&shared.parts);
}

int
main(void)
{
    struct ends ends;
    char path[96];
    struct tree_export_result first, second;
    struct visited shared = {0}, all = {0};
    struct repository_visitor sharing = {take, knows, note, &shared};
    struct repository_visitor reading = {.take = take, .note = note, .context = &all};
    ends_make(&ends, true);
    snprintf(path, sizeof path, "%s/tree", ends.directory);
    CHECK_NUMBER(run_shell("mkdir \"$1\"; " MAKE_TREE, path, ""), 0);
    CHECK(went_well(export_tree(&ends, path, NULL, &first)));
    CHECK_NUMBER(run_shell("echo changed > \"$1/a/$(printf %0100d 7000)\"", path, ""), 0);
    CHECK(went_well(export_tree(&ends, path, NULL, &second)));

    visit(&ends, &first, &reading);
    unsigned leaves = all.read;
    visit(&ends, &second, &reading);
    CHECK(leaves >= 4 && all.read >= 2 * leaves - 1);
    visit(&ends, &first, &sharing);
    CHECK_NUMBER(shared.read, leaves);
    visit(&ends, &second, &sharing);
    CHECK(shared.read > leaves && shared.read <= leaves + 2);
    printf("of %u leaves of two snapshots, %u were read\n", all.read, shared.read);

    CHECK_NUMBER(shared.chunks.count, all.chunks.count);
    for (size_t i = 0; i < all.chunks.capacity; i++)
        if (all.chunks.slots[i].is_used)
            CHECK(id_set_has(&shared.chunks, all.chunks.slots[i].id));
    id_set_clear(&shared.chunks);
    id_set_clear(&shared.parts);
    id_set_clear(&all.chunks);
    id_set_clear(&all.parts);
    nodes_of_images_are_read_once(&ends);
    ends_clear(&ends);
    return check_report("exports_references");
}
