# SPDX-License-Identifier: Apache-2.0
"""The connection itself: prefaces, PING and SETTINGS, broken frames, limits on streams, and floods of all kinds."""

import socket
import struct
import time
from functools import partial

from rawframes.expectations import (CONNECTION_PROTOCOL_ERROR, MALFORMED, NORMAL, expect_bounded,
                                    expect_growth_below, expect_normal, expect_working)
from rawframes.messages import EMPTY_CALL, UNARY_BODY, framed, headers
from rawframes.rawh2 import (CANCEL, COMPRESSION_ERROR, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM,
                             FLOW_CONTROL_ERROR, FRAME_SIZE, FRAME_SIZE_ERROR, HEADERS, INITIAL_WINDOW_SIZE,
                             LARGEST_WINDOW, MAX_CONCURRENT_STREAMS, PING, PREFACE, PRIORITY, REFUSED_STREAM, Closed,
                             data_frames, expect, expect_one_of, expect_true, frame, header_frames, rst_stream,
                             settings_frame, window_update)
from rawframes.server import PREFACE_TIMEOUT_MS

# Prefaces

PREFACE_SECONDS = PREFACE_TIMEOUT_MS / 1000


def seconds_until_closed(server, octets):
    """Sends only these bytes: an acknowledgement of the server's SETTINGS would go on with the preface."""
    connection = server.connect_silently()
    started = time.monotonic()
    connection.send(octets)
    try:
        while True:
            connection.next_raw_frame()
    except Closed:
        return time.monotonic() - started


def wrong_preface(octets, server):
    """Closed at once, and not only when the time for the preface is over."""
    took = seconds_until_closed(server, octets)
    expect_true(took < PREFACE_SECONDS * 0.6, "closed at once", f"closed after {took:.2f} s")


def unfinished_preface(octets, server):
    """Closed when the time for the preface is over."""
    took = seconds_until_closed(server, octets)
    expect_true(PREFACE_SECONDS * 0.8 < took < PREFACE_SECONDS + 1, f"closed after {PREFACE_SECONDS} s",
                f"closed after {took:.2f} s")


def preface_in_pieces(server):
    """Byte by byte, with a call behind it."""
    connection = server.connect_silently()
    for byte in PREFACE + settings_frame({}):
        connection.send(bytes([byte]))
    expect_working(connection)


def preface_and_call_in_one_write(server):
    """A client need not wait for the server's SETTINGS."""
    connection = server.connect_silently()
    stream = connection.new_stream()
    connection.send(PREFACE + settings_frame({}) + header_frames(stream, connection.encode(headers()))
                    + data_frames(stream, UNARY_BODY, end_stream=True))
    expect_normal(connection.answer(stream))


def idle_connection_stays(server):
    """The time for the preface says nothing about a connection that has sent it."""
    connection = server.connect()
    connection.read_for(PREFACE_SECONDS * 2)
    expect_working(connection)


def half_closed_client(server):
    """A client that shuts down its side behind its request is answered or taken for gone; the connection ends."""
    connection = server.connect()
    stream = connection.new_stream()
    connection.send_request(stream, headers(), UNARY_BODY)
    connection.socket.shutdown(socket.SHUT_WR)
    connection.answer(stream)
    connection.end()


def unary_over_tcp(server):
    expect_working(server.connect_tcp())


# PING and SETTINGS

def ping(server):
    connection = server.connect()
    connection.ping(b"\x00\x01\x02\x03\xfc\xfd\xfe\xff")
    expect([b"\x00\x01\x02\x03\xfc\xfd\xfe\xff"], connection.ping_acks)
    expect_working(connection)


def pings(count):
    return b"".join(frame(PING, payload=struct.pack(">Q", number)) for number in range(count))


def thousand_pings(server):
    connection = server.connect()
    connection.send(pings(1000))
    connection.read_until(lambda: len(connection.ping_acks) == 1000)
    expect_true(connection.ping_acks == [struct.pack(">Q", number) for number in range(1000)],
                "the 1,000 payloads in order", "others")
    expect_working(connection)


def ping_flood(server):
    """Each of 100,000 is acknowledged, or the server says too_many_pings and goes."""
    connection = server.connect()
    connection.send(pings(100_000))
    try:
        connection.read_until(lambda: len(connection.ping_acks) == 100_000)
    except Closed:
        expect([(ENHANCE_YOUR_CALM, b"too_many_pings")], [(one.code, one.text) for one in connection.goaways])
    else:
        expect_working(connection)


