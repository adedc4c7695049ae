#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# alone
# time-limit: 400
"""Hostile clients send to a server with its default settings what costs it most: requests that never end, gzip that inflates to the largest
message, streams and watches in great number. Meanwhile another client's calls all succeed, with a p99 below 50 ms, and the server's
memory grows by less than 64 MiB.

    hostile-requests-leave-others-quick.py [ATTACK...]       these only

An attack runs as a process of its own: --attack NAME SOCKET SECONDS. It prints one line with what became of its requests.
"""

import collections
import gzip
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

try:
    from rawframes.rawh2 import Closed, Connection, data_frames, header_frames
except ModuleNotFoundError as missing:
    if missing.name != "hpack":
        raise
    print("skipped: Python's hpack is missing (Debian package python3-h2)")
    sys.exit(77)

TIME_FACTOR = float(os.environ.get("TIME_FACTOR") or 1)
BUILD = Path(os.environ.get("SKYCAP_BUILD", Path(__file__).resolve().parents[2] / "build"))
SKYCAP = BUILD / "skycap"

P99_MS = 50 * TIME_FACTOR
MEMORY_MIB = 64
SECONDS = 4  # of an attack
PACE = 0.005  # seconds from one call of the other client to its next
TRIES = 4  # a server that is held up is so each time; something else that the machine does, not as often

PROBE = "/csi.v1.Identity/Probe"
PLUGIN_INFO = "/csi.v1.Identity/GetPluginInfo"
CREATE = "/csi.v1.Controller/CreateVolume"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
EMPTY = bytes(5)
LARGEST = 4 << 20
STREAMS = 250  # of one connection; 256 are allowed


def head(path, *more):
    return [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
            ("content-type", "application/grpc"), ("te", "trailers"), *more]


def connect(path):
    connection = Connection(socket.AF_UNIX, path)
    connection.greet()
    return connection


def framed(message, flag=0):
    return struct.pack(">BI", flag, len(message)) + message


# ---- attacks: each is a generator that yields when all of its first requests have gone, and again as long as it is asked to go on


class Flood:
    """Requests with such heads, one after the other, on one connection."""

    def __init__(self, path, heads, body, end):
        self.connection = connect(path)
        self.body, self.end = body, end
        for one in heads:
            self.connection.open(one)
        # HPACK's table has them all now: each is the same few bytes every time.
        self.blocks = [self.connection.encode(one) for one in heads]

    def requests(self, count):
        octets = b""
        for number in range(count):
            stream = self.connection.new_stream()
            octets += header_frames(stream, self.blocks[number % len(self.blocks)], self.end and self.body is None)
            if self.body is not None:
                octets += data_frames(stream, self.body, self.end)
        return octets

    def go_on(self):
        self.connection.send(self.requests(STREAMS - len(self.connection.answers)))
        while self.connection.read_frame(0.01):
            pass

    def count_statuses(self, into):
        """Behind an early answer comes a reset, and nothing comes behind that."""
        for stream, answer in list(self.connection.answers.items()):
            if answer.reset is not None or (answer.ended and self.end):
                into[answer.trailer("grpc-status")] += 1
                del self.connection.answers[stream]


def flood(path, count, heads, body, end):
    """Keeps STREAMS requests open on each of `count` connections."""
    floods = [Flood(path, heads, body, end) for _ in range(count)]
    connections = [one.connection for one in floods]
    statuses = collections.Counter()
    while True:
        for one in floods:
            one.go_on()
            one.count_statuses(statuses)
        yield connections, statuses


def requests_that_never_end(path):
    """Some 500 KB of headers: a field that HPACK's table has takes one byte on the wire, and most of all in memory."""
    large = head(PROBE, *[("k", "v")] * 460)
    return flood(path, 5, [large, large, large, head(PROBE)], None, False)


def requests_that_never_end_on_many_connections(path):
    return flood(path, 40, [head(CREATE)], EMPTY[:4], False)


def checks_that_never_end(path):
    return flood(path, 20, [head(CHECK)], None, False)


def bombs(path, message):
    body = framed(gzip.compress(message, 9), 1)
    methods = (PROBE, CHECK, CREATE, PLUGIN_INFO)
    return flood(path, 4, [head(method, ("grpc-encoding", "gzip")) for method in methods], body, True)


def gzip_of_one_large_field(path):
    """An unknown field of so many bytes."""
    return bombs(path, b"\x7a\xf0\xff\xff\x01" + bytes(LARGEST - 16 - 5))


