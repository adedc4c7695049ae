# SPDX-License-Identifier: Apache-2.0
"""What every part of the benchmark needs: processes that are surely ended, what they used, load, tables, bars."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import time
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS = 10
STOP_SECONDS = 10


class NotMeasured(Exception):
    """A figure is missing; the text says why."""


# ---- the machine ----


def describe_machine():
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return (f"{os.cpu_count()} cores, {memory / 2**20:.0f} GiB, {model[1] if model else 'unknown CPU'}, "
            f"Linux {os.uname().release}, load average {os.getloadavg()[0]:.1f}")


class Noise:
    """How much of the machine others used since this was made. Right once all our processes have ended."""

    def __init__(self):
        self.start = time.monotonic()
        self.busy = self.busy_seconds()
        self.ours = self.our_seconds()

    @staticmethod
    def busy_seconds():
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[:7])
        return (user + nice + system + irq + softirq) / TICKS

    @staticmethod
    def our_seconds():
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in used)

    def percent(self):
        others = self.busy_seconds() - self.busy - (self.our_seconds() - self.ours)
        return max(0.0, 100 * others / ((time.monotonic() - self.start) * os.cpu_count()))


# ---- processes ----


def stat_fields(pid):
    """The fields of /proc/PID/stat from the state (field 3) on."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def family(pid):
    """The process and its direct children (a master and its workers)."""
    pids = [pid]
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(stat_fields(entry.name)[1]) == pid:
                pids.append(int(entry.name))
    return pids


def pinned_to(cpus):
    """What stands before a command that is to run on these cores only."""
    return ["taskset", "-c", cpus] if cpus else []


class Process:
    """A server under test. `with Process(...)` ends it, with its children, whatever happens."""

    def __init__(self, name, command, log, cpus=None):
        self.name = name
        self.log = log
        command = pinned_to(cpus) + [str(word) for word in command]
        try:
            with open(log, "wb") as output:
                self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                              stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise NotMeasured(f"{command[0]} is not there") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pids = family(self.popen.pid) if self.popen.poll() is None else []
        self.popen.terminate()
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            for pid in pids[1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)

    def wait_for_socket(self, path):
        deadline = time.monotonic() + START_SECONDS
        while not accepts_connections(path):
            if self.popen.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"{self.name} did not start: {self.log.read_text(errors='replace')[-500:].strip()}")
            time.sleep(0.05)

    def cpu_seconds(self):
        """User and system time so far, of the whole family."""
        fields = (stat_fields(pid) for pid in family(self.popen.pid))
        return sum(int(field[11]) + int(field[12]) for field in fields) / TICKS

    def memory_mib(self, field="VmRSS"):
        """VmRSS is what it holds now, VmHWM the most that it ever held."""
        texts = (pathlib.Path(f"/proc/{pid}/status").read_text() for pid in family(self.popen.pid))
        return sum(int(re.search(rf"{field}:\s+(\d+)", text)[1]) for text in texts) / 1024


def accepts_connections(path):
    with socket.socket(socket.AF_UNIX) as trial:
        return trial.connect_ex(str(path)) == 0


def run_program(command, seconds):
    """Standard output of a program that must succeed in time."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    except FileNotFoundError:
        raise NotMeasured(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"{command[0]} did not end in {seconds} s") from None
    if done.returncode != 0:
        raise NotMeasured(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
    return done.stdout


# ---- load ----


@dataclass
class Sample:
    per_second: float
    mean_us: float
    cpu_us: float  # of the process under load, per call


UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def mean_request_us(output):
    columns = re.search(r"^time for request:(.*)$", output, re.M)[1].split()
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", columns[2]).groups()
    return float(number) * UNITS[unit]


def check_answers(output, calls, in_flight, answer_bytes):
    """Every answer must have been HTTP 200 with a message of the length that the checked answer had."""
    failed, errored, timeout = (int(re.search(rf"(\d+) {word}", output)[1])
                                for word in ("failed", "errored", "timeout"))
    data = int(re.search(r"\((\d+)\) data", output)[1])
    if failed or errored or timeout or calls == 0:
        raise NotMeasured(f"{calls} calls succeeded, {failed} failed, {errored} were cut off, {timeout} timed out")
    if not calls * answer_bytes <= data <= (calls + in_flight) * answer_bytes:
        raise NotMeasured(f"{calls} answers of {answer_bytes} bytes cannot be {data} bytes")


def load(process, request, connections, streams, seconds, cpus=None):
    """One run of h2load against a process (a server, or a proxy: the CPU time is that of the process alone)."""
    command = ["h2load", "-D", f"{seconds * 1000:.0f}ms", "-c", connections, "-m", streams, *request.flags,
               "-B", f"unix:{process.socket}", request.url]
    before = process.cpu_seconds()
    output = run_program(pinned_to(cpus) + command, seconds + 30)
    used = process.cpu_seconds() - before
    calls = int(re.search(r"(\d+) succeeded", output)[1])
    check_answers(output, calls, connections * streams, process.answer_bytes)
    per_second = float(re.search(r"([\d.]+) req/s", output)[1])
    return Sample(per_second, mean_request_us(output), used * 1e6 / calls)


def middle(samples):
    """The median of each figure by itself."""
    return Sample(*(statistics.median(getattr(sample, name) for sample in samples)
                    for name in ("per_second", "mean_us", "cpu_us")))


def times(ones, others):
    """How many times as much, turn by turn: what disturbs one turn disturbs both sides."""
    return statistics.median(one / other for one, other in zip(ones, others))


# ---- what is printed ----


def print_table(title, head, rows):
    """The first column is text, the others are numbers or text, aligned to the right."""
    table = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    print(f"\n{title}\n")
    for row in table:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip(), flush=True)


class Report:
    """The bars, collected while measuring and printed at the end; and what could not be measured."""

    def __init__(self):
        self.bars = []
        self.failures = []

    def bar(self, reached, what, numbers):
        self.bars.append(f"{'PASS' if reached else 'MISS'}  {what}: {numbers}")

    def miss_figure(self, what, why):
        """A bar that nothing can be said about."""
        self.failures.append(f"NOT MEASURED  {what}: {why}")

    @contextlib.contextmanager
    def topic(self, name):
        """A topic that cannot be measured is noted, and the next one begins."""
        try:
            yield
        except NotMeasured as why:
            self.failures.append(f"NOT MEASURED  {name}: {why}")
            print(f"\n{self.failures[-1]}", flush=True)

    def print_bars(self):
        print("\nBars\n")
        for line in self.bars + self.failures:
            print(f"  {line}")
