/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of connections to OIM: see oim_home.h. */
#include "drivers/oim_home.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct oim_home *homes;

static struct oim_home *
find(const char *directory)
{
    for (struct oim_home *home = homes; home; home = home->next)
        if (strcmp(home->directory, directory) == 0)
            return home;
    return NULL;
}

/* With the lock held, so that a second opener waits for the first. */
static struct error *
add(const char *directory, struct oim_home **out)
{
    char url[PATH_MAX + sizeof "sqlite:"];
    struct store *store;
    struct error *error = files_make_path(directory);
    snprintf(url, sizeof url, "sqlite:%s", directory);
    if (!error)
        error = store_open(url, NULL, &store);
    if (error)
        return error;
    struct oim_home *home = memory_zeroed(sizeof *home);
    home->directory = memory_string(directory);
    home->store = store;
    name_locks_init(&home->locks);
    home->next = homes;
    homes = *out = home;
    return NULL;
}

struct error *
oim_home_open(const char *directory, struct oim_home **out)
{
    struct error *error = NULL;
    pthread_mutex_lock(&lock);
    *out = find(directory);
    if (!*out)
        error = add(directory, out);
    if (*out)
        (*out)->references++;
    pthread_mutex_unlock(&lock);
    return error;
}

void
oim_home_close(struct oim_home *home)
{
    if (!home)
        return;
    pthread_mutex_lock(&lock);
    if (--home->references == 0) {
        struct oim_home **link = &homes;
        while (*link != home)
            link = &(*link)->next;
        *link = home->next;
        store_close(home->store);
        name_locks_clear(&home->locks);
        free(home->directory);
        free(home);
    }
    pthread_mutex_unlock(&lock);
}
