# SPDX-License-Identifier: Apache-2.0
"""Request headers: those that a server must take, those it must refuse, and how. Metadata, deadlines, error texts."""

import base64
import struct
import time
from functools import partial
from urllib.parse import unquote_to_bytes

from rawframes.expectations import (MALFORMED, NORMAL, expect_answer, expect_growth_below, expect_normal,
                                    expect_working, trailers_only)
from rawframes.messages import (ECHO_INITIAL, ECHO_TRAILING, FULL_DUPLEX_CALL, RESPONSE_SIZE, STREAMING_OUTPUT_CALL,
                                UNARY_BODY, UNARY_CALL, framed, headers, output_request, read_fields, status)
from rawframes.rawh2 import (CONTINUATION, END_HEADERS, HEADERS, MAX_HEADER_LIST_SIZE, PADDED, WITH_PRIORITY,
                             data_frames, expect, expect_true, frame, header_frames)

HEADER_LIMIT = 16 << 10
SMALLEST_PEER_LIMIT = 8 << 10

# A text with all that percent-encoding is for, taken from the interop case special_status_message.
SPECIAL_TEXT = "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n"


def regular(name, value):
    return headers(add=[(name, value)])


def in_front(name, value):
    """A further pseudo header among the others."""
    return [(name, value)] + headers()


def replaced(name, value):
    return headers(replace={name: value})


def without(name, *others):
    return headers(remove=[name], add=others)


# name, request headers, outcome of an otherwise ordinary UnaryCall
ONE_CALL = [
    ("normal-unary", headers(), NORMAL),
    ("authority-empty", replaced(":authority", ""), NORMAL),
    ("authority-raw-path", replaced(":authority", "/csi/csi.sock"), NORMAL),
    ("authority-encoded-path", replaced(":authority", "%2Fcsi%2Fcsi.sock"), NORMAL),
    ("authority-missing", without(":authority"), NORMAL),
    ("authority-missing-but-host", without(":authority", ("host", "localhost")), NORMAL),
    ("scheme-unix", replaced(":scheme", "unix"), NORMAL),
    ("te-missing", without("te"), NORMAL),
    ("te-gzip", replaced("te", "gzip"), MALFORMED),
    ("content-type-with-suffix", replaced("content-type", "application/grpc+proto"), NORMAL),
    ("content-type-with-parameter", replaced("content-type", "application/grpc;x=y"), NORMAL),
    ("content-type-json", replaced("content-type", "application/json"), "HTTP 415"),
    ("content-type-grpc-web", replaced("content-type", "application/grpc-web"), "HTTP 415"),
    ("content-type-missing", without("content-type"), "HTTP 415"),
    ("method-get", replaced(":method", "GET"), "HTTP 405"),
    ("timeout-1n", regular("grpc-timeout", "1n"), trailers_only(4)),
    ("timeout-longest", regular("grpc-timeout", "99999999H"), NORMAL),
    ("timeout-letters", regular("grpc-timeout", "abc"), trailers_only(13)),
    ("timeout-nine-digits", regular("grpc-timeout", "123456789S"), trailers_only(13)),
    ("timeout-negative", regular("grpc-timeout", "-1S"), trailers_only(13)),
    ("timeout-empty", regular("grpc-timeout", ""), trailers_only(13)),
    ("timeout-without-unit", regular("grpc-timeout", "100"), trailers_only(13)),
    ("encoding-unknown-but-not-used", regular("grpc-encoding", "zzz"), NORMAL),
    ("bin-with-padding", regular("x-some-bin", "AAECAw=="), NORMAL),
    ("bin-without-padding", regular("x-some-bin", "AAECAw"), NORMAL),
    ("bin-empty", regular("x-some-bin", ""), NORMAL),
    ("bin-two-values-joined", regular("x-some-bin", "AAECAw==,BAUG"), NORMAL),
    ("bin-not-base64", regular("x-some-bin", "!!!!"), trailers_only(13)),
    ("bin-of-impossible-length", regular("x-some-bin", "AAECA"), trailers_only(13)),
    ("header-name-uppercase", regular("X-Upper", "a"), MALFORMED),
    ("header-name-with-space", regular("x some", "a"), MALFORMED),
    ("header-value-with-newline", regular("x-some", "a\nb"), MALFORMED),
    ("header-value-with-nul", regular("x-some", "a\0b"), MALFORMED),
    ("connection-close", regular("connection", "close"), MALFORMED),
    ("proxy-connection", regular("proxy-connection", "keep-alive"), MALFORMED),
    ("keep-alive", regular("keep-alive", "timeout=5"), MALFORMED),
    ("transfer-encoding", regular("transfer-encoding", "chunked"), MALFORMED),
    ("upgrade", regular("upgrade", "h2c"), MALFORMED),
    ("pseudo-unknown", in_front(":unknown", "a"), MALFORMED),
    ("pseudo-status-in-request", in_front(":status", "200"), MALFORMED),
    ("pseudo-path-twice", in_front(":path", UNARY_CALL), MALFORMED),
    ("pseudo-after-regular", without(":path", (":path", UNARY_CALL)), MALFORMED),
    ("pseudo-method-missing", without(":method"), MALFORMED),
    ("pseudo-path-missing", without(":path"), MALFORMED),
    ("pseudo-scheme-missing", without(":scheme"), MALFORMED),
    ("pseudo-path-empty", replaced(":path", ""), MALFORMED),
    ("content-length-right", regular("content-length", str(len(UNARY_BODY))), NORMAL),
    ("content-length-too-large", regular("content-length", str(len(UNARY_BODY) + 1)), MALFORMED),
    ("content-length-too-small", regular("content-length", str(len(UNARY_BODY) - 1)), MALFORMED),
    ("content-length-not-a-number", regular("content-length", "many"), MALFORMED),
]


