# SPDX-License-Identifier: Apache-2.0
"""What several case files expect of the server, each said once."""

from rawframes.messages import RESPONSE_SIZE, UNARY_BODY, headers, response_payload_size
from rawframes.rawh2 import expect, expect_true
from rawframes.server import TIME_FACTOR

NORMAL = "1 message and grpc-status 0"
MALFORMED = "RST_STREAM(1)"
CONNECTION_PROTOCOL_ERROR = "GOAWAY(1) and closed"


def trailers_only(status):
    return f"trailers-only grpc-status {status}"


def expect_normal(answer):
    """The answer to UNARY_BODY at UnaryCall: one uncompressed message with the payload that was asked for."""
    expect(NORMAL, answer.outcome())
    flag, message = answer.messages()[0]
    expect(0, flag)
    expect(RESPONSE_SIZE, response_payload_size(message))


def expect_answer(expected, answer):
    """`expected` is an outcome; NORMAL also looks into the message."""
    expect(expected, answer.outcome())
    if expected == NORMAL:
        expect_normal(answer)


def expect_working(connection):
    """The connection still serves."""
    expect_normal(connection.call(headers(), UNARY_BODY))


def expect_growth_below(limit_mib, server, before_mib):
    """Sanitizers keep books about each byte, so their builds may have more."""
    growth = server.rss_mib() - before_mib
    limit_mib *= TIME_FACTOR
    expect_true(growth < limit_mib, f"less than {limit_mib:g} MiB more memory", f"{growth:.0f} MiB")


def expect_bounded(connection, goaway_codes=None, needs_goaway=True):
    """After a flood: the connection still serves, or the server has said GOAWAY with an error and closed it.

    A TCP peer that closes while bytes are under way may lose the GOAWAY it has sent: no `needs_goaway` there.
    """
    answer = connection.call(headers(), UNARY_BODY)
    if not answer.closed:
        expect_normal(answer)
    elif connection.goaways:
        code = connection.goaways[-1].code
        right = code in goaway_codes if goaway_codes else code != 0
        expect_true(right, f"GOAWAY with {goaway_codes or 'an error code'}", f"GOAWAY({code})")
    else:
        expect_true(not needs_goaway, "GOAWAY before the connection closes", "none")
