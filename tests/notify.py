#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the part of a service manager that a program tells how it is: tests/notify.py SOCKET

SOCKET is a path, or @NAME in the abstract namespace. Prints `bound`, then each datagram in a line: the time in seconds, and its lines with `|` between them.
"""

import socket
import sys
import time

name = sys.argv[1]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("\0" + name[1:] if name.startswith("@") else name)
print("bound", flush=True)
while True:
    text = manager.recv(65536).decode()
    print(f"{time.monotonic():.3f} {'|'.join(text.splitlines())}", flush=True)