def one_call(request, expected, server):
    """The stream ends as the table says, and the connection goes on: all of these are errors of one stream at most."""
    connection = server.connect()
    expect_answer(expected, connection.call(request, UNARY_BODY))
    expect_working(connection)


def unknown_path(path, server):
    answer = server.connect().call(headers(path), UNARY_BODY)
    expect(trailers_only(12), answer.outcome())
    expect_true(answer.trailer("grpc-message"), "a grpc-message", answer.trailer("grpc-message"))


def header_limit_is_announced(server):
    connection = server.connect()
    expect(HEADER_LIMIT, connection.server_settings.get(MAX_HEADER_LIST_SIZE))


def large_headers(sizes, expected, server):
    """Too large a header list costs its call, not the connection, whose header tables must stay in step."""
    connection = server.connect()
    request = headers(add=[("x-large", "a" * size, True) for size in sizes])
    expect_answer(expected, connection.call(request, UNARY_BODY))
    expect_answer(NORMAL, connection.call(regular("x-indexed", "later"), UNARY_BODY))
    expect_working(connection)


def many_headers_over_the_limit(server):
    request = headers(add=[(f"x-{number}", "a" * 40) for number in range(500)])
    one_call(request, trailers_only(8), server)


def huge_header(size, server):
    """One field beyond 64 KiB, which is more than common HPACK decoders take."""
    connection = server.connect()
    expect_refused_headers(connection, connection.encode(headers(add=[("x-huge", "a" * size, True)])))


def header_bomb(server):
    """One table entry of 3 KiB named 8,000 times: 24 MB of headers in two frames."""
    connection = server.connect()
    before = server.rss_at_rest_mib()
    entry = ("x-bomb", "a" * 3000)
    block = connection.encode(headers(add=[entry])) + connection.encode([entry]) * 8000
    expect_refused_headers(connection, block)
    expect_growth_below(12, server, before)


def joined_values_bomb(server):
    """15,000 empty values in one field, on 100 calls that never end: each value would be an entry of its own."""
    connection = server.connect()
    before = server.rss_at_rest_mib()
    streams = [connection.open(regular("x-some-bin", "," * 15_000)) for _ in range(100)]
    for stream in streams:
        expect(trailers_only(8), connection.answer(stream).outcome())
    expect_growth_below(12, server, before)


def expect_refused_headers(connection, block):
    """grpc-status 8, or the end of the connection with a GOAWAY that gives an error."""
    stream = connection.new_stream()
    connection.send(header_frames(stream, block) + data_frames(stream, UNARY_BODY, end_stream=True))
    answer = connection.answer(stream)
    if answer.closed:
        expect_true(answer.goaway, "GOAWAY with an error", answer.outcome())
    else:
        expect(trailers_only(8), answer.outcome())
        expect_working(connection)


