# SPDX-License-Identifier: Apache-2.0
"""skycap itself, in a guest."""

import os
import pathlib
import signal
import subprocess
import time

import grpc

from calls import Client

START_SECONDS = 60  # until we give up
READY_MS = 3000  # what is promised


def overload():
    """By how much everything takes longer: 1 up to two programs that want each processor."""
    return max(1, os.getloadavg()[0] / os.cpu_count() / 2)


class Server:
    def __init__(self, guest):
        self.guest = guest
        self.socket = guest.base + "/run/csi.sock"
        self.starts = 0
        self.process = None
        self.log = None

    def start(self):
        """False: it did not come up, and the record says so."""
        self.log = pathlib.Path(f"{self.guest.base}/run/skycap.{self.starts}.log")
        self.starts += 1
        command = [
            self.guest.task["skycap"],
            "serve",
            "--endpoint",
            "unix://" + self.socket,
            "--data",
            self.guest.data,
            "--node-id",
            "node",
            *self.guest.task["serve"],
        ]
        if self.guest.task["exports"]:
            command += ["--repositories", self.guest.repositories]
        if self.guest.pool_device:
            command += ["--pool-device", self.guest.pool_device]
        self.guest.note("starting")
        began = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        if not self.wait_until_ready(began + START_SECONDS * self.guest.task["slowness"]):
            self.guest.note("start_failed", exit_code=self.process.poll(), log=self.tail())
            return False
        ready_ms = round((time.monotonic() - began) * 1000, 1)
        if ready_ms > READY_MS * self.guest.task["slowness"] * overload():
            self.guest.problem("the server answers Probe too late", ms=ready_ms)
        self.guest.note("ready", ms=ready_ms)
        return True

    def wait_until_ready(self, deadline):
        while time.monotonic() < deadline and self.process.poll() is None:
            if os.path.exists(self.socket) and self.probe():
                return True
            time.sleep(0.002)
        return False

    def probe(self):
        """A channel that was refused once waits a second: each try has its own."""
        client = Client(self.socket)
        try:
            if client("Identity", "Probe", timeout=START_SECONDS).ready.value:
                self.guest.calls.client = client
                return True
        except grpc.RpcError:
            pass
        client.close()
        return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code != 0:
            self.guest.problem("the server did not stop well", exit_code=code, log=self.tail())
        self.guest.calls.client.close()

    def lines(self):
        return self.log.read_text(errors="replace").splitlines()

    def warnings(self):
        return [line for line in self.lines() if " WARN " in line or " ERROR " in line][-12:]

    def tail(self):
        return self.lines()[-12:]
