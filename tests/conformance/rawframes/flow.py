# SPDX-License-Identifier: Apache-2.0
"""Flow control both ways: nothing hangs, no window leaks, and a peer that does not read costs bounded memory."""

import time
from functools import partial

from rawframes.expectations import NORMAL, expect_growth_below, expect_normal, expect_working, trailers_only
from rawframes.messages import (FULL_DUPLEX_CALL, RESPONSE_SIZE, STREAMING_INPUT_CALL, STREAMING_OUTPUT_CALL,
                                UNARY_BODY, framed, headers, input_request, output_request, read_fields,
                                response_payload_size, simple_request)
from rawframes.rawh2 import (CANCEL, FIRST_WINDOW, INITIAL_WINDOW_SIZE, LARGEST_WINDOW, data_frames, expect,
                             expect_true, rst_stream)

MIB = 1 << 20


def large_requests_one_after_another(server):
    """More bytes than any window of the server, through one connection."""
    connection = server.connect()
    for _ in range(12):
        stream = connection.open(headers())
        connection.send_body(stream, framed(simple_request(RESPONSE_SIZE, MIB)), end_stream=True)
        expect_normal(connection.answer(stream))


def large_answers_one_after_another(server):
    connection = server.connect()
    for _ in range(8):
        answer = connection.call(headers(), framed(simple_request(MIB)))
        expect(NORMAL, answer.outcome())
        expect(MIB, response_payload_size(answer.messages()[0][1]))


def client_stream_of_8_mib(server):
    connection = server.connect()
    stream = connection.open(headers(STREAMING_INPUT_CALL))
    for _ in range(64):
        connection.send_body(stream, framed(input_request(128 << 10)))
    connection.send(data_frames(stream, b"", end_stream=True))
    answer = connection.answer(stream)
    expect(NORMAL, answer.outcome())
    expect({1: 8 * MIB}, read_fields(answer.messages()[0][1]))


def resets_in_the_middle_of_requests(server):
    """Half a message and then RST_STREAM, 12 MiB in all: the bytes go back to the connection's window."""
    connection = server.connect()
    message = framed(simple_request(RESPONSE_SIZE, MIB))
    for _ in range(48):
        stream = connection.open(headers())
        connection.send_body(stream, message[:256 << 10])
        connection.send(rst_stream(stream, CANCEL))
    large_request(connection)


def bodies_after_early_answers(server):
    """DATA of calls that are answered already is dropped, 12 MiB in all, and given back as well."""
    connection = server.connect()
    part = bytes(32 << 10)
    for _ in range(384):
        stream = connection.open(headers("/grpc.testing.TestService/NoSuchCall"))
        expect(trailers_only(12), connection.answer(stream).outcome())
        while connection.send_window < len(part):
            connection.read_frame()
        connection.send_window -= len(part)
        connection.send(data_frames(stream, part))
    large_request(connection)


def large_request(connection):
    stream = connection.open(headers())
    connection.send_body(stream, framed(simple_request(RESPONSE_SIZE, 2 * MIB)), end_stream=True)
    expect_normal(connection.answer(stream))


def window_of_one_byte_at_a_time(server):
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: 0}, gives_window=False)
    stream = connection.open(headers())
    connection.send_body(stream, UNARY_BODY, end_stream=True)
    answer = connection.answers[stream]
    connection.read_until(lambda: answer.blocks)
    while not answer.is_over():
        had = len(answer.data)
        connection.give_window(stream, 1)
        connection.read_until(lambda: len(answer.data) == had + 1 or answer.is_over())
    expect_normal(answer)


def window_opened_by_settings(server):
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: 0}, gives_window=False)
    stream = connection.open(headers())
    connection.send_body(stream, UNARY_BODY, end_stream=True)
    connection.read_until(lambda: connection.answers[stream].blocks)
    connection.read_for(0.1)
    expect(0, len(connection.answers[stream].data))
    connection.change_settings({INITIAL_WINDOW_SIZE: FIRST_WINDOW})
    expect_normal(connection.answer(stream))


def connections_window_runs_out(server):
    """With stream windows wide open the server stops at the connection's window, and goes on when that grows."""
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: LARGEST_WINDOW}, gives_window=False)
    stream = connection.open(headers())
    connection.send_body(stream, framed(simple_request(MIB)), end_stream=True)
    answer = connection.answers[stream]
    connection.read_until(lambda: len(answer.data) == FIRST_WINDOW)
    connection.read_for(0.1)
    expect(FIRST_WINDOW, len(answer.data))
    connection.give_window(0, 2 * MIB)
    expect(NORMAL, connection.answer(stream).outcome())
    expect(MIB, response_payload_size(answer.messages()[0][1]))


def one_stuck_stream_does_not_stop_others(server):
    """A stream without window waits alone."""
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: 0}, gives_window=False)
    connection.give_window(0, 2 * MIB)
    stuck = connection.open(headers())
    connection.send_body(stuck, framed(simple_request(MIB)), end_stream=True)
    for _ in range(3):
        stream = connection.open(headers())
        connection.send_body(stream, UNARY_BODY, end_stream=True)
        connection.give_window(stream, 1000)
        expect_normal(connection.answer(stream))
    connection.give_window(stuck, 2 * MIB)
    expect(NORMAL, connection.answer(stuck).outcome())


