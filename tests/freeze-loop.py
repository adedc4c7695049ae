#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stops the event loop of a process, and nothing else: tests/freeze-loop.py PID

Stops, with ptrace, each thread that waits for events (epoll). Prints `frozen` and how many. The threads go on when this program ends.
"""

import ctypes
import os
import signal
import sys

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
EPOLL_WAITS = {"x86_64": {"232", "281", "441"}, "aarch64": {"22", "441"}}[os.uname().machine]

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace of thread {thread}")


process = sys.argv[1]
frozen = 0
for thread in os.listdir(f"/proc/{process}/task"):
    with open(f"/proc/{process}/task/{thread}/syscall") as file:
        if file.read().split()[0] not in EPOLL_WAITS:
            continue
    ptrace(PTRACE_SEIZE, int(thread))
    ptrace(PTRACE_INTERRUPT, int(thread))
    frozen += 1
print(f"frozen {frozen}", flush=True)
signal.pause()
