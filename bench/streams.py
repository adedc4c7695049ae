# SPDX-License-Identifier: Apache-2.0
"""The streams part: a subvolume as a stream, to another btrfs, beside `btrfs send | btrfs receive`. As root.

Both begin with the contents in memory and end when everything is on the disk of the target. "Apply" takes the stream
from memory; "move" makes it at the same time, with us in one process, and with btrfs-progs in two and a pipe. The two
programs take turns. CPU is the time of the programs themselves, without what the kernel does behind them."""

import contextlib
import fcntl
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

from harness import NotMeasured, print_table, run_program, times

LARGE_BYTES = 2 << 30
SMALL_FILES, SMALL_BYTES = 50_000, 4096
DISK_BYTES = 12 << 30
PIPE_BYTES = 1 << 20
OURS, PEER = "skycap", "btrfs-progs"


def run(*words):
    return run_program(words, 600)


class Clock:
    """The time since it was made, and the CPU time of processes that have ended since."""

    def __init__(self):
        self.started = time.monotonic()
        self.used = self.used_seconds()

    @staticmethod
    def used_seconds():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def read(self):
        return time.monotonic() - self.started, self.used_seconds() - self.used


def mount_btrfs(stack, directory, name):
    file, path = directory / f"{name}.file", directory / name
    with open(file, "wb") as image:
        image.truncate(DISK_BYTES)
    path.mkdir()
    run("mkfs.btrfs", "-q", file)
    run("mount", "-o", "loop,noatime", file, path)
    stack.callback(file.unlink)
    stack.callback(subprocess.run, ["umount", path])
    return path


def fill_large(path):
    block = os.urandom(1 << 24)
    with open(path / "large", "wb") as file:
        for _ in range(LARGE_BYTES // len(block)):
            file.write(block)


def fill_small(path):
    bytes_ = os.urandom(SMALL_BYTES)
    for number in range(SMALL_FILES):
        directory = path / f"d{number // 500}"
        if number % 500 == 0:
            directory.mkdir()
        (directory / f"f{number}").write_bytes(bytes_)


class Streams:
    """The commands of both sides for one subvolume."""

    def __init__(self, tool, source, target, memory):
        self.tool, self.source, self.target, self.memory = tool, source, target, memory

    def producer(self, program):
        if program == OURS:
            return [self.tool, "btrfs", self.source, "-", self.memory / "end"]
        return ["btrfs", "-q", "send", self.source]

    def receiver(self, program):
        if program == OURS:
            run("btrfs", "-q", "subvolume", "create", self.target / "copy")
            return [self.tool, "receive", self.target / "copy", self.memory / "state", self.memory / "end", "0"]
        return ["btrfs", "-q", "receive", self.target]

    def make(self, program):
        with open(self.memory / program, "wb") as file:
            subprocess.run(self.producer(program), stdout=file, check=True)

    def clean(self, program):
        (self.memory / "state").unlink(missing_ok=True)
        name = "copy" if program == OURS else self.source.name
        run("btrfs", "-q", "subvolume", "delete", self.target / name)
        run("btrfs", "subvolume", "sync", self.target)
        run("sync", "--file-system", self.target)

    def apply(self, program):
        """The seconds and the CPU seconds that it takes to apply the stream."""
        command = self.receiver(program)
        with open(self.memory / program, "rb") as file:
            clock = Clock()
            subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True)
        return self.finish(program, clock)

    def move(self, program):
        command = self.receiver(program)
        if program == OURS:
            clock = Clock()
            run(self.tool, "move", self.source, "-", self.target / "copy", self.memory / "state")
            return self.finish(program, clock)
        reader, writer = os.pipe()
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        clock = Clock()
        producer = subprocess.Popen(self.producer(program), stdout=writer)
        os.close(writer)
        code = subprocess.run(command, stdin=reader, stdout=subprocess.DEVNULL).returncode
        os.close(reader)
        if producer.wait() or code:
            raise NotMeasured(f"{program} failed")
        return self.finish(program, clock)

    def finish(self, program, clock):
        run("sync", "--file-system", self.target)
        figures = clock.read()
        self.clean(program)
        return figures


def measure_contents(streams, title, unit, amount, repeats, report):
    rows = []
    for program in OURS, PEER:
        streams.make(program)
    for name, action in ("apply", streams.apply), ("move", streams.move):
        runs = {OURS: [], PEER: []}
        for number in range(repeats + 1):
            for program in OURS, PEER:
                figures = action(program)
                if number:  # the first round is to warm up
                    runs[program].append(figures)
        seconds, used = ({program: [run[i] for run in runs[program]] for program in runs} for i in (0, 1))
        ratio = times(seconds[PEER], seconds[OURS])
        rows.append([name, *(f"{amount / statistics.median(seconds[program]):,.0f} {unit}" for program in runs),
                     f"{ratio:.2f}"])
        rows.append([f"{name}, CPU", *(f"{statistics.median(used[program]):.2f} s" for program in runs),
                     f"{times(used[PEER], used[OURS]):.2f}"])
        report.bar(ratio >= 1, f"{name} {title} at least as fast as btrfs-progs", f"{ratio:.2f} times")
    print_table(f"{title} ({repeats} rounds)", ["", OURS, PEER, "times"], rows)


def measure(_root, build, arguments, report):
    if os.geteuid() != 0:
        report.miss_figure("streams", "needs root: file systems are mounted")
        return
    contents = (("one file of 2 GiB", "MB/s", LARGE_BYTES / 1e6, fill_large),
                ("50,000 files of 4 KiB", "files/s", SMALL_FILES, fill_small))
    for title, unit, amount, fill in contents:
        with (report.topic(f"streams, {title}"),
              tempfile.TemporaryDirectory(prefix="skycap-streams-", dir=arguments.directory) as name,
              tempfile.TemporaryDirectory(prefix="skycap-streams-", dir="/dev/shm") as memory,
              contextlib.ExitStack() as stack):
            directory = pathlib.Path(name)
            source, target = (mount_btrfs(stack, directory, side) for side in ("source", "target"))
            run("btrfs", "-q", "subvolume", "create", source / "volume")
            fill(source / "volume")
            run("btrfs", "-q", "subvolume", "snapshot", "-r", source / "volume", source / "sent")
            run("sync", "--file-system", source)
            streams = Streams(build / "tests/stream/stream-tool", source / "sent", target, pathlib.Path(memory))
            measure_contents(streams, title, unit, amount, arguments.repeats, report)