def endless_continuation(added, count, server):
    """A header block that never ends is cut off before `count` CONTINUATIONs of it."""
    connection = server.connect()
    stream = connection.new_stream()
    connection.send(frame(HEADERS, 0, stream, connection.encode(headers())))
    connection.send(frame(CONTINUATION, 0, stream, connection.encode(added)) * count)
    end = connection.end()
    expect_true(end.startswith("GOAWAY") and end != "GOAWAY(0) and closed", "GOAWAY with an error and closed", end)


def request_trailers(trailers, expected, server):
    connection = server.connect()
    stream = connection.new_stream()
    connection.send(header_frames(stream, connection.encode(headers())) + data_frames(stream, UNARY_BODY)
                    + header_frames(stream, connection.encode(trailers), end_stream=True))
    expect_answer(expected, connection.answer(stream))
    expect_working(connection)


def second_headers_without_end(server):
    connection = server.connect()
    stream = connection.open(headers())
    connection.send(data_frames(stream, UNARY_BODY)
                    + header_frames(stream, connection.encode([("x-some", "metadata")])))
    expect(MALFORMED, connection.answer(stream).outcome())
    expect_working(connection)


def padded_headers_with_priority(server):
    connection = server.connect()
    stream = connection.new_stream()
    padding = 7
    payload = bytes([padding]) + struct.pack(">IB", 0, 15) + connection.encode(headers()) + bytes(padding)
    connection.send(frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, stream, payload)
                    + data_frames(stream, UNARY_BODY, end_stream=True))
    expect_normal(connection.answer(stream))


def deadline_while_the_request_is_unfinished(server):
    """The server's own clock ends a call whose client never sends the message."""
    connection = server.connect()
    started = time.monotonic()
    answer = connection.answer(connection.open(regular("grpc-timeout", "200m")))
    expect(trailers_only(4), answer.outcome())
    expect_true(0.15 < time.monotonic() - started < 1, "an answer after 0.2 s", f"{time.monotonic() - started:.2f} s")


def deadline_in_a_running_stream(server):
    connection = server.connect()
    request = framed(output_request([RESPONSE_SIZE] * 2, interval_us=2_000_000))
    started = time.monotonic()
    answer = connection.call(headers(STREAMING_OUTPUT_CALL, add=[("grpc-timeout", "200m")]), request)
    expect_true(answer.ended and answer.trailer("grpc-status") == "4", "grpc-status 4", answer.outcome())
    expect_true(0.15 < time.monotonic() - started < 1, "an answer after 0.2 s", f"{time.monotonic() - started:.2f} s")
    expect_working(connection)


def expect_echo(answer, text, octets):
    expect(text, answer.header(ECHO_INITIAL))
    encoded = answer.trailer(ECHO_TRAILING)
    expect_true(encoded, f"{ECHO_TRAILING} in the trailers", answer.blocks[-1])
    expect(octets, base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True))


def metadata_echo(encoded, server):
    octets = b"\xab\xab\xab\x00\xff\x10\x20"
    request = headers(add=[(ECHO_INITIAL, "test_initial_metadata_value"), (ECHO_TRAILING, encoded(octets))])
    answer = server.connect().call(request, UNARY_BODY)
    expect_normal(answer)
    expect_echo(answer, "test_initial_metadata_value", octets)


def metadata_echo_in_a_stream(server):
    request = headers(FULL_DUPLEX_CALL, add=[(ECHO_INITIAL, "value"), (ECHO_TRAILING, "q6ur")])
    answer = server.connect().call(request, framed(output_request([RESPONSE_SIZE])))
    expect(NORMAL, answer.outcome())
    expect_echo(answer, "value", b"\xab\xab\xab")


def padded_base64(octets):
    return base64.b64encode(octets).decode()


def bare_base64(octets):
    return padded_base64(octets).rstrip("=")


def failing_call(connection, code, text):
    """UnaryCall that answers with this status; returns grpc-message as it was on the wire."""
    answer = connection.call(headers(), framed(status(code, text)))
    expect(trailers_only(code), answer.outcome())
    return answer.trailer("grpc-message"), answer


