/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/message/message_json_parse.c and message_json_print.c, on csi.proto and on a message with every
 * kind of field.
 */
#include <float.h>
#include <math.h>

#include "json_checks.h"

static const char create_text[] =
    "{\"name\":\"pvc-1\",\"capacityRange\":{\"requiredBytes\":\"1073741824\"},"
    "\"volumeCapabilities\":[{\"mount\":{\"fsType\":\"ext4\",\"mountFlags\":[\"ro\",\"noatime\"]},"
    "\"accessMode\":{\"mode\":\"SINGLE_NODE_WRITER\"}},{\"block\":{}}],"
    "\"parameters\":{\"pool\":\"fast\",\"csi.storage.k8s.io/pvc/name\":\"\"},"
    "\"secrets\":{\"password\":\"hunter2\"},"
    "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"s:local/1\"}}}";

static void
a_request_of_csi_becomes_a_message(void)
{
    Csi__V1__CreateVolumeRequest *request =
        (Csi__V1__CreateVolumeRequest *)parse_good(CREATE, create_text);
    CHECK_TEXT(request->name, "pvc-1");
    CHECK_NUMBER(request->capacity_range->required_bytes, 1073741824);
    CHECK_NUMBER(request->capacity_range->limit_bytes, 0);
    CHECK_NUMBER(request->n_volume_capabilities, 2);
    Csi__V1__VolumeCapability *first = request->volume_capabilities[0];
    CHECK_NUMBER(first->access_type_case, CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT);
    CHECK_TEXT(first->mount->fs_type, "ext4");
    CHECK_NUMBER(first->mount->n_mount_flags, 2);
    CHECK_TEXT(first->mount->mount_flags[1], "noatime");
    CHECK_NUMBER(first->access_mode->mode, 1);
    CHECK_NUMBER(request->volume_capabilities[1]->access_type_case,
                 CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK);
    CHECK_NUMBER(request->n_parameters, 2);
    CHECK_TEXT(request->parameters[0]->key, "pool");
    CHECK_TEXT(request->parameters[0]->value, "fast");
    CHECK_TEXT(request->secrets[0]->value, "hunter2");
    CHECK_TEXT(request->volume_content_source->snapshot->snapshot_id, "s:local/1");
    check_print(&request->base, 0, create_text);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

static void
what_was_parsed_can_be_packed_and_unpacked(void)
{
    ProtobufCMessage *message = parse_good(CREATE, create_text);
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size);
    CHECK_NUMBER(protobuf_c_message_pack(message, bytes), size);
    ProtobufCMessage *again = protobuf_c_message_unpack(CREATE, NULL, size, bytes);
    CHECK(again);
    if (again)
        check_print(again, 0, create_text);
    protobuf_c_message_free_unpacked(again, NULL);
    protobuf_c_message_free_unpacked(message, NULL);
    free(bytes);
}

static void
secrets_can_be_hidden(void)
{
    ProtobufCMessage *message =
        parse_good(CREATE, "{\"name\":\"x\",\"secrets\":{\"password\":\"hunter2\"}}");
    check_print(message, MESSAGE_JSON_HIDE_SECRETS,
                "{\"name\":\"x\",\"secrets\":\"***stripped***\"}");
    check_print(message, 0, "{\"name\":\"x\",\"secrets\":{\"password\":\"hunter2\"}}");
    protobuf_c_message_free_unpacked(message, NULL);
    message = parse_good(CREATE, "{\"name\":\"x\"}");
    check_print(message, MESSAGE_JSON_HIDE_SECRETS, "{\"name\":\"x\"}");
    protobuf_c_message_free_unpacked(message, NULL);
}

static void
pretty_has_one_member_a_line(void)
{
    ProtobufCMessage *message = parse_good(
        CREATE,
        "{\"name\":\"x\",\"volumeCapabilities\":[{\"block\":{}},{\"mount\":{\"mountFlags\":["
        "\"a\",\"b\"]}}],\"parameters\":{\"a\":\"1\",\"b\":\"2\"}}");
    check_print(message, MESSAGE_JSON_PRETTY,
                "{\n"
                "  \"name\": \"x\",\n"
                "  \"volumeCapabilities\": [\n"
                "    {\n"
                "      \"block\": {}\n"
                "    },\n"
                "    {\n"
                "      \"mount\": {\n"
                "        \"mountFlags\": [\n"
                "          \"a\",\n"
                "          \"b\"\n"
                "        ]\n"
                "      }\n"
                "    }\n"
                "  ],\n"
                "  \"parameters\": {\n"
                "    \"a\": \"1\",\n"
                "    \"b\": \"2\"\n"
                "  }\n"
                "}");
    protobuf_c_message_free_unpacked(message, NULL);
}

