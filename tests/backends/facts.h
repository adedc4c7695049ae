/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the facts about back ends share. A fact is a function that checks with the macros here; the program runs it for one back end in
 * one directory and prints `ok`, `FAILED` or `skipped` with its name.
 */
#ifndef BACKENDS_FACTS_H
#define BACKENDS_FACTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"

#define MIB (1u << 20)

/* Where the facts are shown. */
extern struct scene {
    const char *name;      /* of the back end to open */
    const char *directory; /* empty at first */
    uint64_t pool_bytes;
    struct log log;
    struct backend *backend;
    const char *skipped;      /* why the fact cannot be shown on this machine */
    const char *not_for_this; /* why it says nothing about this back end; that is no skipped test */
} scene;

bool fact_check(bool is_good, const char *text, const char *file, int line);
bool fact_succeeds(struct error *error, const char *text, const char *file, int line);
bool fact_fails(struct error *error, enum code code, const char *text, const char *file, int line);

#define EXPECT(condition) fact_check((condition), #condition, __FILE__, __LINE__)
/* Frees the error. */
#define SUCCEEDS(expression) fact_succeeds((expression), #expression, __FILE__, __LINE__)
#define FAILS(code, expression) fact_fails((expression), (code), #expression, __FILE__, __LINE__)

/* Opens the scene's back end, and closes it. */
bool scene_open(void);
void scene_close(void);

struct data make_data(enum data_role role, enum volume_kind kind, const char *handle);
#define VOLUME(handle) make_data(ROLE_VOLUME, KIND_TREE, (handle))
#define IMAGE(handle) make_data(ROLE_VOLUME, KIND_IMAGE, (handle))
#define SNAPSHOT(handle) make_data(ROLE_SNAPSHOT, KIND_TREE, (handle))
#define IMAGE_SNAPSHOT(handle) make_data(ROLE_SNAPSHOT, KIND_IMAGE, (handle))

struct error *create(struct data data, uint64_t size_bytes);
struct error *copy(struct data from, struct data to, uint64_t size_bytes);
struct error *drop(struct data data);

/* The path of the data, with "/NAME" behind it unless it is NULL; "" if there is none. In a buffer that is used again after 8 calls. */
const char *path_of(struct data data, const char *name);

/* Helpers about files; false with errno where something fails. */
bool put_file(const char *path, const void *bytes, size_t size);
bool put_text(const char *path, const char *text);
bool has_text(const char *path, const char *text);
bool exists(const char *path);
/* Makes durable what the file system has that the data is on, and not those of everybody else. */
bool sync_around(struct data data);
/* No byte of it is zero. */
bool fill_random(const char *path, uint64_t offset, size_t size);
bool is_same_file(const char *a, const char *b);

/* Waits a second for it: somebody who looks for a loop device of his own may have this one open for a moment. */
bool has_no_device(const char *file);

/* A random number that is the same in every run. */
uint32_t random_number(uint32_t below);

/* What the program can show; NULL at the end. */
struct fact {
    const char *name;
    void (*show)(void);
};
extern const struct fact facts_of_life[], facts_of_copies[], facts_of_properties[],
    facts_of_sizes[], facts_of_extents[], facts_of_groups[], facts_of_nested[], facts_of_pools[],
    facts_of_devices[];

#endif
