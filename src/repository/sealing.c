/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, pieces and ids: see sealing.h. */
#include "repository/sealing.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "repository/bytes.h"

static const uint8_t magic[8] = {'S', 'K', 'Y', 'C', 'A', 'P', 'R', '1'};

#define NONCE_BYTES 12u
#define EXTRA_BYTES 13u /* kind, position, size */

struct sealing {
    bool encrypts;
    uint8_t master[SEALING_KEY_BYTES];
    EVP_MAC_CTX *ids; /* with the key of ids; copied for each id */
    EVP_CIPHER *cipher;
    EVP_MD *digest;
    EVP_KDF *kdf;
};

static struct error *
failed(const char *what)
{
    return error_new(CODE_INTERNAL, "OpenSSL cannot %s", what);
}

struct error *
sealing_random(void *bytes, size_t size)
{
    return RAND_bytes(bytes, (int)size) == 1 ? NULL : failed("make random bytes");
}

/* ---- keys ---- */

static struct error *
derive(const struct sealing *sealing, const void *salt, size_t salt_size, const char *purpose,
       uint8_t last, uint8_t out[SEALING_KEY_BYTES])
{
    char info[40] = {0};
    size_t size = strlen(purpose);
    memcpy(info, purpose, size);
    info[size] = (char)last;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){"SHA256"}, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)sealing->master,
                                          sizeof sealing->master),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)salt, salt_size),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, size + 1),
        OSSL_PARAM_construct_end()};
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(sealing->kdf);
    bool is_good = context && EVP_KDF_derive(context, out, SEALING_KEY_BYTES, parameters) == 1;
    EVP_KDF_CTX_free(context);
    return is_good ? NULL : failed("derive a key");
}

static struct error *
make_id_key(struct sealing *sealing)
{
    uint8_t key[SEALING_KEY_BYTES];
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
        OSSL_PARAM_construct_end()};
    struct error *error = derive(sealing, "", 0, "skycap chunk ids", 0, key);
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    sealing->ids = mac ? EVP_MAC_CTX_new(mac) : NULL;
    EVP_MAC_free(mac);
    if (!error && (!sealing->ids || !EVP_MAC_init(sealing->ids, key, sizeof key, parameters)))
        error = failed("make HMACs");
    OPENSSL_cleanse(key, sizeof key);
    return error;
}

struct error *
sealing_new(const uint8_t key[SEALING_KEY_BYTES], struct sealing **out)
{
    struct sealing *sealing = memory_zeroed(sizeof *sealing);
    struct error *error = NULL;
    sealing->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    sealing->digest = EVP_MD_fetch(NULL, "SHA256", NULL);
    sealing->kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    if (!sealing->cipher || !sealing->digest || !sealing->kdf)
        error = failed("give AES-256-GCM, SHA-256 and HKDF");
    if (!error && key) {
        sealing->encrypts = true;
        memcpy(sealing->master, key, sizeof sealing->master);
        error = make_id_key(sealing);
    }
    if (error)
        sealing_free(STEAL(sealing));
    *out = sealing;
    return error;
}

void
sealing_free(struct sealing *sealing)
{
    if (!sealing)
        return;
    EVP_MAC_CTX_free(sealing->ids);
    EVP_CIPHER_free(sealing->cipher);
    EVP_MD_free(sealing->digest);
    EVP_KDF_free(sealing->kdf);
    OPENSSL_cleanse(sealing, sizeof *sealing);
    free(sealing);
}

bool
sealing_encrypts(const struct sealing *sealing)
{
    return sealing->encrypts;
}

struct error *
sealing_derive(const struct sealing *sealing, enum object_kind kind, const uint8_t salt[32],
               struct sealing_key *key)
{
    *key = (struct sealing_key){.kind = kind};
    memcpy(key->salt, salt, sizeof key->salt);
    if (!sealing->encrypts)
        return NULL;
    return derive(sealing, salt, sizeof key->salt, "skycap object", (uint8_t)kind, key->bytes);
}

/* ---- headers ---- */

