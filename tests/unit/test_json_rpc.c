/* SPDX-License-Identifier: Apache-2.0 */
/* The client of JSON-RPC against peers that answer oddly, late, in pieces or not at all. */
#include "oim/json_rpc.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "oim/accelerator.h"
#include "rpc_ends.h"

/* ---- the reader ---- */

#define GOOD "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[\"a}\\\"]{\",{\"b\":[1]}]}"

static void
check_reply(const struct json_rpc_reply *reply)
{
    int64_t number = 0;
    const struct json_value *b = json_value_member(json_value_item(reply->result, 1), "b");
    CHECK_NUMBER(reply->code, 0);
    CHECK_NUMBER(json_value_count(reply->result), 2);
    CHECK_TEXT(json_value_text(json_value_item(reply->result, 0)), "a}\"]{");
    CHECK(json_value_number(json_value_item(b, 0), &number) && number == 1);
}

/* In pieces of every size. */
static void
test_pieces(void)
{
    static const char text[] = " \n\t" GOOD "\n \r";
    for (size_t piece = 1; piece <= sizeof text - 1; piece++) {
        struct json_rpc_reader reader AUTO(json_rpc_reader_clear) = {0};
        struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
        for (size_t at = 0; at < sizeof text - 1 && !reader.is_whole; at += piece) {
            size_t left = sizeof text - 1 - at;
            CHECK(!reader.is_whole);
            succeed(json_rpc_reader_add(&reader, text + at, left < piece ? left : piece));
        }
        CHECK(reader.is_whole);
        succeed(json_rpc_reader_take(&reader, 7, &reply));
        check_reply(&reply);
    }
}

/* What taking the whole text gives: the error's message, or "". */
static void
check_whole(const char *text, const char *wanted)
{
    struct json_rpc_reader reader AUTO(json_rpc_reader_clear) = {0};
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    struct error *error = json_rpc_reader_add(&reader, text, strlen(text));
    if (!error) {
        CHECK(reader.is_whole);
        error = json_rpc_reader_take(&reader, 7, &reply);
        CHECK(!reader.bytes.size && !reader.is_whole);
    }
    CHECK_TEXT(error ? error->message : "", wanted);
    CHECK(!error || (error->code == CODE_INTERNAL && !reply.root));
    error_free(error);
}

static void
test_odd_replies(void)
{
    static const char other[] = "a reply has the id of another request";
    static const char not_one[] = "a reply must have either a result or an error";
    static const char no_code[] = "a reply has an error without a code";
    check_whole(GOOD, "");
    check_whole("{\"id\":7,\"result\":null}", "");
    check_whole("{\"id\":7,\"error\":{\"code\":-19,\"message\":\"No such device\"}}", "");
    check_whole("{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}", "");
    check_whole("{\"error\":{\"code\":-32700}}", "");
    check_whole("{\"id\":8,\"result\":true}", other);
    check_whole("{\"id\":\"7\",\"result\":true}", other);
    check_whole("{\"id\":7.0,\"result\":true}", other);
    check_whole("{\"id\":null,\"result\":true}", other);
    check_whole("{\"result\":true}", other);
    check_whole("{}", other);
    check_whole("{\"id\":7}", not_one);
    check_whole("{\"id\":7,\"result\":1,\"error\":{\"code\":-1}}", not_one);
    check_whole("{\"id\":7,\"error\":{\"message\":\"?\"}}", no_code);
    check_whole("{\"id\":7,\"error\":{\"code\":0}}", no_code);
    check_whole("{\"id\":7,\"error\":{\"code\":\"-19\"}}", no_code);
    check_whole("{\"id\":7,\"error\":\"no\"}", no_code);
    check_whole("{\"id\":7,\"id\":7,\"result\":1}", "a reply: not valid JSON at line 1, column 12");
    check_whole("{\"id\":7,\"result\":tomorrow}", "a reply: not valid JSON at line 1, column 25");
    check_whole(GOOD GOOD, "there is something after a reply");
    check_whole("[]", "a reply is not a JSON object");
    check_whole("HTTP/1.1 400 Bad Request", "a reply is not a JSON object");
    check_whole("\"text\"", "a reply is not a JSON object");
}

static void
test_limit(void)
{
    struct json_rpc_reader reader AUTO(json_rpc_reader_clear) = {0};
    static char half[JSON_RPC_MAX_REPLY / 2];
    memset(half, ' ', sizeof half);
    succeed(json_rpc_reader_add(&reader, half, sizeof half));
    succeed(json_rpc_reader_add(&reader, half, sizeof half));
    CHECK_CODE(json_rpc_reader_add(&reader, half, 1), CODE_INTERNAL);
}

/* ---- the connection ---- */

struct peer_script {
    const char *reply;  /* NULL: none */
    size_t piece;       /* bytes at a time; 0: all */
    unsigned linger_ms; /* before the connection is closed; it is, at the end */
};

struct odd_peer {
    const struct peer_script *script;
    int listener;
    char path[64];
    char request[256];
    pthread_t thread;
};

static void
send_in_pieces(int fd, const char *text, size_t piece)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        size_t now = piece && piece < size - at ? piece : size - at;
        if (send(fd, text + at, now, MSG_NOSIGNAL) < 0)
            return;
        at += now;
        sleep_ms(piece ? 1 : 0);
    }
}