static void
names_may_be_of_either_form(void)
{
    check_back(CREATE, "{\"volume_content_source\":{\"snapshot\":{\"snapshot_id\":\"x\"}}}",
               "{\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"x\"}}}");
    check_refused(CREATE, "{\"volume_contentSource\":{}}",
                  "csi.v1.CreateVolumeRequest has no field \"volume_contentSource\"");
    check_refused(&sample_type, "{\"smallUnsigned\":1,\"small_unsigned\":2}",
                  "small_unsigned: given twice, also as \"smallUnsigned\"");
    check_refused(&sample_type, "{\"small_unsigned\":2,\"smallUnsigned\":1}",
                  "small_unsigned: given twice, also as \"smallUnsigned\"");
    check_refused(&sample_type, "{\"text\":\"a\",\"text\":\"b\"}",
                  "not valid JSON, line 1 column 18: duplicate object key");
}

static void
defaults_and_null_are_absent(void)
{
    check_sample("{}", NULL);
    check_sample("{\"small\":0,\"large\":\"0\",\"real\":0.0,\"flag\":false,\"colour\":\"NONE\","
                 "\"text\":\"\",\"data\":\"\",\"numbers\":[],\"byName\":{}}",
                 "{}");
    check_sample("{\"small\":null,\"text\":null,\"data\":null,\"numbers\":null,\"byName\":null,"
                 "\"chosenText\":null,\"duration\":null,\"wrapped\":null,\"maybe\":null}",
                 "{}");
    check_sample("{\"chosenText\":null,\"chosenNumber\":1}", "{\"chosenNumber\":1}");
    check_refused(&sample_type, "{\"texts\":[null]}", "texts[0]: expected a string");
    check_refused(&sample_type, "{\"byName\":{\"a\":null}}", "byName[\"a\"]: expected an integer");
}

static void
integers_keep_all_their_digits(void)
{
    check_sample("{\"small\":-2147483648,\"smallUnsigned\":4294967295,"
                 "\"large\":\"-9223372036854775808\",\"largeUnsigned\":\"18446744073709551615\","
                 "\"zigzag\":2147483647,\"fixed\":\"9223372036854775808\"}",
                 NULL);
    check_sample("{\"large\":9223372036854775807,\"small\":\"-5\"}",
                 "{\"small\":-5,\"large\":\"9223372036854775807\"}");
    check_sample("{\"small\":1e3,\"large\":-5.0}", "{\"small\":1000,\"large\":\"-5\"}");
}

static void
integers_out_of_range_are_refused(void)
{
    check_refused(&sample_type, "{\"small\":2147483648}", "small: out of the range of int32");
    check_refused(&sample_type, "{\"small\":-2147483649}", "small: out of the range of int32");
    check_refused(&sample_type, "{\"smallUnsigned\":-1}",
                  "smallUnsigned: out of the range of uint32");
    check_refused(&sample_type, "{\"smallUnsigned\":4294967296}",
                  "smallUnsigned: out of the range of uint32");
    check_refused(&sample_type, "{\"large\":\"9223372036854775808\"}",
                  "large: out of the range of int64");
    check_refused(&sample_type, "{\"large\":\"-9223372036854775809\"}",
                  "large: out of the range of int64");
    check_refused(&sample_type, "{\"largeUnsigned\":\"18446744073709551616\"}",
                  "largeUnsigned: out of the range of uint64");
    check_refused(&sample_type, "{\"largeUnsigned\":\"99999999999999999999999\"}",
                  "largeUnsigned: out of the range of uint64");
    check_refused(&sample_type, "{\"largeUnsigned\":\"-1\"}",
                  "largeUnsigned: out of the range of uint64");
    check_refused(&sample_type, "{\"large\":1e300}", "large: out of the range of int64");
    check_refused(&sample_type, "{\"largeUnsigned\":18446744073709551616e0}",
                  "largeUnsigned: out of the range of uint64");
}

static void
what_is_no_integer_is_refused(void)
{
    static const char *const garbage[] = {"1.5",    "true",    "[]",      "{}",     "\"\"",
                                          "\"-\"",  "\"+1\"",  "\"01\"",  "\"-0\"", "\" 1\"",
                                          "\"1 \"", "\"0x1\"", "\"1e3\"", "\"1.0\""};
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"large\":%s}", garbage[i]);
        check_refused(&sample_type, text, "large: expected an integer");
    }
}

