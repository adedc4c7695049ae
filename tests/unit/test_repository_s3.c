/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, signatures, replies and lists of S3. A real server is in tests/system. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "repository/http_client.h"
#include "repository/s3_list.h"
#include "repository/s3_sign.h"
#include "repository/s3_url.h"

static void
test_urls(void)
{
    struct s3_url url;
    CHECK(!s3_url_parse("s3://store.example/bucket", false, &url));
    CHECK_TEXT(url.host, "store.example");
    CHECK_TEXT(url.port, "443");
    CHECK_TEXT(url.bucket, "bucket");
    CHECK_TEXT(url.prefix, "");
    CHECK(!s3_url_parse("s3://[::1]:9000/b/some/where/", true, &url));
    CHECK_TEXT(url.host, "::1");
    CHECK_TEXT(url.port, "9000");
    CHECK_TEXT(url.authority, "[::1]:9000");
    CHECK_TEXT(url.prefix, "some/where/");
    static const char *const bad[] = {
        "s3://",          "s3://host",        "s3://host/",         "s3:///bucket",
        "s3://host:x/b",  "s3://host/b/../c", "s3://host/b//c",     "s3://host/b c",
        "http://host/b",  "s3://host/b/%41",  "s3://host/b?x",      "s3://[::1/b",
        "s3://ho st/buc", "s3://host/b/c/..", "s3://host:999999/b",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct error *error = s3_url_parse(bad[i], false, &url);
        CHECK(error && error->code == CODE_INVALID_ARGUMENT);
        error_free(error);
    }
}

/* The signature was computed with another implementation (Python's hmac). */
static void
test_signature(void)
{
    struct s3_credentials credentials = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
    struct s3_request request = {.method = "PUT",
                                 .host = "localhost:9000",
                                 .path = "/bucket/01/ab",
                                 .query = "",
                                 .region = "us-east-1",
                                 .bytes = (const uint8_t *)"hello",
                                 .size = 5,
                                 .time = 1440938160};
    struct buffer out AUTO(buffer_clear) = {0};
    CHECK(!s3_sign(&credentials, &request, &out));
    const char *text = buffer_text(&out);
    CHECK(strstr(text, "X-Amz-Date: 20150830T123600Z\r\n") != NULL);
    CHECK(strstr(text, "Credential=AKIDEXAMPLE/20150830/us-east-1/s3/aws4_request, ") != NULL);
    CHECK(
        strstr(text,
               "Signature=40b2101c7e685567babd14ed4d3c78a7437bd93aadf3d51b5b58cc10b10f16e3\r\n") !=
        NULL);
    CHECK(strstr(text, "wJalr") == NULL);
}

/* Kubernetes shows the files of a Secret as links. */
static void
test_credentials(void)
{
    char directory[] = "/tmp/skycap-s3-XXXXXX", file[64], link[64];
    static const char text[] = "[default]\n aws_access_key_id = AK\r\naws_secret_access_key=s/+=\n";
    struct s3_credentials credentials;
    CHECK(mkdtemp(directory) != NULL);
    snprintf(file, sizeof file, "%s/file", directory);
    snprintf(link, sizeof link, "%s/link", directory);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(symlink("file", link) == 0);
    struct error *error AUTO(error_cleanup) = s3_credentials_read(link, &credentials);
    CHECK(!error);
    CHECK_TEXT(credentials.access_key, "AK");
    CHECK_TEXT(credentials.secret_key, "s/+=");
    close(fd);
    unlink(link);
    unlink(file);
    rmdir(directory);
}

static enum code
parse_reply(const char *text, struct http_reply *reply, size_t *used)
{
    struct error *error AUTO(error_cleanup) =
        http_reply_parse((const uint8_t *)text, strlen(text), reply, used);
    return error ? error->code : CODE_OK;
}

static void
test_replies(void)
{
    struct http_reply reply;
    size_t used;
    CHECK_NUMBER(
        parse_reply("HTTP/1.1 206 Partial\r\ncontent-LENGTH:  12 \r\n\r\nx", &reply, &used),
        CODE_OK);
    CHECK_NUMBER(reply.status, 206);
    CHECK_NUMBER(reply.length, 12);
    CHECK_NUMBER(used, 46);
    CHECK(!reply.closes);
    CHECK_NUMBER(parse_reply("HTTP/1.1 200 OK\r\nConnection: close\r\n", &reply, &used), CODE_OK);
    CHECK_NUMBER(used, 0);
    CHECK_NUMBER(parse_reply("HTTP/1.1 200 OK\r\nDate: Mon, 07 Nov 1994 09:49:37 GMT\r\n"
                             "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
                             &reply, &used),
                 CODE_OK);
    CHECK_NUMBER(reply.modified, 784111777);
    CHECK_NUMBER(reply.date - reply.modified, 25 * 3600);
    CHECK_NUMBER(parse_reply("HTTP/1.1 200 OK\r\nLast-Modified: yesterday\r\n\r\n", &reply, &used),
                 CODE_OK);
    CHECK_NUMBER(reply.modified, 0);
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: line\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_NUMBER(parse_reply(bad[i], &reply, &used), CODE_UNAVAILABLE);
}

