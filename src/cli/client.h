/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that asks a server: the flags that all of them share, the connection, and the two forms
 * of output.
 *
 *     struct client client AUTO(client_close) = {0};
 *     const struct option own[] = {...};
 *     const struct client_usage usage = {"skycap volume show ID", "", own, COUNT_OF(own), 1, 1};
 *     struct error *error = client_open(&client, &usage, count, arguments, exit_code);
 *     if (error || client.has_helped)
 *         return error;
 *     ... client_ask(&client, "csi.v1.Controller/CreateVolume", &request, &reply)
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "rpc/client/channel.h"

/* The largest message that is taken. */
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
    bool has_helped; /* --help was asked for and printed: nothing is open */
    bool as_json;
    enum exit_code *exit_code;
    char **words; /* the arguments that are no flags */
    int word_count;
    struct arena arena; /* replies live here until client_close */
    struct log log;
    struct tls_context *tls;
    struct runtime *runtime;
    struct channel *channel;
    const struct metadata *metadata; /* sent with every call; NULL: none */
    uint64_t started_ns;
};

struct client_usage {
    const char *usage;
    const char *summary;
    const struct option *own; /* flags beside those of all clients */
    size_t own_count;
    int least_words;
    int most_words;
};

#define CLIENT_ANY_NUMBER 1000000

/* The flags of all clients, for a table of options; `f` is a struct client_flags *. */
#define CLIENT_FLAG_COUNT 7
void client_flag_table(struct client_flags *f, struct option table[CLIENT_FLAG_COUNT]);

/*
 * Reads the flags and opens the channel; connecting is the first call's business. From that on
 * whatever goes wrong is EXIT_FAILED: it is in *exit_code until the command has done its work and
 * says otherwise.
 */
MUST_CHECK struct error *client_open(struct client *client, const struct client_usage *usage,
                                     int count, char **arguments, enum exit_code *exit_code);

/* The two halves of client_open, for a command that has to do something between them. */
MUST_CHECK struct error *client_read_flags(struct client *client, const struct client_usage *usage,
                                           int count, char **arguments, enum exit_code *exit_code);
/* Also for a command that has read its flags itself; `flags.endpoint` may be NULL. */
MUST_CHECK struct error *client_connect(struct client *client);

/* Also what an error has left. */
void client_close(struct client *client);

/*
 * One call, by the method's name. The reply, of the method's type, lives in the client's arena.
 * `*reply` may be set to a struct of any message: `void *` spares a cast.
 */
MUST_CHECK struct error *client_ask(struct client *client, const char *method, const void *request,
                                    void *reply);

/*
 * As client_ask; `*trailer` becomes what the server said under the key behind its answer, in the
 * client's arena; "": nothing.
 */
MUST_CHECK struct error *client_ask_trailer(struct client *client, const char *method,
                                            const void *request, void *reply, const char *key,
                                            const char **trailer);

/*
 * As client_ask, but the server is to answer within this time if the command's own does not end
 * before.
 */
MUST_CHECK struct error *client_ask_within(struct client *client, uint64_t timeout_ms,
                                           const char *method, const void *request, void *reply);

/* Whether --timeout leaves any. */
bool client_has_time(const struct client *client);

/* As client_ask, for a server's stream: each message goes to `take`, in an arena of its own. */
MUST_CHECK struct error *client_ask_stream(
    struct client *client, const char *method, const void *request,
    struct error *(*take)(void *context, const void *message), void *context);

/*
 * The repeated fields of two pages as one: pointers to messages, one list behind the other, in the
 * client's arena.
 */
void *client_join(struct client *client, void *first, size_t first_count, void *second,
                  size_t second_count);

/* With -o json: the message on stdout. */
void client_print_json(const void *message, unsigned flags);

/* Where the server is when nobody says it. */
const char *client_default_endpoint(void);

#endif
