#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""slow-relay.py PORT TO_PORT SECONDS FILE: relays HTTP/1.1 connections on loopback, and delays each answer.

Writes into FILE how many GET requests have waited for their answer at the same time, at most.
"""

import asyncio
import sys

port, to_port, delay, path = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
waiting = 0
most = 0


def count(change):
    global waiting, most
    waiting += change
    if waiting > most:
        most = waiting
        with open(path, "w", encoding="ascii") as out:
            out.write(f"{most}\n")


class Exchange:
    """The requests of one connection. There is one at a time."""

    def __init__(self):
        self.is_answered = True
        self.is_counted = False

    def ask(self, data):
        if self.is_answered:
            self.is_answered = False
            self.is_counted = data.startswith(b"GET ")
            count(+self.is_counted)

    async def answer(self):
        if not self.is_answered:
            await asyncio.sleep(delay)
            self.end()

    def end(self):
        if not self.is_answered:
            self.is_answered = True
            count(-self.is_counted)


async def copy(reader, writer, tell):
    try:
        while data := await reader.read(1 << 16):
            await tell(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def relay(reader, writer):
    exchange = Exchange()
    try:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", to_port)
    except OSError:
        writer.close()
        return

    async def ask(data):
        exchange.ask(data)

    async def answer(_data):
        await exchange.answer()

    await asyncio.gather(copy(reader, to_writer, ask), copy(to_reader, writer, answer))
    exchange.end()


async def main():
    async with await asyncio.start_server(relay, "127.0.0.1", port) as server:
        await server.serve_forever()


asyncio.run(main())