def ping_flood_that_never_reads(server):
    """A million PINGs from a client that does not read: the server stops taking them, goes, or drops what it would
    answer, but does not keep it; others are served meanwhile."""
    before = server.rss_at_rest_mib()
    connection = server.connect()
    connection.send_without_reading(frame(PING, payload=bytes(8)) * 1_000_000, patience=0.5)
    expect_growth_below(16, server, before)
    expect_working(server.connect())


def settings_flood(server):
    connection = server.connect()
    acks = connection.settings_acks
    connection.send(settings_frame({INITIAL_WINDOW_SIZE: 65535}) * 20_000)
    try:
        connection.read_until(lambda: connection.settings_acks >= acks + 20_000)
    except Closed:
        pass
    expect_bounded(connection)


# Floods on streams

def opened_and_reset(connection, count, body=None):
    """Frames of `count` calls that are opened (and given a whole request, if there is a body) and reset at once."""
    out = []
    block = connection.encode(headers(EMPTY_CALL))
    for _ in range(count):
        stream = connection.new_stream()
        data = data_frames(stream, body, end_stream=True) if body else b""
        out.append(frame(HEADERS, END_HEADERS, stream, block) + data + rst_stream(stream, CANCEL))
        if len(out) == 1:
            # From the second on every field is in the header table, and the block stays the same.
            block = connection.encode(headers(EMPTY_CALL))
    return b"".join(out)


def resets_survived(body, server):
    """Clients reset every call that they give up: 500 of them in a burst are nothing on a unix socket."""
    connection = server.connect()
    connection.send(opened_and_reset(connection, 500, body))
    expect_working(connection)


def reset_flood(connect, server):
    connection = connect(server)
    connection.send(opened_and_reset(connection, 100_000))
    expect_bounded(connection, needs_goaway=connect is not over_tcp)


def over_unix(server):
    return server.connect()


def over_tcp(server):
    return server.connect_tcp()


def empty_data_flood(server):
    connection = server.connect()
    stream = connection.open(headers())
    connection.send(frame(DATA, 0, stream) * 100_000)
    expect_bounded(connection)


def priority_flood(server):
    connection = server.connect()
    connection.send(b"".join(frame(PRIORITY, 0, 2 * number + 1, struct.pack(">IB", 0, 15)) for number in range(50_000)))
    expect_bounded(connection)


def window_update_flood(server):
    connection = server.connect()
    connection.send(window_update(0, 1) * 100_000)
    expect_bounded(connection)


def announced_limit(server):
    limit = server.connect().server_settings.get(MAX_CONCURRENT_STREAMS)
    expect_true(limit is not None and 100 <= limit <= 100_000, "a limit of at least 100 announced", limit)
    return limit


def streams_over_the_limit(server):
    """A client that cannot know the limit yet: one stream more is refused, so that it may retry; the others are not harmed."""
    limit = announced_limit(server)
    connection = server.connect_silently()
    streams = [connection.new_stream() for _ in range(limit + 1)]
    octets = b"".join(header_frames(stream, connection.encode(headers())) for stream in streams)
    connection.send_without_reading(PREFACE + settings_frame({}) + octets, patience=3)
    expect(f"RST_STREAM({REFUSED_STREAM})", connection.answer(streams[-1]).outcome())
    connection.send(data_frames(streams[0], UNARY_BODY, end_stream=True))
    expect_normal(connection.answer(streams[0]))


def streams_over_the_acknowledged_limit(server):
    """A client that has acknowledged the limit and breaks it is no client: nghttp2 ends the connection."""
    connection = server.connect()
    for _ in range(announced_limit(server)):
        connection.open(headers())
    connection.open(headers())
    expect(CONNECTION_PROTOCOL_ERROR, connection.end())


# Errors of the connection

def connection_error(octets_for, expected, server):
    """`octets_for(connection)` makes the bytes; a call is open meanwhile, as on any connection in use."""
    connection = server.connect()
    connection.open(headers())
    connection.send(octets_for(connection))
    expect(expected, connection.end())


def call_on(stream):
    """HEADERS of a call on a stream of that number."""
    def octets(connection):
        connection.expect_answer(stream)
        return header_frames(stream, connection.encode(headers()), end_stream=True)
    return octets


def call_on_a_lower_stream(connection):
    return call_on(7)(connection) + call_on(5)(connection)


