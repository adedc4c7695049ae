# SPDX-License-Identifier: Apache-2.0
"""Fills a server's memory with messages that never end: half_messages.py SOCKET STREAMS KIB

On each stream of one connection it sends so many KiB of a message that claims 4 MiB, as far as the server lets it, stays for
two seconds, and prints one line: how many streams were refused with RESOURCE_EXHAUSTED, and how many are open.
"""

import os
import socket
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))

from rawframes.rawh2 import Connection  # noqa: E402

HEADERS = [(":method", "POST"), (":scheme", "http"), (":path", "/grpc.testing.TestService/UnaryCall"),
           (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "trailers")]
CLAIM = struct.pack(">BI", 0, 4 << 20)


def send_half(connection, size):
    stream = connection.open(HEADERS)
    connection.send_body(stream, CLAIM + bytes(size))
    return connection.answers[stream]


def main():
    path, streams, kib = sys.argv[1], *map(int, sys.argv[2:])
    connection = Connection(socket.AF_UNIX, path)
    connection.greet()
    answers = [send_half(connection, kib << 10) for _ in range(streams)]
    connection.read_for(2)
    refused = sum(answer.trailer("grpc-status") == "8" for answer in answers)
    still_open = sum(not answer.is_over() for answer in answers)
    print(f"half-messages streams={len(answers)} refused={refused} open={still_open}")


main()