static void
test_chunked_bodies(void)
{
    static const char text[] = "5;x=y\r\nhello\r\n8\r\n, world!\r\n0\r\nTrailer: 1\r\n\r\nnext";
    for (size_t cut = 0; cut < strlen(text) - 4; cut++) {
        struct http_chunked chunked = {0};
        struct buffer body AUTO(buffer_clear) = {0};
        size_t used = 0, more = 0;
        CHECK(!http_chunked_take(&chunked, (const uint8_t *)text, cut, 100, &body, &used));
        CHECK_NUMBER(used, cut);
        CHECK(!http_chunked_take(&chunked, (const uint8_t *)text + cut, strlen(text) - cut, 100,
                                 &body, &more));
        CHECK_NUMBER(used + more, strlen(text) - 4);
        CHECK_NUMBER(chunked.state, HTTP_CHUNK_DONE);
        CHECK_TEXT(buffer_text(&body), "hello, world!");
    }
    struct http_chunked chunked = {0};
    struct buffer body AUTO(buffer_clear) = {0};
    size_t used;
    struct error *error =
        http_chunked_take(&chunked, (const uint8_t *)text, strlen(text), 6, &body, &used);
    CHECK(error && error->code == CODE_UNAVAILABLE);
    error_free(error);
}

static struct error *
note_key(const char *key, uint64_t size, void *context)
{
    buffer_print(context, "%s=%llu ", key, (unsigned long long)size);
    return NULL;
}

static enum code
parse_list(const char *text, struct s3_list *list, struct buffer *keys)
{
    struct error *error AUTO(error_cleanup) =
        s3_list_parse((const uint8_t *)text, strlen(text), list, note_key, keys);
    return error ? error->code : CODE_OK;
}

static void
test_lists(void)
{
    struct s3_list list = {0};
    struct buffer keys AUTO(buffer_clear) = {0};
    CHECK_NUMBER(parse_list("<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\">"
                            "<IsTruncated>true</IsTruncated><Delimiter/>"
                            "<Contents><Key>a/01/x&amp;y</Key><Owner><ID>Key</ID></Owner>"
                            "<Size>17</Size></Contents>"
                            "<NextContinuationToken>a&#x2B;b</NextContinuationToken>"
                            "<Contents><Size>0</Size><Key>b</Key></Contents></ListBucketResult>",
                            &list, &keys),
                 CODE_OK);
    CHECK_TEXT(buffer_text(&keys), "a/01/x&y=17 b=0 ");
    CHECK(list.is_truncated);
    CHECK_TEXT(buffer_text(&list.token), "a+b");
    static const char *const bad[] = {
        "",
        "<ListBucketResult>",
        "<ListBucketResult></Other>",
        "<Other></Other>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
        "<!DOCTYPE x><ListBucketResult></ListBucketResult>",
        "<ListBucketResult>&bomb;</ListBucketResult>",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_NUMBER(parse_list(bad[i], &list, &keys), CODE_UNAVAILABLE);
    s3_list_clear(&list);
    char code[32];
    static const char error[] = "<Error><Code>SlowDown</Code><Message>m</Message></Error>";
    s3_error_code((const uint8_t *)error, strlen(error), code, sizeof code);
    CHECK_TEXT(code, "SlowDown");
}

/* ---- lists that do not end ---- */

/* The keys and tokens of page `number`; false: it is the last one. */
typedef bool print_page(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX]);

/* Reads the pages; at most so many. Gives the code of the end, and how many pages were read. */
static enum code
read_pages(print_page *print, unsigned most, unsigned *pages, const char *says)
{
    struct s3_list list = {0};
    enum code code = CODE_OK;
    for (*pages = 0; code == CODE_OK && *pages < most; ++*pages) {
        char key[S3_KEY_MAX] = "", token[S3_TOKEN_MAX] = "";
        struct buffer page AUTO(buffer_clear) = {0}, keys AUTO(buffer_clear) = {0};
        bool goes_on = print(*pages, key, token);
        buffer_print(&page, "<ListBucketResult><IsTruncated>%s</IsTruncated>",
                     goes_on ? "true" : "false");
        buffer_print(&page, "<NextContinuationToken>%s</NextContinuationToken>", token);
        if (key[0])
            buffer_print(&page, "<Contents><Key>%s</Key><Size>1</Size></Contents>", key);
        buffer_print(&page, "</ListBucketResult>");
        struct error *error AUTO(error_cleanup) =
            s3_list_parse(page.bytes, page.size, &list, note_key, &keys);
        code = error ? error->code : CODE_OK;
        CHECK(!error || strstr(error->message, says));
        if (!goes_on)
            break;
    }
    s3_list_clear(&list);
    return code;
}

