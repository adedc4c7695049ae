/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works on a repository for tests/system:
 *
 *     repository-tool URL DIRECTORY create
 *     repository-tool URL DIRECTORY put FIRST COUNT        prints the snapshot's name
 *     repository-tool URL DIRECTORY check NAME FIRST COUNT
 *     repository-tool URL DIRECTORY sum FIRST COUNT        prints the SHA-256 of these chunks
 *     repository-tool URL DIRECTORY remove NAME
 *     repository-tool URL DIRECTORY prune                  prints packs deleted and waiting
 *     repository-tool URL DIRECTORY verify                 prints the number of findings
 *     repository-tool URL DIRECTORY measure MIB            throughput of chunks of 1 MiB
 *
 * The directory has the key, the cache, and the credentials. PLAIN_HTTP=1 in the environment: no
 * TLS; otherwise the authority stands in DIRECTORY/authority.pem. After half of the chunks, put
 * creates DIRECTORY/half and waits while DIRECTORY/hold exists.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/repository/chunks.h"

static char directory[512];

static const char *
path_of(const char *name)
{
    static char paths[8][640];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void
must(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", error_code_name(error->code), error->message);
    exit(1);
}

static void
hold(void)
{
    FILE *mark = fopen(path_of("half"), "w");
    if (mark)
        fclose(mark);
    while (access(path_of("hold"), F_OK) == 0)
        usleep(20000);
}

static void
put(struct repository *repository, uint64_t first, unsigned count)
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES];
    must(repository_writer_open(repository, &writer));
    for (unsigned i = 0; i < count; i++) {
        must(put_chunk(writer, first + i, &record));
        if (i == count / 2)
            hold();
    }
    must(repository_writer_commit(writer, record.bytes, record.size, name));
    printf("%s\n", name);
}

static void
sum(uint64_t first, unsigned count)
{
    uint8_t bytes[40001];
    FILE *out = popen("sha256sum | cut -d ' ' -f 1", "w");
    for (unsigned i = 0; out && i < count; i++) {
        fill_chunk(first + i, bytes, chunk_size(first + i));
        fwrite(bytes, 1, chunk_size(first + i), out);
    }
    if (!out || pclose(out) != 0)
        exit(1);
}

static void
print_finding(const struct repository_finding *finding, void *context)
{
    (void)context;
    fprintf(stderr, "%s %s: %s\n", finding->object, finding->snapshot ? finding->snapshot : "",
            finding->text);
}

/* Chunks of 1 MiB; every second one is of a kind that compresses to about a tenth. */
static void
measure(struct repository *repository, unsigned count, bool is_half)
{
    struct repository_writer *writer = NULL;
    struct repository_id id;
    uint64_t *words = memory_zeroed(1u << 20), state = 88172645463325252u;
    char name[REPOSITORY_NAME_BYTES];
    uint64_t begin = clock_now_ms();
    must(repository_writer_open(repository, &writer));
    for (unsigned i = 0; i < count; i++) {
        for (size_t at = 0; at < (1u << 17); at++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            words[at] = is_half && i % 2 && at % 16 ? i : state;
        }
        must(repository_writer_put(writer, words, 1u << 20, &id));
    }
    must(repository_writer_commit(writer, &id, sizeof id, name));
    uint64_t took = clock_now_ms() - begin;
    struct repository_counters counters;
    struct rusage usage;
    repository_writer_count(writer, &counters);
    getrusage(RUSAGE_SELF, &usage);
    printf("%u MiB in %llu ms, %llu MiB stored, %ld MiB of memory\n", count,
           (unsigned long long)took, (unsigned long long)(counters.bytes_stored >> 20),
           usage.ru_maxrss >> 10);
    repository_writer_close(writer);
    free(words);
}

static void
run(struct repository *repository, int count, char **words)
{
    const char *command = words[0];
    if (!strcmp(command, "put") && count == 3) {
        put(repository, strtoull(words[1], NULL, 10), (unsigned)strtoul(words[2], NULL, 10));
    } else if (!strcmp(command, "check") && count == 4) {
        must(check_snapshot(repository, words[1], strtoull(words[2], NULL, 10), 1,
                            (unsigned)strtoul(words[3], NULL, 10)));
    } else if (!strcmp(command, "sum") && count == 3) {
        sum(strtoull(words[1], NULL, 10), (unsigned)strtoul(words[2], NULL, 10));
    } else if (!strcmp(command, "remove") && count == 2) {
        must(repository_snapshot_remove(repository, words[1]));
    } else if (!strcmp(command, "prune")) {
        struct repository_prune prune = {.references = &references};
        must(repository_prune(repository, &prune));
        printf("%llu %llu\n", (unsigned long long)prune.packs_deleted,
               (unsigned long long)prune.packs_waiting);
    } else if (!strcmp(command, "verify")) {
        struct repository_verify verify = {
            .level = REPOSITORY_DATA, .references = &references, .found = print_finding};
        must(repository_verify(repository, &verify));
        printf("%llu\n", (unsigned long long)verify.findings);
    } else if (!strncmp(command, "measure", 7) && count == 2) {
        measure(repository, (unsigned)strtoul(words[1], NULL, 10),
                !strcmp(command, "measure-half"));
    } else {
        exit(2);
    }
}

int
main(int count, char **words)
{
    struct repository *repository AUTO(repository_cleanup) = NULL;
    if (count < 4)
        return 2;
    snprintf(directory, sizeof directory, "%s", words[2]);
    bool is_plain = getenv("PLAIN_HTTP") != NULL;
    struct repository_options options = {
        .url = words[1],
        .key_file = path_of("key"),
        .cache_directory = path_of("cache"),
        .credentials_file = path_of("credentials"),
        .authorities_file = is_plain ? NULL : path_of("authority.pem"),
        .uses_plain_http = is_plain,
    };
    if (!strcmp(words[3], "create")) {
        must(repository_create(&options));
        return 0;
    }
    must(repository_open(&options, &repository));
    run(repository, count - 3, words + 3);
    return 0;
}