def error_text(text, server):
    raw, _ = failing_call(server.connect(), 2, text)
    expect_true(raw.isascii() and raw.isprintable(), "only printable ASCII in grpc-message", repr(raw))
    expect(text, unquote_to_bytes(raw).decode())


def error_text_fits_the_peers_header_limit(server):
    """Where the client takes only so many header bytes, the text is cut, at a character."""
    connection = server.connect(settings={MAX_HEADER_LIST_SIZE: SMALLEST_PEER_LIMIT})
    text = "\u263a" * 8000
    raw, answer = failing_call(connection, 2, text)
    size = sum(len(name) + len(value) + 32 for name, value in answer.blocks[0])
    expect_true(size <= SMALLEST_PEER_LIMIT, f"at most {SMALLEST_PEER_LIMIT} bytes of headers", size)
    shown = unquote_to_bytes(raw).decode()
    expect_true(shown and text.startswith(shown.rstrip(".")), "the start of the text", repr(shown[-20:]))


def identity_names_the_driver(server):
    answer = server.connect().call(headers("/csi.v1.Identity/GetPluginInfo"), framed(b""))
    expect(NORMAL, answer.outcome())
    expect_true(read_fields(answer.messages()[0][1]).get(1), "a name (field 1)", answer.messages()[0])


def probe_is_answered(server):
    expect(NORMAL, server.connect().call(headers("/csi.v1.Identity/Probe"), framed(b"")).outcome())


def health_says_serving(server):
    answer = server.connect().call(headers("/grpc.health.v1.Health/Check"), framed(b""))
    expect(NORMAL, answer.outcome())
    expect({1: 1}, read_fields(answer.messages()[0][1]))


CASES = [(name, partial(one_call, request, expected)) for name, request, expected in ONE_CALL] + [
    ("method-unknown", partial(unknown_path, "/grpc.testing.TestService/NoSuchCall")),
    ("service-unknown", partial(unknown_path, "/no.such.Service/Call")),
    ("path-without-method", partial(unknown_path, "/grpc.testing.TestService")),
    ("header-limit-is-announced", header_limit_is_announced),
    ("headers-4k", partial(large_headers, [4 << 10], NORMAL)),
    ("headers-20k", partial(large_headers, [20 << 10], trailers_only(8))),
    ("headers-70k", partial(large_headers, [35 << 10] * 2, trailers_only(8))),
    ("header-70k", partial(huge_header, 70 << 10)),
    ("header-280k", partial(huge_header, 280 << 10)),
    ("header-2m", partial(huge_header, 2 << 20)),
    ("headers-500-over-the-limit", many_headers_over_the_limit),
    ("header-bomb", header_bomb),
    ("joined-values-bomb", joined_values_bomb),
    ("continuation-without-end", partial(endless_continuation, [("x-flood", "a" * 16000, True)], 4000)),
    ("continuation-empty-without-end", partial(endless_continuation, [], 200_000)),
    ("request-trailers", partial(request_trailers, [("x-some", "metadata")], NORMAL)),
    ("request-trailers-with-pseudo-header", partial(request_trailers, [(":path", UNARY_CALL)], MALFORMED)),
    ("second-headers-without-end", second_headers_without_end),
    ("padded-headers-with-priority", padded_headers_with_priority),
    ("deadline-while-the-request-is-unfinished", deadline_while_the_request_is_unfinished),
    ("deadline-in-a-running-stream", deadline_in_a_running_stream),
    ("metadata-echo-padded", partial(metadata_echo, padded_base64)),
    ("metadata-echo-unpadded", partial(metadata_echo, bare_base64)),
    ("metadata-echo-in-a-stream", metadata_echo_in_a_stream),
    ("error-text-special", partial(error_text, SPECIAL_TEXT)),
    ("error-text-percent", partial(error_text, "100% sure, %41 is not A, and 50%")),
    ("error-text-fits-the-peers-header-limit", error_text_fits_the_peers_header_limit),
    ("identity-names-the-driver", identity_names_the_driver),
    ("probe-is-answered", probe_is_answered),
    ("health-says-serving", health_says_serving),
]
