# SPDX-License-Identifier: Apache-2.0
"""Messages in their gRPC frames, compressed messages, and the ways in which DATA frames can carry them."""

import gzip
import struct
from functools import partial

from rawframes.expectations import NORMAL, expect_answer, expect_normal, expect_working, trailers_only
from rawframes.messages import (FULL_DUPLEX_CALL, LARGEST_MESSAGE, STREAMING_INPUT_CALL, UNARY_BODY,
                                UNARY_MESSAGE, framed, headers, input_request, output_request, read_fields,
                                response_payload_size, simple_request_of)
from rawframes.rawh2 import (DATA, END_STREAM, NO_ERROR, PADDED, PING, data_frames, expect, expect_true, frame,
                             header_frames)

BOMB_SIZE = LARGEST_MESSAGE + (8 << 20)


def zipped(message):
    return framed(gzip.compress(message), flag=1)


def damaged(octets, at):
    return octets[:at] + bytes([octets[at] ^ 0xff]) + octets[at + 1:]


ZIP = gzip.compress(UNARY_MESSAGE)

# name, grpc-encoding (None: not sent), body of a UnaryCall, outcome
ONE_BODY = [
    ("gzip", "gzip", zipped(UNARY_MESSAGE), NORMAL),
    ("gzip-announced-but-not-used", "gzip", UNARY_BODY, NORMAL),
    ("gzip-of-the-largest-message", "gzip", zipped(simple_request_of(LARGEST_MESSAGE)), NORMAL),
    ("gzip-of-one-byte-too-much", "gzip", zipped(simple_request_of(LARGEST_MESSAGE + 1)), trailers_only(8)),
    ("gzip-bomb", "gzip", zipped(bytes(BOMB_SIZE)), trailers_only(8)),
    ("gzip-that-is-none", "gzip", framed(UNARY_MESSAGE, flag=1), trailers_only(13)),
    ("gzip-with-wrong-checksum", "gzip", framed(damaged(ZIP, len(ZIP) - 8), flag=1), trailers_only(13)),
    ("gzip-cut-short", "gzip", framed(ZIP[:-9], flag=1), trailers_only(13)),
    ("gzip-of-nothing-at-all", "gzip", framed(b"", flag=1), trailers_only(13)),
    ("compressed-without-encoding", None, framed(ZIP, flag=1), trailers_only(13)),
    ("flag-2", None, framed(UNARY_MESSAGE, flag=2), trailers_only(13)),
    ("empty-data-for-unary", None, b"", trailers_only(13)),
    ("message-cut-short", None, UNARY_BODY[:-1], trailers_only(13)),
    ("prefix-cut-short", None, UNARY_BODY[:3], trailers_only(13)),
    ("two-messages-in-unary", None, UNARY_BODY * 2, trailers_only(13)),
    ("message-that-is-no-protobuf", None, framed(b"\xff\xff\xff"), trailers_only(13)),
]


def request_headers(encoding):
    return headers(add=[("grpc-encoding", encoding)] if encoding else [])


def one_body(encoding, body, expected, server):
    connection = server.connect()
    expect_answer(expected, connection.call(request_headers(encoding), body))
    expect_working(connection)


def unknown_encoding(server):
    answer = server.connect().call(request_headers("zzz"), framed(UNARY_MESSAGE, flag=1))
    expect(trailers_only(12), answer.outcome())
    offered = {name.strip() for name in (answer.header("grpc-accept-encoding") or "").split(",")}
    expect_true({"identity", "gzip"} <= offered, "grpc-accept-encoding with identity and gzip", offered)
    answer = server.connect().call(request_headers("identity"), framed(UNARY_MESSAGE))
    offered = answer.header("grpc-accept-encoding")
    expect_true(offered is None, "no grpc-accept-encoding where nobody needs it", offered)


def headers_end_the_request(server):
    connection = server.connect()
    expect(trailers_only(13), connection.answer(connection.open(headers(), end_stream=True)).outcome())
    expect_working(connection)


def length_over_the_limit(length, server):
    """The prefix alone is enough to refuse: no byte of the message is ever sent."""
    connection = server.connect()
    stream = connection.open(headers())
    connection.send(data_frames(stream, struct.pack(">BI", 0, length)))
    answer = connection.answer(stream)
    expect(trailers_only(8), answer.outcome())
    connection.read_until(lambda: answer.reset is not None)
    expect(NO_ERROR, answer.reset)
    expect_working(connection)


def length_over_the_limit_in_a_stream(server):
    """The second message of a client stream is held to the limit as well."""
    connection = server.connect()
    stream = connection.open(headers(STREAMING_INPUT_CALL))
    connection.send(data_frames(stream, framed(input_request(10)) + struct.pack(">BI", 0, LARGEST_MESSAGE + 1)))
    answer = connection.answer(stream)
    expect_true(answer.ended and answer.trailer("grpc-status") == "8", "grpc-status 8", answer.outcome())


def largest_message(server):
    connection = server.connect()
    stream = connection.open(headers())
    connection.send_body(stream, framed(simple_request_of(LARGEST_MESSAGE)), end_stream=True)
    expect_normal(connection.answer(stream))


def one_byte_per_frame(server):
    connection = server.connect()
    stream = connection.open(headers())
    connection.send(data_frames(stream, UNARY_BODY, end_stream=True, size=1))
    expect_normal(connection.answer(stream))


