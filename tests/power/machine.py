# SPDX-License-Identifier: Apache-2.0
"""What the two kinds of machine have in common. A machine has

boot(task, lies)               starts guest.py in it, on the disk as it is
has_ended()                    the guest is gone without a cut
cut(mode, seed, read_record)   cuts the power; returns what was lost. What `read_record` reads was
                               answered before the cut
clear()                        takes away whatever is left of a boot; harmless if there is nothing
"""

import json
import pathlib
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-O2"]


def wait_until(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.002)


def build_disk(work, name, *flags):
    program = work / name
    sources = [HERE / f"{name}.c", HERE / "volatile_disk.c"]
    subprocess.run(["gcc", *FLAGS, "-o", program, *sources, *flags], check=True)
    return program


class Machine:
    grows_ext4 = True  # while it is mounted
    slowness = 1  # time limits are longer by this factor
    pace = 1  # the power is cut later by this factor

    def __init__(self, work):
        self.work = work
        self.image = work / "disk.img"
        self.record = work / "record"
        self.task = work / "task"
        self.statistics = work / "statistics"

    def write_task(self, task, **more):
        self.record.write_bytes(b"")
        self.task.write_text(json.dumps(dict(task, **more)))

    def read_losses(self):
        return json.loads(self.statistics.read_text().splitlines()[-1])
