/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that write, remove and prune are killed at any moment, two at a time. What was reported
 * as committed is there and whole, and nothing is left behind that prune does not free.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* No time is lost with a disk: what counts is what the process had done. */
#define ENDS_PLACE "/dev/shm"
#include "repository_ends.h"

#define ROUNDS 100
#define SNAPSHOTS_MAX 4096

/* What a child tells; smaller than PIPE_BUF, so whole or not at all. */
struct message {
    bool removes; /* it is about to remove the snapshot */
    char name[REPOSITORY_NAME_BYTES];
    uint32_t first, count;
};

static struct message kept[SNAPSHOTS_MAX];
static unsigned kept_count;

static uint64_t
random_below(uint64_t *state, uint64_t limit)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % limit;
}

/* ---- the child ---- */

static void
tell(int to, const struct message *message)
{
    if (write(to, message, sizeof *message) != sizeof *message)
        _exit(3);
}

/* An error that other processes cause is none: the other may be pruning, or have removed it. */
static void
must(struct error *error)
{
    if (error && error->code != CODE_ABORTED && error->code != CODE_NOT_FOUND) {
        fprintf(stderr, "child: %s\n", error->message);
        _exit(1);
    }
    error_free(error);
}

static void
act(struct repository *repository, int to, uint64_t *state)
{
    struct message message = {.first = (uint32_t)random_below(state, 400),
                              .count = 5 + (uint32_t)random_below(state, 50)};
    struct repository_prune prune = {.references = &references};
    switch (random_below(state, 6)) {
    case 0:
        must(repository_prune(repository, &prune));
        break;
    case 1:
        if (!kept_count)
            break;
        message = kept[random_below(state, kept_count)];
        message.removes = true;
        tell(to, &message);
        must(repository_snapshot_remove(repository, message.name));
        break;
    default: {
        struct error *error =
            put_snapshot(repository, message.first, 1, message.count, message.name);
        if (!error)
            tell(to, &message);
        must(error);
    }
    }
}

static pid_t
start_child(const struct ends *ends, int to, uint64_t seed)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    struct repository *repository = NULL;
    must(repository_open(&ends->options, &repository));
    while (repository)
        act(repository, to, &seed);
    _exit(2);
}

/* ---- the parent ---- */

static void
take_messages(int from)
{
    struct message message;
    while (read(from, &message, sizeof message) == sizeof message) {
        unsigned i = 0;
        while (i < kept_count && strcmp(kept[i].name, message.name) != 0)
            i++;
        if (message.removes && i < kept_count)
            kept[i] = kept[--kept_count];
        else if (!message.removes && kept_count < SNAPSHOTS_MAX)
            kept[kept_count++] = message;
    }
}

static void
check_all(struct repository *repository, enum repository_level level)
{
    struct repository_verify request = {.level = level, .references = &references};
    CHECK(went_well(repository_verify(repository, &request)));
    CHECK_NUMBER(request.findings, 0);
    for (unsigned i = 0; i < kept_count; i++)
        if (level == REPOSITORY_DATA || i % 16 == 0)
            CHECK(went_well(
                check_snapshot(repository, kept[i].name, kept[i].first, 1, kept[i].count)));
}

static void
run_round(struct ends *ends, unsigned number)
{
    int ends_of[2];
    uint64_t state = number;
    CHECK(pipe2(ends_of, O_CLOEXEC | O_NONBLOCK) == 0);
    pid_t first = start_child(ends, ends_of[1], number * 2 + 1);
    pid_t second = start_child(ends, ends_of[1], number * 2 + 2);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        struct timespec wait = {.tv_nsec = (long)random_below(&state, 60) * 1000000};
        nanosleep(&wait, NULL);
        pid_t pid = i ? second : first;
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(waitpid(pid, &status, 0) == pid);
        /* It must still have been at work. */
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    take_messages(ends_of[0]);
    close(ends_of[0]);
    close(ends_of[1]);
}

static unsigned
count_files(const struct ends *ends, const char *kind)
{
    char directory[96];
    unsigned count = 0;
    snprintf(directory, sizeof directory, "%s/repository/%s", ends->directory, kind);
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    if (entries)
        closedir(entries);
    return count;
}

static struct error *
remove_snapshot(const char *name, void *context)
{
    return repository_snapshot_remove(context, name);
}

int
main(void)
{
    struct ends ends;
    ends_make(&ends, true);
    for (unsigned round = 0; round < ROUNDS; round++) {
        repository_close(STEAL(ends.repository));
        run_round(&ends, round);
        ends_open(&ends);
        if (!ends.repository)
            break;
        if (round % 4 == 3)
            check_all(ends.repository, round % 20 == 19 ? REPOSITORY_DATA : REPOSITORY_STRUCTURE);
    }
    CHECK(kept_count > 5);
    /* Without snapshots, nothing is left. */
    struct repository_prune request = {.references = &references};
    CHECK(went_well(repository_prune(ends.repository, &request)));
    CHECK_NUMBER(request.packs_waiting, 0);
    check_all(ends.repository, REPOSITORY_DATA);
    CHECK(went_well(repository_snapshots_list(ends.repository, remove_snapshot, ends.repository)));
    CHECK(went_well(repository_prune(ends.repository, &request)));
    for (unsigned kind = 1; kind <= 6; kind++)
        CHECK_NUMBER(count_files(&ends, (char[]){'0', (char)('0' + kind), 0}), 0);
    CHECK_NUMBER(count_files(&ends, "tmp"), 0);
    ends_clear(&ends);
    return check_report("test_repository_kills");
}
