# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 by hand: frames go out exactly as a case makes them, and what comes back is kept per stream.

Nothing here stops a case from breaking the protocol. What the server sends is held to it, though: its flow control,
the shape of its answers and their gRPC headers are checked for every answer of every case.
"""

import select
import socket
import struct
import time
from typing import NamedTuple

import hpack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
KIND_NAMES = ("DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY WINDOW_UPDATE CONTINUATION").split()

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR = 0, 1, 3, 6
REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 7, 8, 9, 11

MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE = 3, 4, 6

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_SIZE = 16384
FIRST_WINDOW = 65535
LARGEST_WINDOW = 2**31 - 1
LARGEST_STREAM = 2**31 - 1


class Unexpected(Exception):
    """The server did something else than the case expects."""

    def __init__(self, expected, got):
        super().__init__(f"expected {expected}, got {got}")


class Closed(Exception):
    """The server closed the connection."""


def expect(expected, got):
    if got != expected:
        raise Unexpected(expected, got)


def expect_one_of(right, got):
    if got not in right:
        raise Unexpected(" or ".join(str(one) for one in right), got)


def expect_true(holds, expected, got):
    if not holds:
        raise Unexpected(expected, got)


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes

    def __str__(self):
        name = KIND_NAMES[self.kind] if self.kind < len(KIND_NAMES) else f"frame type {self.kind}"
        if self.kind in (RST_STREAM, GOAWAY):
            name += f"({struct.unpack_from('>I', self.payload, 4 if self.kind == GOAWAY else 0)[0]})"
        elif self.kind in (SETTINGS, PING) and self.flags & ACK:
            name += "+ACK"
        elif self.kind in (DATA, HEADERS) and self.flags & END_STREAM:
            name += "+ES"
        return name


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings_frame(settings):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *pair) for pair in settings.items()))


def window_update(stream, size):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


def rst_stream(stream, code):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def header_frames(stream, block, end_stream=False):
    """A header block of any size as HEADERS and as many CONTINUATIONs as it takes."""
    pieces = [block[at:at + FRAME_SIZE] for at in range(0, len(block), FRAME_SIZE)] or [b""]
    out = b""
    for index, piece in enumerate(pieces):
        flags = END_HEADERS if index == len(pieces) - 1 else 0
        if index == 0 and end_stream:
            flags |= END_STREAM
        out += frame(HEADERS if index == 0 else CONTINUATION, flags, stream, piece)
    return out


def data_frames(stream, body, end_stream=False, size=FRAME_SIZE):
    """A body in DATA frames of `size` bytes; an empty body is one empty frame."""
    pieces = [body[at:at + size] for at in range(0, len(body), size)] or [b""]
    last = len(pieces) - 1
    return b"".join(frame(DATA, END_STREAM if end_stream and index == last else 0, stream, piece)
                    for index, piece in enumerate(pieces))


class Answer:
    """What came back on one stream."""

    def __init__(self):
        self.blocks = []  # of headers, each a list of (name, value)
        self.data = bytearray()
        self.ended = False
        self.reset = None  # the code of RST_STREAM
        self.goaway = None  # the code of a GOAWAY with which the connection ended before the answer did
        self.closed = False  # likewise, the connection is gone

    def add_headers(self, headers, end_stream):
        self.expect_open("HEADERS")
        for name, _ in headers:
            expect_true(name == name.lower(), "lower-case header names", name)
        if self.blocks:
            expect_true(end_stream, "trailers with END_STREAM", "HEADERS without it")
        self.blocks.append(headers)
        if end_stream:
            self.end()

    def add_data(self, payload, end_stream):
        self.expect_open("DATA")
        expect_true(self.blocks, "HEADERS before DATA", "DATA first")
        self.data += payload
        if end_stream:
            self.end()

    def add_reset(self, code):
        expect_true(self.reset is None, "one RST_STREAM at most", "a second one")
        if self.ended:
            expect_true(code == NO_ERROR, "only RST_STREAM(0) after END_STREAM", f"RST_STREAM({code})")
        self.reset = code

    def expect_open(self, name):
        expect_true(not self.ended and self.reset is None, "nothing after the end of the stream", name)

    def end(self):
        self.ended = True
        if self.http_status() == "200":
            self.expect_grpc()

    def expect_grpc(self):
        """What holds for each gRPC answer, whatever its status."""
        expect_true(len(self.values("grpc-status")) == 1, "one grpc-status", self.values("grpc-status"))
        expect_true(self.trailer("grpc-status") is not None, "grpc-status in the last HEADERS", "it in the first")
        expect("application/grpc", self.header("content-type"))
        expect_true(not any(name.startswith(":") for block in self.blocks[1:] for name, _ in block),
                    "no pseudo headers in trailers", self.blocks[-1])
        self.messages()

    def values(self, name):
        return [value for block in self.blocks for key, value in block if key == name]

    def header(self, name):
        return dict(self.blocks[0]).get(name) if self.blocks else None

    def trailer(self, name):
        return dict(self.blocks[-1]).get(name) if self.blocks else None

    def http_status(self):
        return self.header(":status")

    def messages(self):
        """The whole messages that have arrived, as (flag, bytes); once the stream has ended no rest may remain."""
        found, at = [], 0
        while at + 5 <= len(self.data):
            flag, size = struct.unpack_from(">BI", self.data, at)
            if at + 5 + size > len(self.data):
                break
            found.append((flag, bytes(self.data[at + 5:at + 5 + size])))
            at += 5 + size
        expect_true(not self.ended or at == len(self.data), "whole messages", f"{len(self.data) - at} bytes more")
        return found

    def is_over(self):
        return self.ended or self.reset is not None

    def outcome(self):
        """One line of text, the thing that cases compare."""
        if not self.is_over():
            return self.connection_outcome()
        if not self.ended:
            return ("HEADERS and then " if self.blocks else "") + f"RST_STREAM({self.reset})"
        if self.http_status() != "200":
            return f"HTTP {self.http_status()}"
        if len(self.blocks) == 1:
            return f"trailers-only grpc-status {self.trailer('grpc-status')}"
        count = len(self.messages())
        return f"{count} message{'' if count == 1 else 's'} and grpc-status {self.trailer('grpc-status')}"

    def connection_outcome(self):
        if self.goaway is not None:
            return f"GOAWAY({self.goaway}) and the connection closed"
        return "the connection closed" if self.closed else "nothing more"


class Goaway(NamedTuple):
    last_stream: int
    code: int
    text: bytes


class Connection:
    """A client's side of one connection.

    `gives_window` returns the window of every DATA frame as it arrives, as an ordinary client does. PINGs and SETTINGS
    of the server are acknowledged.
    """

    def __init__(self, family, address, settings=None, gives_window=True):
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.connect(address)
        self.socket.setblocking(False)
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder(max_header_list_size=1 << 20)
        self.received = bytearray()
        self.unfinished_block = None  # (frame, bytes) of a header block that goes on in CONTINUATION
        self.log = []
        self.closed = False
        self.deaf = False  # the server takes no more bytes

        self.settings = dict(settings or {})
        self.server_settings = {}
        self.settings_acks = 0
        self.ping_acks = []
        self.goaways = []
        self.answers = {}
        self.next_stream = 1

        self.gives_window = gives_window
        self.send_window = FIRST_WINDOW
        self.stream_send_windows = {}
        self.receive_window = FIRST_WINDOW
        self.stream_receive_windows = {}

    # Sending

    def greet(self):
        """The preface, and the server's SETTINGS in return."""
        self.send(PREFACE + settings_frame(self.settings))
        self.read_until(lambda: self.server_settings)

    def send(self, octets):
        """Sends all, and takes in what arrives meanwhile, so that a flood never makes both sides wait."""
        left = memoryview(octets)
        while left and not self.deaf:
            readable, writable, _ = select.select([] if self.closed else [self.socket], [self.socket], [])
            if readable:
                self.take_in()
            if writable:
                left = left[self.push(left):]

    def push(self, octets):
        try:
            return self.socket.send(octets[:65536])
        except BlockingIOError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            self.deaf = True
            return 0

    def send_without_reading(self, octets, patience):
        """Sends until all is gone or the server has taken nothing for `patience` seconds."""
        left = memoryview(octets)
        while left and not self.deaf:
            if not select.select([], [self.socket], [], patience)[1]:
                break
            left = left[self.push(left):]

    def encode(self, headers):
        return self.encoder.encode(headers, huffman=False)

    def new_stream(self):
        """The next free stream, with an answer to wait for."""
        stream = self.next_stream
        self.next_stream += 2
        self.expect_answer(stream)
        return stream

    def expect_answer(self, stream):
        self.answers[stream] = Answer()
        self.stream_send_windows[stream] = self.server_settings.get(INITIAL_WINDOW_SIZE, FIRST_WINDOW)
        self.stream_receive_windows[stream] = self.settings.get(INITIAL_WINDOW_SIZE, FIRST_WINDOW)

    def open(self, headers, end_stream=False):
        stream = self.new_stream()
        self.send(header_frames(stream, self.encode(headers), end_stream))
        return stream

    def call(self, headers, body):
        """A whole request, and its answer."""
        stream = self.new_stream()
        self.send_request(stream, headers, body)
        return self.answer(stream)

    def send_request(self, stream, headers, body):
        """In one write that waits for no window, so for small bodies."""
        self.send_window -= len(body)
        self.send(header_frames(stream, self.encode(headers)) + data_frames(stream, body, end_stream=True))

    def send_what_fits(self, stream, body, end_stream=False):
        """Sends as much as the server's windows have room for; returns how much that was."""
        size = max(0, min(len(body), self.send_window, self.stream_send_windows[stream]))
        self.send_window -= size
        self.stream_send_windows[stream] -= size
        if size or not body:
            self.send(data_frames(stream, body[:size], end_stream and size == len(body)))
        return size

    def send_body(self, stream, body, end_stream=False):
        """Sends all, waiting for window; stops where the server ends the stream before."""
        left = memoryview(body)
        while not self.answers[stream].is_over():
            left = left[self.send_what_fits(stream, left, end_stream):]
            if not left:
                return
            self.read_frame()

    def change_settings(self, settings):
        grown = settings.get(INITIAL_WINDOW_SIZE)
        if grown is not None:
            by = grown - self.settings.get(INITIAL_WINDOW_SIZE, FIRST_WINDOW)
            for stream in self.stream_receive_windows:
                self.stream_receive_windows[stream] += by
        self.settings.update(settings)
        self.send(settings_frame(settings))

    def give_window(self, stream, size):
        if stream == 0:
            self.receive_window += size
        else:
            self.stream_receive_windows[stream] += size
        self.send(window_update(stream, size))

    # Receiving

    def take_in(self):
        try:
            octets = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionResetError:
            octets = b""
        self.closed = self.closed or not octets
        self.received += octets

    def next_raw_frame(self, patience=None):
        """None when `patience` seconds passed without a whole frame; Closed when there will be no more."""
        give_up = None if patience is None else time.monotonic() + patience
        while True:
            size = int.from_bytes(self.received[:3], "big") + 9
            if len(self.received) >= max(size, 9):
                break
            if self.closed:
                raise Closed
            wait = None if give_up is None else max(0, give_up - time.monotonic())
            if not select.select([self.socket], [], [], wait)[0]:
                return None
            self.take_in()
        kind, flags, stream = struct.unpack_from(">BBI", self.received, 3)
        got = Frame(kind, flags, stream & LARGEST_STREAM, bytes(self.received[9:size]))
        del self.received[:size]
        return got

    def read_frame(self, patience=None):
        got = self.next_raw_frame(patience)
        if got is not None:
            self.log.append(str(got))
            self.handle(got)
        return got

    def read_until(self, condition):
        while not condition():
            self.read_frame()

    def read_for(self, seconds):
        """Reads whatever arrives in that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read_frame(left)

    def handle(self, got):
        expect_true(len(got.payload) <= FRAME_SIZE, f"frames of at most {FRAME_SIZE} bytes", len(got.payload))
        handlers = {DATA: self.handle_data, HEADERS: self.handle_block, CONTINUATION: self.handle_block,
                    RST_STREAM: self.handle_reset, SETTINGS: self.handle_settings, PING: self.handle_ping,
                    GOAWAY: self.handle_goaway, WINDOW_UPDATE: self.handle_window_update}
        expect_true(got.kind in handlers, "a frame that a server may send", got)
        handlers[got.kind](got)

    def answer_of(self, got):
        expect_true(got.stream in self.answers, "frames on streams that are open", f"{got} on {got.stream}")
        return self.answers[got.stream]

    def handle_data(self, got):
        answer = self.answer_of(got)
        size = len(got.payload)
        self.receive_window -= size
        self.stream_receive_windows[got.stream] -= size
        expect_true(self.receive_window >= 0, "DATA within the connection's window", got)
        expect_true(self.stream_receive_windows[got.stream] >= 0, "DATA within the stream's window", got)
        padding = got.payload[0] + 1 if got.flags & PADDED else 0
        end_stream = bool(got.flags & END_STREAM)
        answer.add_data(got.payload[1:size - padding + 1] if padding else got.payload, end_stream)
        if self.gives_window and size:
            self.give_window(0, size)
            if not end_stream:
                self.give_window(got.stream, size)

    def handle_block(self, got):
        if got.kind == HEADERS:
            self.unfinished_block = (got, got.payload)
        else:
            first, block = self.unfinished_block
            self.unfinished_block = (first, block + got.payload)
        if got.flags & END_HEADERS:
            first, block = self.unfinished_block
            self.unfinished_block = None
            self.answer_of(first).add_headers(self.decoder.decode(block), bool(first.flags & END_STREAM))

    def handle_reset(self, got):
        self.answer_of(got).add_reset(struct.unpack(">I", got.payload)[0])

    def handle_settings(self, got):
        if got.flags & ACK:
            self.settings_acks += 1
            return
        before = self.server_settings.get(INITIAL_WINDOW_SIZE, FIRST_WINDOW)
        self.server_settings.update(struct.iter_unpack(">HI", got.payload))
        grown = self.server_settings.get(INITIAL_WINDOW_SIZE, FIRST_WINDOW) - before
        for stream in self.stream_send_windows:
            self.stream_send_windows[stream] += grown
        self.send(frame(SETTINGS, ACK))

    def handle_ping(self, got):
        if got.flags & ACK:
            self.ping_acks.append(got.payload)
        else:
            self.send(frame(PING, ACK, 0, got.payload))

    def handle_goaway(self, got):
        last, code = struct.unpack_from(">II", got.payload)
        self.goaways.append(Goaway(last, code, got.payload[8:]))

    def handle_window_update(self, got):
        size = struct.unpack(">I", got.payload)[0]
        if got.stream == 0:
            self.send_window += size
        else:
            self.answer_of(got)
            self.stream_send_windows[got.stream] += size

    # What became of it

    def answer(self, stream):
        """Reads until the stream is over or the connection closed."""
        answer = self.answers[stream]
        try:
            self.read_until(answer.is_over)
        except Closed:
            answer.closed = True
            answer.goaway = self.goaways[-1].code if self.goaways else None
        return answer

    def end(self):
        """Reads until the server closes the connection, and tells how it did."""
        try:
            self.read_until(lambda: False)
        except Closed:
            if self.goaways:
                return f"GOAWAY({self.goaways[-1].code}) and closed"
            return "closed without GOAWAY"

    def ping(self, payload=b"rawframe"):
        """A round trip: all that the server had to say before it has arrived."""
        count = len(self.ping_acks)
        self.send(frame(PING, payload=payload))
        self.read_until(lambda: len(self.ping_acks) > count)

    def summary(self):
        """The last frames, for the report of a failure."""
        return " ".join(self.log[-8:]) or "no frame"

    def close(self):
        self.socket.close()
