/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over mutual TLS, and peers that do not speak it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "rpc/http2/socket.h"
#include "rpc_ends.h"
#include "tls_ends.h"

#define SERVER_NAME "controller.host-0" /* of the certificate "server" */
#define CLIENT_NAME "component.registry"

struct secure {
    struct ends ends;
    struct tls_context *server_tls;
    struct tls_context *client_tls;
    char names[64]; /* that the handler saw */
};

static struct error *
note_names(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct secure *secure = call_context(call);
    const struct peer *peer = call_peer(call);
    (void)request;
    (void)reply;
    if (peer->name_count)
        snprintf(secure->names, sizeof secure->names, "%s", peer->names[0]);
    return peer->has_credentials ? error_new(CODE_INTERNAL, "TCP has no credentials") : NULL;
}

static struct error *
answer_at_length(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
                 Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    reply->name = arena_zeroed(call_arena(call), 3000001);
    memset(reply->name, 'n', 3000000);
    return NULL;
}

static const struct csi_v1_identity handlers = {
    .get_plugin_info = {answer_at_length},
    .probe = {note_names},
};

static void
open_secure_server(struct secure *secure)
{
    *secure = (struct secure){0};
    ends_open_runtime(&secure->ends, (struct runtime_options){0});
    secure->server_tls = open_context("ca.crt", "server");
    secure->client_tls = open_context("ca.crt", "client");
    secure->ends.server = server_new(secure->ends.runtime, &(struct server_options){0});
    server_add_service(secure->ends.server, &csi_v1_identity_service, &handlers, secure);
    succeed(server_listen(secure->ends.server, "127.0.0.1:0",
                          &(struct listen_options){.tls = secure->server_tls}));
    address_print(server_address(secure->ends.server, 0), secure->ends.address,
                  sizeof secure->ends.address);
}

static void
open_secure_channel(struct secure *secure, struct tls_context *tls, const char *name)
{
    channel_close(secure->ends.channel);
    succeed(channel_open(secure->ends.runtime, secure->ends.address,
                         &(struct channel_options){.tls = tls, .tls_name = name},
                         &secure->ends.channel));
}

static void
close_secure(struct secure *secure)
{
    ends_close(&secure->ends);
    tls_context_close(secure->server_tls);
    tls_context_close(secure->client_tls);
}

static void
a_call_over_tls_tells_the_handler_the_clients_name(void)
{
    struct secure secure;
    open_secure_server(&secure);
    open_secure_channel(&secure, secure.client_tls, SERVER_NAME);
    for (int i = 0; i < 20; i++)
        CHECK_CODE(probe(secure.ends.channel, NULL), CODE_OK);
    CHECK_TEXT(secure.names, CLIENT_NAME);
    close_secure(&secure);
}

static void
a_server_with_another_name_is_unavailable(void)
{
    struct secure secure;
    open_secure_server(&secure);
    open_secure_channel(&secure, secure.client_tls, "controller.host-1");
    struct error *error AUTO(error_cleanup) = probe(secure.ends.channel, NULL);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, "controller.host-1"));
    close_secure(&secure);
}

static void
a_client_without_tls_is_turned_away_by_a_server_with_it(void)
{
    struct secure secure;
    open_secure_server(&secure);
    open_secure_channel(&secure, NULL, NULL);
    CHECK_CODE(probe(secure.ends.channel, &(struct call_options){.timeout_ns = 2000 * MS}),
               CODE_UNAVAILABLE);
    open_secure_channel(&secure, secure.client_tls, SERVER_NAME);
    CHECK_CODE(probe(secure.ends.channel, NULL), CODE_OK);
    close_secure(&secure);
}

static void
a_client_with_a_certificate_of_another_ca_is_turned_away(void)
{
    struct secure secure;
    open_secure_server(&secure);
    struct tls_context *evil = open_context("ca.crt", "evil-client");
    open_secure_channel(&secure, evil, SERVER_NAME);
    CHECK_CODE(probe(secure.ends.channel, &(struct call_options){.timeout_ns = 2000 * MS}),
               CODE_UNAVAILABLE);
    close_secure(&secure);
    tls_context_close(evil);
}