static void *
run_peer(void *argument)
{
    struct odd_peer *peer = argument;
    int fd = accept(peer->listener, NULL, NULL);
    ssize_t got = recv(fd, peer->request, sizeof peer->request - 1, 0);
    CHECK(fd >= 0 && got > 0);
    if (peer->script->reply)
        send_in_pieces(fd, peer->script->reply, peer->script->piece);
    struct pollfd gone = {.fd = fd, .events = POLLRDHUP};
    poll(&gone, 1, (int)peer->script->linger_ms);
    close(fd);
    return NULL;
}

static void
peer_open(struct odd_peer *peer, const struct peer_script *script)
{
    static unsigned number;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *peer = (struct odd_peer){.script = script};
    snprintf(peer->path, sizeof peer->path, "/tmp/skycap-json-rpc-%d-%u", (int)getpid(), ++number);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", peer->path);
    peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(peer->listener, (struct sockaddr *)&name, sizeof name) == 0 &&
          listen(peer->listener, 5) == 0);
    CHECK(pthread_create(&peer->thread, NULL, run_peer, peer) == 0);
}

static void
peer_close(struct odd_peer *peer)
{
    pthread_join(peer->thread, NULL);
    close(peer->listener);
    unlink(peer->path);
}

/* What one request gives: CODE_OK with the reply, or the error's code; then nothing more can be asked. */
static enum code
ask_peer(const struct peer_script *script, unsigned patience_ms, struct json_rpc_reply *reply)
{
    struct json_rpc rpc AUTO(json_rpc_close) = {.fd = -1};
    struct odd_peer peer;
    peer_open(&peer, script);
    succeed(json_rpc_connect(&rpc, peer.path, clock_now_ns() + patience_ms * MS));
    enum code code = take_code(json_rpc_ask(&rpc, "get_it", "{\"name\":\"x\"}", reply));
    if (code) {
        struct json_rpc_reply second AUTO(json_rpc_reply_clear) = {0};
        CHECK_NUMBER(rpc.fd, -1);
        CHECK_CODE(json_rpc_ask(&rpc, "get_it", NULL, &second), CODE_UNAVAILABLE);
    }
    json_rpc_close(&rpc);
    peer_close(&peer);
    CHECK_TEXT(peer.request,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"get_it\",\"params\":{\"name\":\"x\"}}");
    return code;
}

static void
check_answer(const char *answer, size_t piece, unsigned linger_ms, enum code wanted)
{
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    const struct peer_script script = {.reply = answer, .piece = piece, .linger_ms = linger_ms};
    CHECK_TEXT(error_code_name(ask_peer(&script, PATIENCE_MS, &reply)), error_code_name(wanted));
    CHECK(!wanted == !!reply.root);
}

static void
test_answers(void)
{
    check_answer("{\"id\":1,\"result\":true}", 0, PATIENCE_MS, CODE_OK);
    check_answer("{\"id\":1,\"result\":[\"in\",\"pieces\"]}\n", 1, PATIENCE_MS, CODE_OK);
    check_answer("{\"id\":1,\"result\":true}", 0, 0, CODE_OK); /* and closes at once */
    check_answer("{\"id\":1,\"result\":[\"half", 0, 0, CODE_UNAVAILABLE);
    check_answer(NULL, 0, 0, CODE_UNAVAILABLE);
    check_answer("{\"id\":2,\"result\":true}", 0, PATIENCE_MS, CODE_INTERNAL);
    check_answer("220 mail.example ESMTP\r\n", 0, PATIENCE_MS, CODE_INTERNAL);
}

static void
test_deadline(void)
{
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    const struct peer_script silent = {.linger_ms = PATIENCE_MS};
    const struct peer_script half = {.reply = "{\"id\":1,", .linger_ms = PATIENCE_MS};
    uint64_t start = timers_now();
    CHECK_TEXT(error_code_name(ask_peer(&silent, 100, &reply)), "DEADLINE_EXCEEDED");
    CHECK_TEXT(error_code_name(ask_peer(&half, 100, &reply)), "DEADLINE_EXCEEDED");
    CHECK(ms_since(start) >= 200 && ms_since(start) < 2000);
}

/* A peer that takes nothing, with more to send than a socket holds. */
static void
test_stuck_peer(void)
{
    struct json_rpc rpc AUTO(json_rpc_close) = {.fd = -1};
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    static char large[8 << 20];
    const struct peer_script silent = {.linger_ms = PATIENCE_MS};
    struct odd_peer peer;
    memset(large, 'x', sizeof large - 1);
    peer_open(&peer, &silent);
    succeed(json_rpc_connect(&rpc, peer.path, clock_now_ns() + 100 * MS));
    /* It reads the first bytes, and no more. */
    CHECK_CODE(json_rpc_ask(&rpc, large, NULL, &reply), CODE_DEADLINE_EXCEEDED);
    json_rpc_close(&rpc);
    peer_close(&peer);
}

static void
test_nobody_there(void)
{
    struct json_rpc rpc AUTO(json_rpc_close) = {.fd = -1};
    char path[200];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    struct error *error AUTO(error_cleanup) =
        json_rpc_connect(&rpc, "/tmp/skycap-nobody-is-here", clock_now_ns() + 100 * MS);
    CHECK(error && error->code == CODE_UNAVAILABLE && strstr(error->message, "--spdk"));
    json_rpc_close(&rpc);
    CHECK_CODE(json_rpc_connect(&rpc, path, clock_now_ns()), CODE_INVALID_ARGUMENT);
}

int
main(void)
{
    test_pieces();
    test_odd_replies();
    test_limit();
    test_answers();
    test_deadline();
    test_stuck_peer();
    test_nobody_there();
    return check_report("json_rpc");
}