/* Magic (8), kind (1), whether it is encrypted (1), six zeros, salt (32). */
struct error *
sealing_begin(const struct sealing *sealing, enum object_kind kind,
              uint8_t header[SEALING_HEADER_BYTES], struct sealing_key *key)
{
    memset(header, 0, SEALING_HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    header[8] = (uint8_t)kind;
    header[9] = sealing->encrypts;
    struct error *error = sealing_random(header + 16, sizeof key->salt);
    return error ? error : sealing_derive(sealing, kind, header + 16, key);
}

bool
sealing_header_is_encrypted(const uint8_t header[SEALING_HEADER_BYTES])
{
    return header[9] == 1;
}

struct error *
sealing_read_header(const struct sealing *sealing, enum object_kind kind,
                    const uint8_t header[SEALING_HEADER_BYTES], struct sealing_key *key)
{
    static const uint8_t zeros[6];
    if (memcmp(header, magic, sizeof magic) != 0 || header[8] != kind || header[9] > 1 ||
        memcmp(header + 10, zeros, sizeof zeros) != 0)
        return error_new(CODE_DATA_LOSS, "its header is damaged");
    if (header[9] != sealing->encrypts)
        return error_new(CODE_DATA_LOSS, "it is %s, unlike the repository",
                         header[9] ? "encrypted" : "not encrypted");
    return sealing_derive(sealing, kind, header + 16, key);
}

/* ---- pieces ---- */

static void
describe(const struct sealing_key *key, uint64_t position, size_t size, uint8_t out[EXTRA_BYTES])
{
    out[0] = (uint8_t)key->kind;
    bytes_set64(out + 1, position);
    bytes_set32(out + 9, (uint32_t)size);
}

/* In the place of a tag, where nothing is encrypted. */
static struct error *
sum_piece(const struct sealing *sealing, const struct sealing_key *key, uint64_t position,
          const uint8_t *bytes, size_t size, uint8_t tag[SEALING_TAG_BYTES])
{
    uint8_t extra[EXTRA_BYTES], digest[32];
    describe(key, position, size, extra);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_good = context && EVP_DigestInit_ex2(context, sealing->digest, NULL) &&
                   EVP_DigestUpdate(context, key->salt, sizeof key->salt) &&
                   EVP_DigestUpdate(context, extra, sizeof extra) &&
                   EVP_DigestUpdate(context, bytes, size) &&
                   EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    memcpy(tag, digest, SEALING_TAG_BYTES);
    return is_good ? NULL : failed("make a SHA-256");
}

static bool
run_cipher(const struct sealing *sealing, const struct sealing_key *key, uint64_t position,
           const uint8_t *bytes, size_t size, uint8_t *out, uint8_t *tag, bool seals)
{
    uint8_t nonce[NONCE_BYTES] = {0}, extra[EXTRA_BYTES], rest[16];
    int done = 0;
    bytes_set64(nonce, position);
    describe(key, position, size, extra);
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, SEALING_TAG_BYTES),
        OSSL_PARAM_construct_end()};
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool is_good = context &&
                   EVP_CipherInit_ex2(context, sealing->cipher, key->bytes, nonce, seals, NULL) &&
                   EVP_CipherUpdate(context, NULL, &done, extra, sizeof extra) &&
                   EVP_CipherUpdate(context, out, &done, bytes, (int)size) &&
                   (seals || EVP_CIPHER_CTX_set_params(context, parameters)) &&
                   EVP_CipherFinal_ex(context, rest, &done) &&
                   (!seals || EVP_CIPHER_CTX_get_params(context, parameters));
    EVP_CIPHER_CTX_free(context);
    return is_good;
}

struct error *
sealing_seal(const struct sealing *sealing, const struct sealing_key *key, uint64_t position,
             const uint8_t *bytes, size_t size, uint8_t *out)
{
    if (!sealing->encrypts) {
        memmove(out, bytes, size);
        return sum_piece(sealing, key, position, out, size, out + size);
    }
    return run_cipher(sealing, key, position, bytes, size, out, out + size, true)
               ? NULL
               : failed("encrypt");
}

struct error *
sealing_open(const struct sealing *sealing, const struct sealing_key *key, uint64_t position,
             const uint8_t *sealed, size_t size, uint8_t *out)
{
    uint8_t tag[SEALING_TAG_BYTES], expected[SEALING_TAG_BYTES];
    bool is_good;
    memcpy(tag, sealed + size, sizeof tag);
    if (sealing->encrypts) {
        is_good = run_cipher(sealing, key, position, sealed, size, out, tag, false);
    } else {
        struct error *error = sum_piece(sealing, key, position, sealed, size, expected);
        if (error)
            return error;
        memmove(out, sealed, size);
        is_good = !memcmp(tag, expected, sizeof tag);
    }
    return is_good ? NULL
                   : error_new(CODE_DATA_LOSS, "the piece at byte %llu is damaged",
                               (unsigned long long)position);
}

/* ---- ids and names ---- */

struct error *
sealing_name(const struct sealing *sealing, const void *bytes, size_t size,
             struct object_name *name)
{
    return EVP_Digest(bytes, size, name->bytes, NULL, sealing->digest, NULL)
               ? NULL
               : failed("make a SHA-256");
}

struct error *
sealing_identify(const struct sealing *sealing, const void *bytes, size_t size,
                 struct repository_id *id)
{
    if (!sealing->encrypts)
        return EVP_Digest(bytes, size, id->bytes, NULL, sealing->digest, NULL)
                   ? NULL
                   : failed("make a SHA-256");
    size_t length = 0;
    EVP_MAC_CTX *context = EVP_MAC_CTX_dup(sealing->ids);
    bool is_good = context && EVP_MAC_update(context, bytes, size) &&
                   EVP_MAC_final(context, id->bytes, &length, sizeof id->bytes);
    EVP_MAC_CTX_free(context);
    return is_good ? NULL : failed("make an HMAC");
}
