# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: two GOAWAYs, running calls finish, then the process ends. Each case has a server of its own."""

from rawframes.expectations import expect_normal
from rawframes.messages import FULL_DUPLEX_CALL, RESPONSE_SIZE, UNARY_BODY, framed, headers, output_request
from rawframes.rawh2 import (LARGEST_STREAM, NO_ERROR, REFUSED_STREAM, data_frames, expect, expect_one_of, expect_true)

MESSAGE = framed(output_request([RESPONSE_SIZE]))


def running_call(server):
    """A connection with one bidirectional call in which one message has been answered."""
    connection = server.connect()
    stream = connection.open(headers(FULL_DUPLEX_CALL))
    connection.send(data_frames(stream, MESSAGE))
    connection.read_until(connection.answers[stream].messages)
    return connection, stream


def expect_goaways(connection, last_stream):
    """The notice, and then the last stream that is served."""
    connection.read_until(lambda: len(connection.goaways) == 2)
    notice, final = connection.goaways
    expect((LARGEST_STREAM, NO_ERROR), (notice.last_stream, notice.code))
    expect((last_stream, NO_ERROR), (final.last_stream, final.code))


def finish(connection, stream):
    """The call goes on as if nothing had happened: one more message, and a good end."""
    connection.send(data_frames(stream, MESSAGE, end_stream=True))
    expect("2 messages and grpc-status 0", connection.answer(stream).outcome())


def expect_good_end(server, connection):
    expect("GOAWAY(0) and closed", connection.end())
    expect(0, server.exit_status())
    expect_true(not server.left_socket(), "no socket file", "it is still there")


def running_call_finishes(server):
    with server.another() as own:
        connection, stream = running_call(own)
        own.ask_to_stop()
        expect_goaways(connection, stream)
        finish(connection, stream)
        expect_good_end(own, connection)


def call_after_the_notice_is_served(server):
    """What a client sends before it has seen the notice, or at once after it, is not lost."""
    with server.another() as own:
        connection, stream = running_call(own)
        own.ask_to_stop()
        connection.read_until(lambda: connection.goaways)
        expect(LARGEST_STREAM, connection.goaways[0].last_stream)
        late = connection.new_stream()
        connection.send_request(late, headers(), UNARY_BODY)
        expect_normal(connection.answer(late))
        expect_goaways(connection, late)
        finish(connection, stream)
        expect_good_end(own, connection)


def call_after_the_final_goaway_is_not_served(server):
    """The stream is ignored or refused; its client knows from the GOAWAY that it may try elsewhere."""
    with server.another() as own:
        connection, stream = running_call(own)
        own.ask_to_stop()
        expect_goaways(connection, stream)
        late = connection.new_stream()
        connection.send_request(late, headers(), UNARY_BODY)
        connection.read_for(0.1)
        finish(connection, stream)
        expect_good_end(own, connection)
        expect_true(not connection.answers[late].blocks, "no answer", connection.answers[late].blocks)
        expect_one_of((None, REFUSED_STREAM), connection.answers[late].reset)


def idle_connection_is_closed(server):
    with server.another() as own:
        connection = own.connect()
        expect_normal(connection.call(headers(), UNARY_BODY))
        own.ask_to_stop()
        expect_goaways(connection, 1)
        expect_good_end(own, connection)


def stops_right_after_a_call(server):
    """15 servers are told to stop while their workers have only just finished: all end well."""
    for _ in range(15):
        with server.another() as own:
            connection = own.connect()
            expect_normal(connection.call(headers(), UNARY_BODY))
            own.ask_to_stop()
            expect_good_end(own, connection)


CASES = [
    ("drain-running-call-finishes", running_call_finishes),
    ("drain-call-after-the-notice-is-served", call_after_the_notice_is_served),
    ("drain-call-after-the-final-goaway-is-not-served", call_after_the_final_goaway_is_not_served),
    ("drain-idle-connection-is-closed", idle_connection_is_closed),
    ("drain-right-after-a-call", stops_right_after_a_call),
]