def always(octets):
    return lambda connection: octets


def stream_window_overflow(server):
    """Too much window for one stream costs that stream, or the connection."""
    connection = server.connect()
    stream = connection.open(headers())
    connection.send(window_update(stream, LARGEST_WINDOW) * 2)
    expect_one_of((f"RST_STREAM({FLOW_CONTROL_ERROR})", f"GOAWAY({FLOW_CONTROL_ERROR}) and the connection closed"),
                  connection.answer(stream).outcome())


def priority_on_itself(server):
    """RFC 9113 gave priorities up: ignored, an error of the stream or of the connection, but never a hang."""
    connection = server.connect()
    stream = connection.next_stream
    connection.send(frame(PRIORITY, 0, stream, struct.pack(">IB", stream, 15)))
    answer = connection.call(headers(), UNARY_BODY)
    expect_one_of((NORMAL, MALFORMED, "GOAWAY(1) and the connection closed"), answer.outcome())


CONNECTION_ERRORS = [
    ("headers-on-stream-0", call_on(0), CONNECTION_PROTOCOL_ERROR),
    ("headers-on-an-even-stream", call_on(8), CONNECTION_PROTOCOL_ERROR),
    ("headers-on-a-lower-stream", call_on_a_lower_stream, CONNECTION_PROTOCOL_ERROR),
    ("data-on-stream-0", always(frame(DATA, 0, 0, b"lost")), CONNECTION_PROTOCOL_ERROR),
    ("data-on-an-idle-stream", always(frame(DATA, 0, 99, b"lost")), CONNECTION_PROTOCOL_ERROR),
    ("continuation-without-headers", always(frame(CONTINUATION, END_HEADERS, 1, b"\x82")), CONNECTION_PROTOCOL_ERROR),
    ("frame-inside-a-header-block", always(frame(HEADERS, 0, 3, b"\x82") + frame(PING, payload=bytes(8))),
     CONNECTION_PROTOCOL_ERROR),
    ("frame-too-large", always(frame(DATA, END_STREAM, 1, bytes(FRAME_SIZE + 1))),
     f"GOAWAY({FRAME_SIZE_ERROR}) and closed"),
    ("ping-of-seven-bytes", always(frame(PING, payload=bytes(7))), f"GOAWAY({FRAME_SIZE_ERROR}) and closed"),
    ("connection-window-overflow", always(window_update(0, LARGEST_WINDOW) * 2),
     f"GOAWAY({FLOW_CONTROL_ERROR}) and closed"),
    ("garbage-instead-of-hpack", always(frame(HEADERS, END_HEADERS, 3, b"\xff" * 20)), 
     f"GOAWAY({COMPRESSION_ERROR}) and closed"),
]

CASES = [
    ("wrong-preface-http1", partial(wrong_preface, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")),
    ("wrong-preface-garbage", partial(wrong_preface, bytes(range(256)))),
    ("preface-missing", partial(unfinished_preface, b"")),
    ("preface-unfinished", partial(unfinished_preface, PREFACE[:10])),
    ("preface-without-settings", partial(unfinished_preface, PREFACE)),
    ("preface-in-pieces", preface_in_pieces),
    ("preface-and-call-in-one-write", preface_and_call_in_one_write),
    ("idle-connection-stays", idle_connection_stays),
    ("half-closed-client", half_closed_client),
    ("unary-over-tcp", unary_over_tcp),
    ("ping", ping),
    ("ping-1000", thousand_pings),
    ("ping-100000", ping_flood),
    ("ping-flood-that-never-reads", ping_flood_that_never_reads),
    ("settings-20000", settings_flood),
    ("resets-500", partial(resets_survived, None)),
    ("resets-500-of-whole-requests", partial(resets_survived, framed(b""))),
    ("resets-100000", partial(reset_flood, over_unix)),
    ("resets-100000-over-tcp", partial(reset_flood, over_tcp)),
    ("empty-data-100000", empty_data_flood),
    ("priority-50000", priority_flood),
    ("window-update-100000", window_update_flood),
    ("streams-over-the-limit", streams_over_the_limit),
    ("streams-over-the-acknowledged-limit", streams_over_the_acknowledged_limit),
    ("stream-window-overflow", stream_window_overflow),
    ("priority-on-itself", priority_on_itself),
] + [(name, partial(connection_error, octets_for, expected)) for name, octets_for, expected in CONNECTION_ERRORS]
