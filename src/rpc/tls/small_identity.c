/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate for one connection, with mbedTLS: see tls_identity.h and small_private.h. */
#include "rpc/tls/tls_identity.h"

#include <mbedtls/ecp.h>
#include <mbedtls/oid.h>
#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rpc/tls/small_private.h"

#define SUBJECT "CN=localhost"
#define BACKDATE_S 30
#define VALID_YEARS 30
#define ROOM 4096

/* A sequence of one DNS name (RFC 5280, 4.2.1.6). */
static const unsigned char alternative_name[] = {0x30, 11,  0x82, 9,   'l', 'o', 'c',
                                                 'a',  'l', 'h',  'o', 's', 't'};

/* The purposes of servers and of clients (4.2.1.12). */
static const unsigned char purposes[] = {0x30, 20,   0x06, 8,    0x2b, 0x06, 0x01, 0x05,
                                         0x05, 0x07, 0x03, 0x01, 0x06, 8,    0x2b, 0x06,
                                         0x01, 0x05, 0x05, 0x07, 0x03, 0x02};

/* What is needed to write one certificate. */
struct maker {
    struct small_random random;
    mbedtls_pk_context key;
    mbedtls_x509write_cert certificate;
};

static void
maker_close(struct maker *maker)
{
    mbedtls_x509write_crt_free(&maker->certificate);
    mbedtls_pk_free(&maker->key);
    small_random_close(&maker->random);
}

static int
make_key(struct maker *maker)
{
    int failed = mbedtls_pk_setup(&maker->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    if (failed)
        return failed;
    return mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(maker->key),
                               mbedtls_ctr_drbg_random, &maker->random.generator);
}

static int
set_serial(struct maker *maker)
{
    unsigned char bytes[8];
    int failed = mbedtls_ctr_drbg_random(&maker->random.generator, bytes, sizeof bytes);
    if (failed)
        return failed;
    bytes[0] = (bytes[0] & 0x7f) | 1; /* positive, and no zero in front */
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_x509write_crt_set_serial_raw(&maker->certificate, bytes, sizeof bytes);
#else
    mbedtls_mpi serial;
    mbedtls_mpi_init(&serial);
    failed = mbedtls_mpi_read_binary(&serial, bytes, sizeof bytes);
    if (!failed)
        failed = mbedtls_x509write_crt_set_serial(&maker->certificate, &serial);
    mbedtls_mpi_free(&serial);
    return failed;
#endif
}

static int
set_validity(struct maker *maker)
{
    char from[20], until[20];
    time_t begin = time(NULL) - BACKDATE_S;
    struct tm parts;
    gmtime_r(&begin, &parts);
    strftime(from, sizeof from, "%Y%m%d%H%M%S", &parts);
    parts.tm_year += VALID_YEARS;
    parts.tm_mday = parts.tm_mday > 28 ? 28 : parts.tm_mday; /* no 29th of February */
    strftime(until, sizeof until, "%Y%m%d%H%M%S", &parts);
    return mbedtls_x509write_crt_set_validity(&maker->certificate, from, until);
}

static int
set_extension(struct maker *maker, const char *oid, const unsigned char *value, size_t size)
{
    return mbedtls_x509write_crt_set_extension(&maker->certificate, oid, strlen(oid), 0, value,
                                               size);
}

static int
describe(struct maker *maker)
{
    mbedtls_x509write_cert *certificate = &maker->certificate;
    mbedtls_x509write_crt_set_version(certificate, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(certificate, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(certificate, &maker->key);
    mbedtls_x509write_crt_set_issuer_key(certificate, &maker->key);
    int failed = mbedtls_x509write_crt_set_subject_name(certificate, SUBJECT);
    if (!failed)
        failed = mbedtls_x509write_crt_set_issuer_name(certificate, SUBJECT);
    if (!failed)
        failed = set_serial(maker);
    if (!failed)
        failed = set_validity(maker);
    if (!failed)
        failed = mbedtls_x509write_crt_set_basic_constraints(certificate, 1, -1);
    if (!failed)
        failed = mbedtls_x509write_crt_set_key_usage(
            certificate, MBEDTLS_X509_KU_DIGITAL_SIGNATURE | MBEDTLS_X509_KU_KEY_AGREEMENT |
                             MBEDTLS_X509_KU_KEY_CERT_SIGN);
    if (!failed)
        failed = set_extension(maker, MBEDTLS_OID_EXTENDED_KEY_USAGE, purposes, sizeof purposes);
    if (!failed)
        failed = set_extension(maker, MBEDTLS_OID_SUBJECT_ALT_NAME, alternative_name,
                               sizeof alternative_name);
    return failed;
}

/* mbedTLS writes DER at the end of the room. */
static int
print(struct maker *maker, struct tls_identity *out)
{
    unsigned char room[ROOM];
    int size = mbedtls_x509write_crt_der(&maker->certificate, room, sizeof room,
                                         mbedtls_ctr_drbg_random, &maker->random.generator);
    if (size < 0)
        return size;
    buffer_append(&out->der, room + sizeof room - size, (size_t)size);
    size_t written;
    int failed =
        mbedtls_pem_write_buffer("-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n",
                                 out->der.bytes, out->der.size, room, sizeof room, &written);
    if (failed)
        return failed;
    buffer_append(&out->certificate, room, written - 1);
    failed = mbedtls_pk_write_key_pem(&maker->key, room, sizeof room);
    if (!failed)
        buffer_append_text(&out->key, (const char *)room);
    mbedtls_platform_zeroize(room, sizeof room);
    return failed;
}

struct error *
tls_identity_make(struct tls_identity *out)
{
    struct maker maker AUTO(maker_close) = {0};
    mbedtls_pk_init(&maker.key);
    mbedtls_x509write_crt_init(&maker.certificate);
    struct error *error = small_random_open(&maker.random);
    if (error)
        return error;
    int failed = make_key(&maker);
    if (!failed)
        failed = describe(&maker);
    if (!failed)
        failed = print(&maker, out);
    return failed ? small_failure("cannot make a certificate", failed) : NULL;
}

void
tls_identity_clear(struct tls_identity *identity)
{
    buffer_clear(&identity->certificate);
    buffer_clear(&identity->der);
    if (identity->key.bytes)
        mbedtls_platform_zeroize(identity->key.bytes, identity->key.size);
    buffer_clear(&identity->key);
}
