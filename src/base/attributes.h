/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes by their house names. */
#ifndef BASE_ATTRIBUTES_H
#define BASE_ATTRIBUTES_H

/* The caller must look at what comes back (an error that nobody reads is a bug). */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Never gives NULL. */
#define NEVER_NULL __attribute__((returns_nonnull))

/*
 * Checks arguments like printf: `index` is the number of the format's parameter, `first` of what
 * follows it.
 */
#define PRINTF_LIKE(index, first) __attribute__((format(printf, index, first)))

/* Runs `function(&variable)` when the variable goes out of scope. */
#define AUTO(function) __attribute__((cleanup(function)))

/* Hands over what `pointer` owns: gives its value and leaves NULL behind. */
#define STEAL(pointer)                                                                             \
    ({                                                                                             \
        __typeof__(pointer) stolen_ = (pointer);                                                   \
        (pointer) = NULL;                                                                          \
        stolen_;                                                                                   \
    })

/* The struct that `member` at `pointer` is part of. */
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)(((char *)(pointer)) - offsetof(type, member)))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
