/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that runs: its flags and words, the channel to the server, and the two forms of output.
 * See command.h for how one is declared.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "rpc/client/channel.h"

/* The largest message that is accepted. */
#define CLIENT_MAX_MESSAGE_BYTES (64u << 20)

struct client_flags {
    const char *endpoint;
    const char *output;
    unsigned long timeout_s; /* for all calls together; 0: never give up */
    struct tls_options tls;
    const char *tls_name;
};

struct client {
    struct client_flags flags;
    bool as_json;
    char **words; /* the arguments that are no flags */
    int word_count;
    enum exit_code exit_code;  /* in case of an error; EXIT_FAILED from the first call on */
    bool has_failed;           /* exit with EXIT_FAILED although there is no error to print */
    const char *unimplemented; /* as in struct command */
    const char *missing;       /* who was left out of a list; NULL: nobody */
    struct arena arena;        /* replies live here until client_close */
    struct log log;
    struct tls_context *tls;
    struct runtime *runtime;
    struct channel *channel;         /* NULL until the first call */
    const struct metadata *metadata; /* sent with every call; NULL: none */
    uint64_t started_ns;
};

/* Writes the flags of all commands that ask a server; their values go to `flags`. */
#define CLIENT_FLAG_COUNT 7
void client_list_flags(struct client_flags *flags, struct option table[CLIENT_FLAG_COUNT]);
struct option client_output_flag(struct client_flags *flags);

/* Starts the time limit. */
void client_init(struct client *client);
void client_close(struct client *client);

/*
 * Opens the channel, unless it is open. The functions below do this themselves; the connection is
 * made by the first call.
 */
MUST_CHECK struct error *client_open_channel(struct client *client);

/*
 * One call, by the method's name. The reply, of the method's type, lives in the client's arena.
 * `*reply` may be set to a struct of any message: `void *` spares a cast.
 */
MUST_CHECK struct error *client_ask(struct client *client, const char *method, const void *request,
                                    void *reply);

/* As client_ask. `*trailer` is the trailer with this key, in the client's arena; "" if none. */
MUST_CHECK struct error *client_ask_trailer(struct client *client, const char *method,
                                            const void *request, void *reply, const char *key,
                                            const char **trailer);

/* As client_ask, with a time limit for this call in addition to that of the command. */
MUST_CHECK struct error *client_ask_within(struct client *client, uint64_t timeout_ms,
                                           const char *method, const void *request, void *reply);

/* Whether --timeout has not passed yet. */
bool client_has_time(const struct client *client);

/* As client_ask, for a server's stream: each message goes to `take`, in an arena of its own. */
MUST_CHECK struct error *client_ask_stream(
    struct client *client, const char *method, const void *request,
    struct error *(*take)(void *context, const void *message), void *context);

/*
 * As client_ask, for a list that comes in pages: `*reply` has the items of all pages. The items are
 * the reply's first field; the tokens are `starting_token` and `next_token`.
 */
MUST_CHECK struct error *client_ask_pages(struct client *client, const char *method, void *request,
                                          void *reply);

/* Warns on stderr if nodes or connections were left out of such a list. */
void client_warn_of_missing(const struct client *client);

/* Prints the message to stdout, as one line or with MESSAGE_JSON_PRETTY. */
void client_print_json(const void *message, unsigned flags);

#endif