static void
reals_come_back_with_the_same_bits(void)
{
    check_sample("{\"single\":0.1,\"real\":0.1}", NULL);
    check_sample("{\"single\":3.4028235e+38,\"real\":1.7976931348623157e+308}", NULL);
    check_sample("{\"single\":\"NaN\",\"real\":\"-Infinity\"}", NULL);
    check_sample("{\"single\":\"Infinity\",\"real\":\"2.5\"}",
                 "{\"single\":\"Infinity\",\"real\":2.5}");
    check_sample("{\"real\":-0.0}", NULL);
    check_sample("{\"real\":5}", NULL);
    struct sample *sample = parse_sample("{\"real\":0.30000000000000004,\"single\":16777217}");
    CHECK(sample->real == 0.1 + 0.2);
    CHECK(sample->single == 16777216.0f);
    free_sample(sample);
    check_refused(&sample_type, "{\"single\":3.5e38}", "single: out of the range of float");
    check_refused(&sample_type, "{\"real\":\"inf\"}", "real: expected a number");
    check_refused(&sample_type, "{\"real\":\"0x1\"}", "real: expected a number");
    check_refused(&sample_type, "{\"real\":\"1e999\"}", "real: expected a number");
    check_refused(&sample_type, "{\"real\":\"\"}", "real: expected a number");
    check_refused(&sample_type, "{\"real\":true}", "real: expected a number");
}

static void
enums_are_names_or_numbers(void)
{
    check_sample("{\"colour\":\"BLUE\",\"colours\":[\"RED\",\"NONE\",\"BLUE\"]}", NULL);
    check_sample("{\"colour\":5,\"colours\":[1,7,-3]}",
                 "{\"colour\":\"BLUE\",\"colours\":[\"RED\",7,-3]}");
    check_refused(&sample_type, "{\"colour\":\"PINK\"}",
                  "colour: test.Colour has no value \"PINK\"");
    check_refused(&sample_type, "{\"colour\":true}", "colour: expected a name or a number");
    check_refused(&sample_type, "{\"colour\":2147483648}", "colour: out of the range of int32");
}

static void
bytes_are_base64_of_either_alphabet(void)
{
    check_sample("{\"data\":\"+/8=\",\"blobs\":[\"\",\"AAEC\"]}", NULL);
    check_sample("{\"data\":\"-_8\"}", "{\"data\":\"+/8=\"}");
    struct sample *sample = parse_sample("{\"data\":\"AAEC\"}");
    CHECK_NUMBER(sample->data.len, 3);
    CHECK(!memcmp(sample->data.data, "\0\1\2", 3));
    free_sample(sample);
    check_refused(&sample_type, "{\"data\":\"a\"}", "data: not valid base64");
    check_refused(&sample_type, "{\"blobs\":[\"AA\",\"A A=\"]}", "blobs[1]: not valid base64");
    check_refused(&sample_type, "{\"data\":[1]}", "data: expected a base64 string");
}

static void
strings_are_checked_and_escaped(void)
{
    check_sample("{\"text\":\"a\\\"b\\n\xc3\xa9\"}", NULL);
    check_sample("{\"text\":\"\\u00e9\\ud83d\\ude80\"}", "{\"text\":\"\xc3\xa9\xf0\x9f\x9a\x80\"}");
    check_refused(&sample_type, "{\"text\":\"\xff\"}",
                  "not valid JSON, line 1 column 9: unable to decode byte 0xff");
    check_refused(
        &sample_type, "{\"text\":\"\\u0000\"}",
        "not valid JSON, line 1 column 16: \\u0000 is not allowed without JSON_ALLOW_NUL");
    struct sample sample;
    sample_init(&sample.base);
    sample.text = "caf\xc3";
    check_print(&sample.base, 0, "{\"text\":\"caf\xef\xbf\xbd\"}");
}

static void
a_oneof_has_one_member(void)
{
    check_sample("{\"chosenNumber\":0}", NULL);
    check_sample("{\"chosenText\":\"\"}", NULL);
    check_sample("{\"chosenData\":\"\"}", NULL);
    check_sample("{\"chosenData\":\"AA==\"}", NULL);
    check_sample("{\"chosenSample\":{\"chosenSample\":{\"chosenNumber\":7}}}", NULL);
    check_refused(&sample_type, "{\"chosenNumber\":0,\"chosenText\":\"a\"}",
                  "chosenText: only one may be set, and there is also \"chosenNumber\"");
    check_refused(CREATE, "{\"volumeCapabilities\":[{\"block\":{},\"mount\":{}}]}",
                  "volumeCapabilities[0].mount: only one may be set, and there is also \"block\"");
}

static void
an_optional_field_may_be_its_default(void)
{
    check_sample("{\"maybe\":0}", NULL);
    check_sample("{\"maybe\":-1}", NULL);
}

