#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# alone
# time-limit: 300
"""Sends hand-made HTTP/2 frames to the gRPC server and checks what each gets. Cases are in rawframes/.

    raw-frames-get-the-right-status.py                      all cases
    raw-frames-get-the-right-status.py NAME...              these only
    raw-frames-get-the-right-status.py --server COMMAND...  another server than $SKYCAP_BUILD/tests/interop-server

The server is started with `--listen unix:PATH --listen 127.0.0.1:0 --preface-timeout-ms 500`, and every case has new
connections. At the end it must have survived them all, with no descriptor leaked and little more memory, and stop on
SIGTERM.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

try:
    from rawframes import connection, drain, flow, framing, headers
except ModuleNotFoundError as missing:
    if missing.name != "hpack":
        raise
    print("skipped: Python's hpack is missing (Debian package python3-h2)")
    sys.exit(77)
from rawframes.expectations import expect_growth_below, expect_working
from rawframes.rawh2 import Closed, Unexpected, expect
from rawframes.server import TIME_FACTOR, Server

CASES = headers.CASES + framing.CASES + flow.CASES + connection.CASES + drain.CASES

# From the end of the first call until descriptors and memory are counted.
SETTLE_SECONDS = 0.2


class Hang(Exception):
    """A case took longer than it may."""


def raise_hang(*_):
    raise Hang


def options():
    build = Path(os.environ.get("SKYCAP_BUILD", Path(__file__).resolve().parents[2] / "build"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help="run these cases only")
    parser.add_argument("--list", action="store_true", help="print the names of all cases")
    parser.add_argument("--bound", type=float, default=10 * TIME_FACTOR,
                        help="seconds after which a case hangs (10 times $TIME_FACTOR)")
    parser.add_argument("--rss-growth-mib", type=float, default=32,
                        help="memory that may be gained in all (32, times $TIME_FACTOR)")
    parser.add_argument("--server", nargs=argparse.REMAINDER, default=[str(build / "tests" / "interop-server")],
                        metavar="COMMAND", help="the server and its arguments; the last option")
    return parser.parse_args()


class Run:
    """One server, the cases run against it, and the score."""

    def __init__(self, chosen):
        self.bound = chosen.bound
        self.rss_growth_mib = chosen.rss_growth_mib
        self.command = chosen.server
        self.passed = 0
        self.failed = 0
        self.deaths = 0
        self.start()

    def start(self):
        self.server = Server(self.command)
        problem = self.problem_of(self.serves_on)
        if problem:
            self.server.destroy()
            raise RuntimeError(problem)
        self.server.close_connections()
        time.sleep(SETTLE_SECONDS)
        self.first_rss_mib = self.server.rss_mib()
        self.first_fd_count = self.server.fd_count()

    def check(self, name, function):
        """Runs one case and prints its line."""
        problem = self.problem_of(function) or self.problem_of(self.serves_on)
        self.server.close_connections()
        if not self.server.is_running():
            problem = f"{problem or 'nothing'}; the server ended with {self.server.process.returncode}"
            print(self.server.log_tail(), file=sys.stderr)
            self.deaths += 1
            self.server.destroy()
            self.start()
        self.failed += problem is not None
        self.passed += problem is None
        print(f"FAILED {name}: {problem}" if problem else f"ok {name}", flush=True)

    def problem_of(self, function):
        """None if the function returns in time."""
        signal.setitimer(signal.ITIMER_REAL, self.bound)
        try:
            function(self.server)
        except Unexpected as unexpected:
            return str(unexpected)
        except Hang:
            return f"expected an end within {self.bound:g} s, got none after {self.last_frames()}"
        except Closed:
            return f"expected an answer, got the connection closed after {self.last_frames()}"
        except OSError as error:
            return f"expected a connection, got {error}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return None

    def last_frames(self):
        return self.server.connections[-1].summary() if self.server.connections else "no connection"

    @staticmethod
    def serves_on(server):
        expect_working(server.connect())

    def survived(self, _):
        expect("0 deaths", f"{self.deaths} deaths")

    def leaks_no_descriptor(self, server):
        """The server needs a moment to see that connections are gone."""
        end = time.monotonic() + self.bound / 2
        while server.fd_count() != self.first_fd_count and time.monotonic() < end:
            time.sleep(0.01)
        expect(self.first_fd_count, server.fd_count())

    def gains_little_memory(self, server):
        print(f"memory: {self.first_rss_mib:.1f} MiB at the start, {server.rss_at_rest_mib():.1f} MiB at the end")
        expect_growth_below(self.rss_growth_mib, server, self.first_rss_mib)

    def check_at_the_end(self):
        self.check("server-survives-all-cases", self.survived)
        self.check("server-leaks-no-descriptor", self.leaks_no_descriptor)
        self.check("server-gains-little-memory", self.gains_little_memory)
        self.check_stop()

    def check_stop(self):
        self.server.ask_to_stop()
        status = self.server.exit_status()
        left = self.server.left_socket()
        good = status == 0 and not left
        self.passed += good
        self.failed += not good
        problem = f"expected exit status 0 and no socket, got {status}{' and the socket' if left else ''}"
        print("ok server-stops-on-sigterm" if good else f"FAILED server-stops-on-sigterm: {problem}")
        self.server.destroy()


def main():
    chosen = options()
    if chosen.list:
        print("\n".join(name for name, _ in CASES))
        return 0
    unknown = set(chosen.names) - {name for name, _ in CASES}
    if unknown:
        print(f"no such case: {' '.join(sorted(unknown))} (--list shows all)", file=sys.stderr)
        return 2
    signal.signal(signal.SIGALRM, raise_hang)
    try:
        run = Run(chosen)
    except (OSError, RuntimeError) as error:
        print(f"FAILED server-starts: expected a server, got {error}\n0 passed, 1 failed, 0 skipped")
        return 1
    for name, function in CASES:
        if not chosen.names or name in chosen.names:
            run.check(name, function)
    run.check_at_the_end()
    print(f"{run.passed} passed, {run.failed} failed, 0 skipped")
    return 1 if run.failed else 0


sys.exit(main())
