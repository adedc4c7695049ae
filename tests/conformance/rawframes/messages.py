# SPDX-License-Identifier: Apache-2.0
"""The requests that cases send: header lists, gRPC frames, and grpc.testing's messages written field by field."""

import struct

SERVICE = "/grpc.testing.TestService/"
EMPTY_CALL = SERVICE + "EmptyCall"
UNARY_CALL = SERVICE + "UnaryCall"
STREAMING_OUTPUT_CALL = SERVICE + "StreamingOutputCall"
STREAMING_INPUT_CALL = SERVICE + "StreamingInputCall"
FULL_DUPLEX_CALL = SERVICE + "FullDuplexCall"

LARGEST_MESSAGE = 4 << 20

ECHO_INITIAL = "x-grpc-test-echo-initial"
ECHO_TRAILING = "x-grpc-test-echo-trailing-bin"


def headers(path=UNARY_CALL, replace=None, remove=(), add=()):
    """The header list of an ordinary client, with the changes that a case wants."""
    plain = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
             ("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", "rawframes")]
    replace = replace or {}
    return [(name, replace.get(name, value)) for name, value in plain if name not in remove] + list(add)


def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A bytes value is length-delimited, an integer a varint."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(octets, at):
    number, shift = 0, 0
    while True:
        byte = octets[at]
        at += 1
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def read_fields(octets):
    """{field number: last value}, for messages of varints and length-delimited fields."""
    fields, at = {}, 0
    while at < len(octets):
        key, at = read_varint(octets, at)
        value, at = read_varint(octets, at)
        if key & 7 == 2:
            value, at = octets[at:at + value], at + value
        fields[key >> 3] = value
    return fields


def framed(message, flag=0):
    """A message in its gRPC frame."""
    return struct.pack(">BI", flag, len(message)) + message


def payload(size):
    return field(2, bytes(size))


def status(code, text):
    return field(7, field(1, code) + field(2, text.encode()))


def simple_request(response_size, body_size=0):
    return field(2, response_size) + field(3, payload(body_size))


def simple_request_of(size):
    """A SimpleRequest that is `size` bytes long when encoded, for sizes between 2 and 256 MiB."""
    body = size - 16
    return simple_request(RESPONSE_SIZE, body + size - len(simple_request(RESPONSE_SIZE, body)))


def output_request(sizes, interval_us=0, body_size=0):
    parameters = b"".join(field(2, field(1, size) + field(2, interval_us)) for size in sizes)
    return parameters + field(3, payload(body_size))


def input_request(size):
    return field(1, payload(size))


def response_payload_size(message):
    """Of SimpleResponse and StreamingOutputCallResponse: how large is payload.body?"""
    return len(read_fields(read_fields(message).get(1, b"")).get(2, b""))


RESPONSE_SIZE = 31
UNARY_MESSAGE = simple_request(RESPONSE_SIZE, body_size=10)
UNARY_BODY = framed(UNARY_MESSAGE)
