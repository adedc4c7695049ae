# SPDX-License-Identifier: Apache-2.0
"""The server under test as a process: start, connect, measure, stop."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from rawframes.rawh2 import Connection

PREFACE_TIMEOUT_MS = 500
START_SECONDS = 10
STOP_SECONDS = 5

# What tests/run multiplies time limits with in slow (sanitizer) builds; memory limits grow likewise.
TIME_FACTOR = float(os.environ.get("TIME_FACTOR") or 1)


class Server:
    def __init__(self, command, connections=None):
        self.command = command
        self.connections = [] if connections is None else connections
        self.directory = tempfile.mkdtemp(prefix="rawframes-")
        self.path = os.path.join(self.directory, "server.sock")
        self.log_path = os.path.join(self.directory, "log")
        try:
            self.process = self.spawn()
        except OSError:
            shutil.rmtree(self.directory)
            raise
        self.port = self.wait_until_ready()

    def spawn(self):
        arguments = ["--listen", "unix:" + self.path, "--listen", "127.0.0.1:0",
                     "--preface-timeout-ms", str(PREFACE_TIMEOUT_MS)]
        # AddressSanitizer holds freed memory back, and that would be taken for growth.
        asan_options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=16"
        with open(self.log_path, "wb") as log:
            return subprocess.Popen(self.command + arguments, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, env={**os.environ, "ASAN_OPTIONS": asan_options})

    def wait_until_ready(self):
        """Returns the TCP port, once both listeners have said that they listen."""
        end = time.monotonic() + START_SECONDS * TIME_FACTOR
        while time.monotonic() < end and self.is_running():
            with open(self.log_path, errors="replace") as log:
                ready = [line for line in log.readlines() if line.startswith("listening on ") and line.endswith("\n")]
            ports = [int(found[1]) for line in ready if (found := re.search(r"127\.0\.0\.1:(\d+)", line))]
            if len(ready) == 2 and ports:
                return ports[0]
            time.sleep(0.01)
        problem = f"the server did not get ready: {self.log_tail()}"
        self.destroy()
        raise RuntimeError(problem)

    def another(self):
        """A second server, for cases that stop it; its connections are closed with those of this one."""
        return Server(self.command, self.connections)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def connect(self, **options):
        """A connection over which calls can go; options are those of Connection."""
        connection = self.connect_silently(**options)
        connection.greet()
        return connection

    def connect_silently(self, **options):
        """A connection on which nothing has been said yet."""
        return self.remember(Connection(socket.AF_UNIX, self.path, **options))

    def connect_tcp(self, **options):
        connection = self.remember(Connection(socket.AF_INET, ("127.0.0.1", self.port), **options))
        connection.greet()
        return connection

    def remember(self, connection):
        self.connections.append(connection)
        return connection

    def close_connections(self):
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def is_running(self):
        return self.process.poll() is None

    def fd_count(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def rss_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024

    def rss_at_rest_mib(self):
        """Waits until the server has given back what earlier calls took."""
        before, now = float("inf"), self.rss_mib()
        while now < before:
            time.sleep(0.05)
            before, now = now, self.rss_mib()
        return now

    def ask_to_stop(self):
        self.process.send_signal(signal.SIGTERM)

    def exit_status(self):
        """Waits for the end; "still running" when it does not come in time."""
        try:
            return self.process.wait(STOP_SECONDS * TIME_FACTOR)
        except subprocess.TimeoutExpired:
            return "still running"

    def left_socket(self):
        return os.path.lexists(self.path)

    def log_tail(self, lines=12):
        with open(self.log_path, errors="replace") as log:
            return "".join(log.readlines()[-lines:]).strip()

    def destroy(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