static bool
print_good(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX])
{
    /* Now and then a page has no key: what it had was deleted. */
    if (number % 50)
        snprintf(key, S3_KEY_MAX, "01/%08u", number);
    snprintf(token, S3_TOKEN_MAX, "after %u", number);
    return number < 3000;
}

static bool
print_same_token(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX])
{
    snprintf(key, S3_KEY_MAX, "01/%08u", number);
    snprintf(token, S3_TOKEN_MAX, "here");
    return true;
}

static bool
print_round(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX])
{
    snprintf(key, S3_KEY_MAX, "01/%08u", number);
    snprintf(token, S3_TOKEN_MAX, "%u", number < 40 ? number : 40 + number % 70);
    return true;
}

static bool
print_empty(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX])
{
    (void)key;
    snprintf(token, S3_TOKEN_MAX, "%u", number);
    return true;
}

static bool
print_same_keys(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX])
{
    snprintf(key, S3_KEY_MAX, "01/%u", number % 7);
    snprintf(token, S3_TOKEN_MAX, "%u", number);
    return true;
}

static bool
print_endless(unsigned number, char key[S3_KEY_MAX], char token[S3_TOKEN_MAX])
{
    snprintf(key, S3_KEY_MAX, "01/%08u", number);
    snprintf(token, S3_TOKEN_MAX, "%u", number);
    return true;
}

static void
test_lists_that_do_not_end(void)
{
    static const struct {
        print_page *print;
        unsigned most; /* pages that may be read */
        const char *says;
    } bad[] = {
        {print_same_token, 2, "tokens repeat"},
        {print_round, 400, "tokens repeat"},
        {print_empty, 101, "no new key"},
        {print_same_keys, 108, "no new key"},
        {print_endless, S3_PAGES_MAX, "100000 pages"},
    };
    unsigned pages;
    CHECK_NUMBER(read_pages(print_good, UINT32_MAX, &pages, ""), CODE_OK);
    CHECK_NUMBER(pages, 3000);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_NUMBER(read_pages(bad[i].print, UINT32_MAX, &pages, bad[i].says),
                     CODE_FAILED_PRECONDITION);
        CHECK(pages <= bad[i].most);
    }
}

/* What is too long is refused before it is sent back. */
static void
test_long_keys_and_tokens(void)
{
    static const char *const forms[] = {
        "<ListBucketResult><Contents><Key>%s</Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><NextContinuationToken>%s</NextContinuationToken></ListBucketResult>",
    };
    static const char *const says[] = {"a key of more than", "a continuation token of more than"};
    static const unsigned most[] = {S3_KEY_MAX, S3_TOKEN_MAX};
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        for (unsigned more = 0; more < 2; more++) {
            struct s3_list list = {0};
            struct buffer long_text AUTO(buffer_clear) = {0}, page AUTO(buffer_clear) = {0};
            struct buffer keys AUTO(buffer_clear) = {0};
            for (unsigned size = 0; size < most[i] + more; size++)
                buffer_append_byte(&long_text, 'x');
            const char *parts[] = {forms[i], strstr(forms[i], "%s") + 2};
            buffer_append(&page, parts[0], (size_t)(parts[1] - 2 - parts[0]));
            buffer_append(&page, long_text.bytes, long_text.size);
            buffer_append_text(&page, parts[1]);
            struct error *error AUTO(error_cleanup) =
                s3_list_parse(page.bytes, page.size, &list, note_key, &keys);
            CHECK((error != NULL) == (more == 1));
            CHECK(!error || (error->code == CODE_UNAVAILABLE && strstr(error->message, says[i])));
            s3_list_clear(&list);
        }
}

static bool
is_never_over(const void *context)
{
    (void)context;
    return false;
}

/* A name that cannot be found must not cost the program another descriptor, not even the lowest. */
static void
test_unknown_host(void)
{
    const struct http_watch watch = {is_never_over, NULL};
    struct http_client *client = NULL;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(dup2(null, STDIN_FILENO) == STDIN_FILENO);
    struct error *error = http_client_open("127.0.0.1", "no port", NULL, &watch, &client);
    CHECK(error && error->code == CODE_UNAVAILABLE);
    error_free(error);
    CHECK(!client);
    CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

int
main(void)
{
    test_unknown_host();
    test_urls();
    test_credentials();
    test_signature();
    test_replies();
    test_chunked_bodies();
    test_lists();
    test_lists_that_do_not_end();
    test_long_keys_and_tokens();
    return check_report("test_repository_s3");
}