static void
maps_are_objects(void)
{
    check_sample("{\"byName\":{\"a\":1,\"\":0},\"byNumber\":{\"-5\":{\"small\":1},\"0\":{}},"
                 "\"byFlag\":{\"true\":\"yes\",\"false\":\"\"}}",
                 NULL);
    check_refused(&sample_type, "{\"byNumber\":{\"05\":{}}}",
                  "byNumber[\"05\"]: expected an integer as the key");
    check_refused(&sample_type, "{\"byNumber\":{\"9223372036854775808\":{}}}",
                  "byNumber[\"9223372036854775808\"]: out of the range of int64");
    check_refused(&sample_type, "{\"byFlag\":{\"yes\":\"x\"}}",
                  "byFlag[\"yes\"]: expected the key \"true\" or \"false\"");
    check_refused(&sample_type, "{\"byName\":[]}", "byName: expected an object");
    struct sample sample;
    struct sample_by_number entry;
    struct sample_by_number *entries[] = {&entry};
    sample_init(&sample.base);
    sample_by_number_init(&entry.base);
    sample.n_by_number = 1;
    sample.by_number = entries;
    check_print(&sample.base, 0, "{\"byNumber\":{\"0\":{}}}"); /* no value on the wire */
}

static void
times_are_texts(void)
{
    check_back(SNAPSHOT, "{\"creationTime\":\"2026-11-15T19:40:00.500Z\"}", NULL);
    check_back(SNAPSHOT, "{\"creationTime\":\"2026-11-15T19:40:00.5+01:30\"}",
               "{\"creationTime\":\"2026-11-15T18:10:00.500Z\"}");
    check_refused(SNAPSHOT, "{\"creationTime\":\"2026-11-15\"}",
                  "creationTime: expected a time like \"2026-11-15T19:40:00Z\"");
    check_refused(SNAPSHOT, "{\"creationTime\":5}",
                  "creationTime: expected a time like \"2026-11-15T19:40:00Z\"");
    Csi__V1__Snapshot *snapshot = (Csi__V1__Snapshot *)parse_good(
        SNAPSHOT, "{\"creationTime\":\"2001-09-09T01:46:40.000000007Z\"}");
    CHECK_NUMBER(snapshot->creation_time->seconds, 1000000000);
    CHECK_NUMBER(snapshot->creation_time->nanos, 7);
    snapshot->creation_time->nanos = -1;
    check_print(&snapshot->base, 0, "{\"creationTime\":{\"seconds\":\"1000000000\",\"nanos\":-1}}");
    protobuf_c_message_free_unpacked(&snapshot->base, NULL);
}

static void
durations_are_texts(void)
{
    check_sample("{\"duration\":\"0s\"}", NULL);
    check_refused(&sample_type, "{\"duration\":\"1\"}",
                  "duration: expected a duration like \"1.5s\"");
    check_refused(&sample_type, "{\"duration\":{\"seconds\":1}}",
                  "duration: expected a duration like \"1.5s\"");
    struct sample *sample = parse_sample("{\"duration\":\"-1.5s\"}");
    CHECK_NUMBER(sample->duration->seconds, -1);
    CHECK_NUMBER(sample->duration->nanos, -500000000);
    sample->duration->nanos = 5;
    check_print(&sample->base, 0, "{\"duration\":{\"seconds\":\"-1\",\"nanos\":5}}");
    free_sample(sample);
}

static void
wrappers_are_bare_values(void)
{
    check_sample("{\"wrapped\":\"5\"}", NULL);
    check_sample("{\"wrapped\":0}", "{\"wrapped\":\"0\"}");
    check_refused(&sample_type, "{\"wrapped\":{\"value\":5}}", "wrapped: expected an integer");
    check_back(&csi__v1__probe_response__descriptor, "{\"ready\":true}", NULL);
    check_back(&csi__v1__probe_response__descriptor, "{\"ready\":false}", NULL);
    check_refused(&csi__v1__probe_response__descriptor, "{\"ready\":\"true\"}",
                  "ready: expected true or false");
}

int
main(void)
{
    a_request_of_csi_becomes_a_message();
    what_was_parsed_can_be_packed_and_unpacked();
    secrets_can_be_hidden();
    pretty_has_one_member_a_line();
    names_may_be_of_either_form();
    defaults_and_null_are_absent();
    integers_keep_all_their_digits();
    integers_out_of_range_are_refused();
    what_is_no_integer_is_refused();
    reals_come_back_with_the_same_bits();
    enums_are_names_or_numbers();
    bytes_are_base64_of_either_alphabet();
    strings_are_checked_and_escaped();
    a_oneof_has_one_member();
    an_optional_field_may_be_its_default();
    maps_are_objects();
    times_are_texts();
    durations_are_texts();
    wrappers_are_bare_values();
    return check_report("message_json");
}