def reader_that_pauses(server):
    """All windows are open but the socket is not read: the server must not keep 64 MiB for it."""
    before = server.rss_at_rest_mib()
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: LARGEST_WINDOW})
    connection.give_window(0, LARGEST_WINDOW - FIRST_WINDOW)
    stream = connection.open(headers(STREAMING_OUTPUT_CALL))
    connection.send_body(stream, framed(output_request([MIB] * 64)), end_stream=True)
    time.sleep(0.7)
    expect_growth_below(24, server, before)
    expect("64 messages and grpc-status 0", connection.answer(stream).outcome())


def streams_without_window(server):
    """16 streams of 8 MiB each that may not send: each handler waits, with a few messages in hand."""
    before = server.rss_at_rest_mib()
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: 0})
    for _ in range(16):
        stream = connection.open(headers(STREAMING_OUTPUT_CALL))
        connection.send_body(stream, framed(output_request([256 << 10] * 32)), end_stream=True)
    connection.read_for(0.5)
    expect_growth_below(32, server, before)


def requests_while_answers_are_stuck(server):
    """A client that sends and never takes answers is stopped by the server's windows, before 16 MiB of 32."""
    connection = server.connect(settings={INITIAL_WINDOW_SIZE: 0}, gives_window=False)
    stream = connection.open(headers(FULL_DUPLEX_CALL))
    message = framed(output_request([16_000], body_size=64 << 10))
    body = memoryview(message * 512)
    sent = 0
    while sent < len(body):
        size = connection.send_what_fits(stream, body[sent:])
        sent += size
        if not size and connection.read_frame(0.3) is None:
            break
    expect_true(sent < 16 * MIB, "a stop before 16 MiB", f"{sent / MIB:.1f} MiB taken")
    let_answers_flow(connection, stream, sent, message)


def let_answers_flow(connection, stream, sent, message):
    """Once the client reads, all that was sent is answered; the message under way is finished first."""
    connection.gives_window = True
    connection.give_window(0, MIB)
    connection.give_window(stream, MIB)
    rest = -sent % len(message)
    connection.send_body(stream, message[len(message) - rest:], end_stream=True)
    count = (sent + rest) // len(message)
    expect(f"{count} messages and grpc-status 0", connection.answer(stream).outcome())


def reset_in_a_server_stream(server):
    """After the client's RST_STREAM nothing more comes on that stream, and the connection serves on."""
    connection = server.connect()
    stream = connection.open(headers(STREAMING_OUTPUT_CALL))
    connection.send_body(stream, framed(output_request([10_000] * 1000, interval_us=1000)), end_stream=True)
    answer = connection.answers[stream]
    connection.read_until(lambda: len(answer.messages()) >= 2)
    connection.send(rst_stream(stream, CANCEL))
    connection.ping()
    had = len(answer.data)
    connection.read_for(0.1)
    expect(had, len(answer.data))
    expect_working(connection)


def running_streams(connection, count):
    """So many bidirectional calls, each with a handler that is known to run and waits for more."""
    streams = [connection.open(headers(FULL_DUPLEX_CALL)) for _ in range(count)]
    for stream in streams:
        connection.send_body(stream, framed(output_request([RESPONSE_SIZE])))
    for stream in streams:
        connection.read_until(connection.answers[stream].messages)
    return streams


def resets_free_their_handlers(server):
    """640 handlers that wait for a message, 32 at a time, all cancelled by RST_STREAM."""
    connection = server.connect()
    for _ in range(20):
        for stream in running_streams(connection, 32):
            connection.send(rst_stream(stream, CANCEL))
    expect_working(connection)


def lost_connections_free_their_handlers(server):
    """The same, cancelled by closing the connection."""
    for _ in range(20):
        connection = server.connect()
        running_streams(connection, 32)
        connection.close()
    expect_working(server.connect())


def lost_while_answers_are_stuck(resets, server):
    """Handlers blocked in sending are cancelled too, by RST_STREAM or by the loss of the connection."""
    for _ in range(5):
        connection = server.connect(settings={INITIAL_WINDOW_SIZE: 0})
        for _ in range(16):
            stream = connection.open(headers(STREAMING_OUTPUT_CALL))
            connection.send_body(stream, framed(output_request([MIB] * 4)), end_stream=True)
            connection.read_until(lambda: connection.answers[stream].blocks)
            if resets:
                connection.send(rst_stream(stream, CANCEL))
        connection.close()
    expect_working(server.connect())


CASES = [
    ("large-requests-one-after-another", large_requests_one_after_another),
    ("large-answers-one-after-another", large_answers_one_after_another),
    ("client-stream-of-8-mib", client_stream_of_8_mib),
    ("resets-in-the-middle-of-requests", resets_in_the_middle_of_requests),
    ("bodies-after-early-answers", bodies_after_early_answers),
    ("window-of-one-byte-at-a-time", window_of_one_byte_at_a_time),
    ("window-opened-by-settings", window_opened_by_settings),
    ("connections-window-runs-out", connections_window_runs_out),
    ("one-stuck-stream-does-not-stop-others", one_stuck_stream_does_not_stop_others),
    ("reader-that-pauses", reader_that_pauses),
    ("streams-without-window", streams_without_window),
    ("requests-while-answers-are-stuck", requests_while_answers_are_stuck),
    ("reset-in-a-server-stream", reset_in_a_server_stream),
    ("resets-free-their-handlers", resets_free_their_handlers),
    ("lost-connections-free-their-handlers", lost_connections_free_their_handlers),
    ("resets-while-answers-are-stuck", partial(lost_while_answers_are_stuck, True)),
    ("connections-lost-while-answers-are-stuck", partial(lost_while_answers_are_stuck, False)),
]
