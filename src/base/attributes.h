/* SPDX-License-Identifier: Apache-2.0 */
/* Short names for compiler attributes. */
#ifndef BASE_ATTRIBUTES_H
#define BASE_ATTRIBUTES_H

/* The caller must use the result: an error that nobody reads is a bug. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Never returns NULL. */
#define NEVER_NULL __attribute__((returns_nonnull))

/*
 * Checks arguments like printf: `index` is the number of the format parameter, `first` that of the
 * first argument.
 */
#define PRINTF_LIKE(index, first) __attribute__((format(printf, index, first)))

/* Runs `function(&variable)` when the variable goes out of scope. */
#define AUTO(function) __attribute__((cleanup(function)))

/* Takes ownership from `pointer`: returns its value and sets it to NULL. */
#define STEAL(pointer)                                                                             \
    ({                                                                                             \
        __typeof__(pointer) stolen_ = (pointer);                                                   \
        (pointer) = NULL;                                                                          \
        stolen_;                                                                                   \
    })

/* The struct that contains `member` at `pointer`. */
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)(((char *)(pointer)) - offsetof(type, member)))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