/* It takes the connection and says nothing: the time for connecting holds for the handshake too. */
static void
a_server_that_is_silent_in_the_handshake_is_given_up_after_a_time(void)
{
    struct ends ends = {0};
    struct address address;
    struct listeners listeners;
    struct tls_context *tls = open_context("ca.crt", "client");
    succeed(address_parse("127.0.0.1:0", &address));
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(socket_listen_tcp(&address, &ends.log, &listeners));
    address_print(&listeners.items[0].address, ends.address, sizeof ends.address);
    succeed(channel_open(ends.runtime, ends.address,
                         &(struct channel_options){.tls = tls, .connect_timeout_ms = 50},
                         &ends.channel));
    CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = 1000 * MS}),
               CODE_UNAVAILABLE);
    ends_close(&ends);
    socket_close_listeners(&listeners);
    tls_context_close(tls);
}

/* More than a TLS record and more than the socket takes at once. */
static void
a_large_answer_is_whole(void)
{
    struct secure secure;
    struct arena arena AUTO(arena_clear);
    Csi__V1__GetPluginInfoRequest request = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
    Csi__V1__GetPluginInfoResponse *reply = NULL;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    open_secure_server(&secure);
    open_secure_channel(&secure, secure.client_tls, SERVER_NAME);
    CHECK_CODE(channel_call(secure.ends.channel, CSI_V1_IDENTITY_GET_PLUGIN_INFO, &request.base,
                            NULL, &arena, &reply),
               CODE_OK);
    CHECK(reply && strspn(reply->name, "n") == 3000000);
    close_secure(&secure);
}

/* Passes bytes between the socket and the session until the peer has said goodbye (true) or hung up. */
static bool
hears_goodbye(int fd, struct tls_session *tls, struct gate *established)
{
    uint8_t bytes[4096], plain[4096];
    bool closed = false;
    for (;;) {
        struct buffer out AUTO(buffer_clear) = {0};
        size_t got = 1;
        while (got && !closed)
            succeed(tls_session_read(tls, plain, sizeof plain, &got, &closed));
        if (closed)
            return true;
        tls_session_take(tls, &out);
        if (out.size && send(fd, out.bytes, out.size, MSG_NOSIGNAL) != (ssize_t)out.size)
            return false;
        if (tls_session_is_established(tls) && !gate_count(established))
            gate_pass(established);
        ssize_t size = recv(fd, bytes, sizeof bytes, 0);
        if (size <= 0)
            return false;
        succeed(tls_session_feed(tls, bytes, (size_t)size));
    }
}

struct goodbye {
    struct secure *secure;
    struct gate established;
};

static void *
wait_for_goodbye(void *argument)
{
    struct goodbye *goodbye = argument;
    struct address address;
    succeed(address_parse(goodbye->secure->ends.address, &address));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in name = {
        .sin_family = AF_INET,
        .sin_port = htons(address.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    if (connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
        abort();
    struct tls_session *tls =
        tls_session_new_client(goodbye->secure->client_tls, SERVER_NAME, NULL);
    bool heard = hears_goodbye(fd, tls, &goodbye->established);
    tls_session_free(tls);
    close(fd);
    return (void *)(intptr_t)heard;
}

static void
a_server_that_ends_says_goodbye(void)
{
    struct secure secure;
    struct goodbye goodbye = {&secure, GATE_INIT};
    pthread_t thread;
    void *heard;
    open_secure_server(&secure);
    pthread_create(&thread, NULL, wait_for_goodbye, &goodbye);
    CHECK(gate_wait(&goodbye.established, 1));
    sleep_ms(50); /* the server has the end of the handshake */
    server_free(STEAL(secure.ends.server));
    pthread_join(thread, &heard);
    CHECK(heard);
    close_secure(&secure);
}

int
main(void)
{
    ends_set_up();
    a_call_over_tls_tells_the_handler_the_clients_name();
    a_server_with_another_name_is_unavailable();
    a_client_without_tls_is_turned_away_by_a_server_with_it();
    a_client_with_a_certificate_of_another_ca_is_turned_away();
    a_server_that_is_silent_in_the_handshake_is_given_up_after_a_time();
    a_large_answer_is_whole();
    a_server_that_ends_says_goodbye();
    ends_clean_up();
    return check_report("test_rpc_tls");
}
