# SPDX-License-Identifier: Apache-2.0
"""Servers that can be killed, stopped for a while and started again."""

import signal
import subprocess
import time


class Process:
    """A server on a machine. Only one thread starts it: it ends with that thread."""

    def __init__(self, name, command, log):
        self.name = name
        self.command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
        self.log = log
        self.process = None
        self.is_stopped = False

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        self.is_stopped = False

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def answers(self):
        return self.is_running() and not self.is_stopped

    def kill(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.is_stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        if self.is_running():
            self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def end(self, seconds=20):
        """Asks it to end. Returns why it has not, or None."""
        self.resume()
        if not self.is_running():
            return None if self.process is None else self.exit_reason()
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"{self.name} did not end within {seconds} s"
        return self.exit_reason()

    def exit_reason(self):
        code = self.process.returncode
        if code in (0, -signal.SIGKILL, -signal.SIGTERM):
            return None
        return f"{self.name} ended with exit code {code}"

    def crash(self):
        """Why it has ended by itself, or None."""
        if self.process is None or self.process.poll() in (None, -signal.SIGKILL):
            return None
        return f"{self.name} has ended by itself with exit code {self.process.returncode}"


def wait_until(condition, seconds, step=0.1):
    """What the condition has returned last: something true if it came about in time."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result or time.monotonic() > deadline:
            return result
        time.sleep(step)
