#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A field that its sender keeps out of HPACK's tables, so that nobody can guess it by sizes, stays out of them behind the
proxy: in requests, in answers and in trailers. Client and server are Python's h2, which tells which fields came so."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

try:
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import DataReceived, RequestReceived, ResponseReceived, StreamEnded, TrailersReceived
    from hpack import NeverIndexedHeaderTuple
except ModuleNotFoundError:
    print("skipped: Python's h2 is missing (Debian package python3-h2)")
    sys.exit(77)

SECONDS = 10 * int(os.environ.get("TIME_FACTOR") or 1)
BUILD = Path(os.environ.get("SKYCAP_BUILD", Path(__file__).resolve().parents[2] / "build"))


def secret(name):
    return NeverIndexedHeaderTuple(name, "s" * 30)


def is_secret(headers, name):
    return [isinstance(field, NeverIndexedHeaderTuple) for field in headers if field[0] == name]


def each_event(connection, peer):
    """Events until the peer hangs up; what the connection has to say is said."""
    while True:
        peer.sendall(connection.data_to_send())
        data = peer.recv(65536)
        if not data:
            return
        yield from connection.receive_data(data)


def serve_one(listener, seen):
    peer = listener.accept()[0]
    peer.settimeout(SECONDS)
    connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    for event in each_event(connection, peer):
        if isinstance(event, RequestReceived):
            seen["request"] = event.headers
        if isinstance(event, StreamEnded):
            connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc"),
                                                      secret("x-secret"), ("x-plain", "p" * 30)])
            connection.send_data(event.stream_id, b"\0" * 5)
            connection.send_headers(event.stream_id, [("grpc-status", "0"), secret("x-late")], end_stream=True)


def call_once(path, seen):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(SECONDS)
        peer.connect(path)
        connection = H2Connection(H2Configuration(header_encoding="utf-8"))
        connection.initiate_connection()
        connection.send_headers(1, [(":method", "POST"), (":scheme", "http"), (":path", "/a.B/C"), (":authority", "x"),
                                    ("te", "trailers"), ("content-type", "application/grpc"), secret("x-secret"),
                                    ("x-plain", "p" * 30)])
        connection.send_data(1, b"\0" * 5, end_stream=True)
        for event in each_event(connection, peer):
            if isinstance(event, ResponseReceived):
                seen["answer"] = event.headers
            if isinstance(event, TrailersReceived):
                seen["trailers"] = event.headers
            if isinstance(event, DataReceived):
                seen["bytes"] = event.data
            if isinstance(event, StreamEnded):
                return


def start_proxy(directory, behind):
    path = f"{directory}/proxy.sock"
    proxy = subprocess.Popen([BUILD / "tests/interop-proxy", "--listen", f"unix:{path}", "--to", f"unix:{behind}"],
                             stdout=subprocess.PIPE, text=True)
    if "listening" not in proxy.stdout.readline():
        raise SystemExit("the proxy did not start")
    return proxy, path


def main():
    seen = {}
    with tempfile.TemporaryDirectory(prefix="skycap-secret-") as directory, socket.socket(socket.AF_UNIX) as listener:
        behind = f"{directory}/server.sock"
        listener.bind(behind)
        listener.listen()
        threading.Thread(target=serve_one, args=(listener, seen), daemon=True).start()
        proxy, path = start_proxy(directory, behind)
        try:
            call_once(path, seen)
        finally:
            proxy.terminate()
            proxy.wait(SECONDS)
    wanted = {
        "a secret field of a request": is_secret(seen["request"], "x-secret") == [True],
        "a plain field of a request": is_secret(seen["request"], "x-plain") == [False],
        "a secret field of an answer": is_secret(seen["answer"], "x-secret") == [True],
        "a plain field of an answer": is_secret(seen["answer"], "x-plain") == [False],
        "a secret field of trailers": is_secret(seen["trailers"], "x-late") == [True],
        "the message": seen["bytes"] == b"\0" * 5,
    }
    for name, is_right in wanted.items():
        print("ok" if is_right else "FAILED", name)
    failed = sum(not is_right for is_right in wanted.values())
    print(f"{len(wanted) - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