def empty_frames_between(server):
    connection = server.connect()
    stream = connection.open(headers())
    half = len(UNARY_BODY) // 2
    connection.send(data_frames(stream, b"") + data_frames(stream, UNARY_BODY[:half]) + data_frames(stream, b"")
                    + data_frames(stream, UNARY_BODY[half:]) + data_frames(stream, b"", end_stream=True))
    expect_normal(connection.answer(stream))


def padded_data(server):
    connection = server.connect()
    stream = connection.open(headers())
    half = len(UNARY_BODY) // 2
    for part, padding, flags in ((UNARY_BODY[:half], 255, PADDED), (UNARY_BODY[half:], 0, PADDED | END_STREAM)):
        connection.send(frame(DATA, flags, stream, bytes([padding]) + part + bytes(padding)))
    expect_normal(connection.answer(stream))


def two_calls_interleaved(server):
    """Bytes of two messages take turns, and each call gets its own answer."""
    connection = server.connect()
    first, second = connection.open(headers()), connection.open(headers())
    for at in range(len(UNARY_BODY)):
        last = at == len(UNARY_BODY) - 1
        for stream in (first, second):
            connection.send(data_frames(stream, UNARY_BODY[at:at + 1], end_stream=last))
    expect_normal(connection.answer(first))
    expect_normal(connection.answer(second))


def messages_across_frames(server):
    """Frame boundaries mean nothing in a stream either: five messages in pieces of seven bytes."""
    connection = server.connect()
    stream = connection.open(headers(STREAMING_INPUT_CALL))
    connection.send(data_frames(stream, framed(input_request(100)) * 5, end_stream=True, size=7))
    answer = connection.answer(stream)
    expect(NORMAL, answer.outcome())
    expect({1: 500}, read_fields(answer.messages()[0][1]))


def ping_pong(server):
    """Each message of a bidirectional stream is answered before the next is sent."""
    connection = server.connect()
    stream = connection.open(headers(FULL_DUPLEX_CALL))
    answer = connection.answers[stream]
    for count, size in enumerate((31415, 9, 2653, 58979), start=1):
        connection.send_body(stream, framed(output_request([size], body_size=100)))
        connection.read_until(lambda: len(answer.messages()) == count or answer.is_over())
        expect(size, response_payload_size(answer.messages()[-1][1]))
    connection.send(data_frames(stream, b"", end_stream=True))
    expect("4 messages and grpc-status 0", connection.answer(stream).outcome())


def empty_stream(server):
    connection = server.connect()
    answer = connection.answer(connection.open(headers(FULL_DUPLEX_CALL), end_stream=True))
    expect_true(answer.ended and answer.trailer("grpc-status") == "0" and not answer.data, "no message and status 0",
                answer.outcome())


def unknown_frame_type(server):
    connection = server.connect()
    stream = connection.new_stream()
    connection.send(frame(0xfa, 0xff, 0, b"what is this") + header_frames(stream, connection.encode(headers()))
                    + frame(0xfa, 0xff, stream, b"and this") + data_frames(stream, UNARY_BODY, end_stream=True))
    expect_normal(connection.answer(stream))


def early_answer(server):
    """An answer that comes before the request has ended tells the client to stop sending, without an error."""
    connection = server.connect()
    stream = connection.open(headers("/grpc.testing.TestService/NoSuchCall"))
    answer = connection.answer(stream)
    expect(trailers_only(12), answer.outcome())
    connection.read_until(lambda: answer.reset is not None)
    expect(NO_ERROR, answer.reset)
    connection.send(data_frames(stream, UNARY_BODY, end_stream=True))
    expect_working(connection)


def long_request_of_another_kind(server):
    """What is not gRPC gets its HTTP status whether the server waits for the end of the request or not."""
    connection = server.connect()
    stream = connection.open(headers(replace={"content-type": "text/plain"}))
    connection.send_body(stream, bytes(2 << 20), end_stream=True)
    expect("HTTP 415", connection.answer(stream).outcome())
    expect_working(connection)


def ping_between_data(server):
    """A PING in the middle of a message is answered at once, with its own payload."""
    connection = server.connect()
    stream = connection.open(headers())
    connection.send(data_frames(stream, UNARY_BODY[:7]) + frame(PING, payload=b"midway!!"))
    connection.read_until(lambda: connection.ping_acks)
    expect([b"midway!!"], connection.ping_acks)
    connection.send(data_frames(stream, UNARY_BODY[7:], end_stream=True))
    expect_normal(connection.answer(stream))


CASES = [(name, partial(one_body, encoding, body, expected)) for name, encoding, body, expected in ONE_BODY] + [
    ("compressed-with-unknown-encoding", unknown_encoding),
    ("headers-end-the-request", headers_end_the_request),
    ("length-one-byte-over-the-limit", partial(length_over_the_limit, LARGEST_MESSAGE + 1)),
    ("length-2g", partial(length_over_the_limit, 2 << 30)),
    ("length-4g", partial(length_over_the_limit, (4 << 30) - 1)),
    ("length-over-the-limit-in-a-stream", length_over_the_limit_in_a_stream),
    ("largest-message", largest_message),
    ("one-byte-per-frame", one_byte_per_frame),
    ("empty-frames-between", empty_frames_between),
    ("padded-data", padded_data),
    ("two-calls-interleaved", two_calls_interleaved),
    ("messages-across-frames", messages_across_frames),
    ("ping-pong", ping_pong),
    ("empty-stream", empty_stream),
    ("unknown-frame-type", unknown_frame_type),
    ("early-answer", early_answer),
    ("long-request-of-another-kind", long_request_of_another_kind),
    ("ping-between-data", ping_between_data),
]