def gzip_of_many_small_fields(path):
    """Entries of a map, each of which takes a hundred bytes when it is decoded."""
    return bombs(path, b"\x22\x00" * (LARGEST // 2))


def gzip_on_streams(path):
    body = framed(gzip.compress(b"\x7a\xf0\xff\xff\x01" + bytes(LARGEST - 16 - 5), 9), 1)
    return flood(path, 4, [head(REFLECTION, ("grpc-encoding", "gzip"))], body * 2, False)


def streams_that_say_nothing(path):
    return flood(path, 4, [head(REFLECTION)], None, False)


def watches(path):
    return flood(path, 4, [head(WATCH)], EMPTY, True)


ATTACKS = {function.__name__.replace("_", "-"): function for function in (
    requests_that_never_end, requests_that_never_end_on_many_connections, checks_that_never_end, gzip_of_one_large_field,
    gzip_of_many_small_fields, gzip_on_streams, streams_that_say_nothing, watches)}


def attack(name, path, seconds):
    steps = ATTACKS[name](path)
    connections, statuses = next(steps)
    print("begun", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connections, statuses = next(steps)
    still_open = sum(len(connection.answers) for connection in connections)
    counts = " ".join(f"status-{code}={count}" for code, count in sorted(statuses.items(), key=str))
    print(f"open={still_open} {counts}", flush=True)


# ---- the other client


class Other:
    """Makes calls at a steady pace; a call that takes longer stands for those that would have been made meanwhile, too."""

    METHODS = (CHECK, PROBE, PLUGIN_INFO)

    def __init__(self, path):
        self.connection = connect(path)
        self.times = []
        self.failures = collections.Counter()
        self.calls = 0

    def call(self):
        method = self.METHODS[self.calls % len(self.METHODS)]
        self.calls += 1
        started = time.monotonic()
        answer = self.connection.call(head(method), EMPTY)
        took = time.monotonic() - started
        if answer.trailer("grpc-status") != "0":
            self.failures[f"{method}: {answer.outcome()} {answer.trailer('grpc-message') or ''}"] += 1
        self.times += [took - missed * PACE for missed in range(max(1, math.ceil(took / PACE)))]
        time.sleep(max(0, PACE - took))

    def p99_ms(self):
        return sorted(self.times)[len(self.times) * 99 // 100] * 1000


def one_stream(path, method):
    """Another client's streaming call: its first answer's message, or what it got instead."""
    connection = connect(path)
    connection.socket.settimeout(10)
    stream = connection.new_stream()
    ends = method == WATCH
    body = EMPTY if ends else framed(b"\x3a\x00")  # list_services
    connection.send(header_frames(stream, connection.encode(head(method))) + data_frames(stream, body, end_stream=ends))
    answer = connection.answers[stream]
    connection.read_until(lambda: answer.messages() or answer.is_over())
    got = "a message" if answer.messages() else answer.outcome()
    connection.close()
    return got


# ---- the server


class Server:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="hostile-", dir=os.environ.get("SKYCAP_TMP"))
        self.path = os.path.join(self.directory, "csi.sock")
        self.log_path = os.path.join(self.directory, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [SKYCAP, "serve", "--endpoint", f"unix://{self.path}", "--data", os.path.join(self.directory, "data"),
                 "--backend", "dir"], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + 20 * TIME_FACTOR
        while not os.path.exists(self.path) or not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not get ready: {Path(self.log_path).read_text()[-2000:]}")
            time.sleep(0.05)

    def answers(self):
        try:
            other = Other(self.path)
            other.call()
        except (OSError, Closed):
            return False
        return not other.failures

    def memory_mib(self, what):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(what + ":")) / 1024

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30 * TIME_FACTOR)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it did not end"
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)


def has_sanitizer():
    return b"__asan_init" in SKYCAP.read_bytes() or b"__tsan_init" in SKYCAP.read_bytes()


class Attacker:
    """An attack under way; what it says at its end is in `report`."""

    def __init__(self, name, path):
        self.process = subprocess.Popen([sys.executable, __file__, "--attack", name, path, str(SECONDS)],
                                        stdout=subprocess.PIPE, text=True)
        self.report = self.process.stdout.readline().strip()

    def runs(self):
        return self.process.poll() is None

    def end(self):
        self.report = self.process.communicate()[0].strip()
        return self.process.returncode


def measure(server, name, quiet_p99):
    """Runs the attack once; what is wrong, and a line of figures. On a machine that is too busy for the bar by itself, twice the usual counts."""
    before = server.memory_mib("VmRSS")
    server.forget_peak()
    other = Other(server.path)
    attacker = Attacker(name, server.path)
    wrong = [] if attacker.report == "begun" else ["the attack did not begin"]
    stream = one_stream(server.path, REFLECTION)
    watch = one_stream(server.path, WATCH)
    while attacker.runs():
        other.call()
    if attacker.end() != 0 or not other.times:
        return ["the attack failed"], attacker.report
    growth = server.memory_mib("VmHWM") - before
    if not has_sanitizer() and growth > MEMORY_MIB:
        wrong.append(f"memory grew by {growth:.1f} MiB, wanted {MEMORY_MIB} at most")
    wrong += [f"the other client's {what}, {count} times" for what, count in other.failures.items()]
    if (stream, watch) != ("a message", "a message"):
        wrong.append(f"the other client's streams got {stream} and {watch}")
    if other.p99_ms() > max(P99_MS, 2 * quiet_p99):
        wrong.append(f"the other client's p99 is {other.p99_ms():.1f} ms, wanted {P99_MS:.0f} at most")
    figures = f"p99 {other.p99_ms():.1f} ms of {other.calls} calls, memory +{growth:.1f} MiB; the attacker: {attacker.report}"
    return wrong, figures


def baseline(server):
    other = Other(server.path)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        other.call()
    return other.p99_ms()


def run(name):
    """On a server of its own, so that nothing of the attack before is left."""
    server = Server()
    for _ in range(TRIES):
        quiet = baseline(server)
        wrong, figures = measure(server, name, quiet)
        print(f"{name}: {figures}; p99 before it {quiet:.1f} ms", flush=True)
        if not wrong:
            break
    code = server.stop()
    if code != 0:
        wrong.append(f"the server ended with {code}")
    if wrong:
        print(f"FAILED {name}: {'; '.join(wrong)}", flush=True)
    return not wrong


def main():
    if sys.argv[1:2] == ["--attack"]:
        attack(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return 0
    results = [run(name) for name in sys.argv[1:] or ATTACKS]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
