# SPDX-License-Identifier: Apache-2.0
"""Machines whose power can be cut: the data directory of a server is on a disk that loses what was
not flushed (tests/power), and each boot has a boot id of its own.

At the cut the server is stopped first: whatever it has answered, it answered before the cut.
"""

import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "power"))
import host_disk  # noqa: E402
from machine import build_disk  # noqa: E402
from processes import wait_until  # noqa: E402

DISK_BYTES = 8 << 30
MODES = ("drop", "drop", "blocks")
BOOT_ID = "/proc/sys/kernel/random/boot_id"
WITH_BOOT_ID = f'mount --bind "$0" {BOOT_ID} && exec "$@"'


def share_mounts(base):
    """Below the directory the servers and this test see the same mounts; elsewhere each its own."""
    subprocess.run(["mount", "--bind", base, base], check=True)
    subprocess.run(["mount", "--make-shared", base], check=True)


def build(base):
    return build_disk(base, "volatile-disk-fuse", *host_disk.fuse_flags())


def is_stopped(pid):
    """All threads stop, or do before they return from the kernel."""
    try:
        stats = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return False  # a thread has ended meanwhile
    states = [stat.rpartition(")")[2].split()[0] for stat in stats]
    return all(state in "TtDZ" for state in states) and any(state in "TtZ" for state in states)


class PowerMachine:
    def __init__(self, name, base, program):
        self.name = name
        self.data = base / f"{name}.data"
        self.users = base / "at" / name  # where its volumes are published
        self.boot_id = base / f"{name}.boot_id"
        self.cuts = 0  # rises before anything is lost
        image, place = base / f"{name}.disk", base / f"{name}.fuse"
        for directory in (self.data, self.users, place):
            directory.mkdir(parents=True)
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        self.disk = host_disk.HostDisk(program, image, base / f"{name}.losses", place)

    def command(self, words):
        """In a mount namespace for the boot id."""
        enter = ["unshare", "--mount", "--propagation", "unchanged"]
        return [*enter, "sh", "-c", WITH_BOOT_ID, str(self.boot_id), *words]

    def boot(self):
        self.boot_id.write_text(pathlib.Path("/proc/sys/kernel/random/uuid").read_text())
        loop = self.disk.attach()
        subprocess.run(["mount", "-t", "ext4", loop, self.data], check=True)

    def cut(self, process, rng):
        """The process runs."""
        self.cuts += 1
        pid, mode = process.process.pid, rng.choice(MODES)
        process.stop()
        if not wait_until(lambda: is_stopped(pid), 20, 0.002):
            raise TimeoutError(f"{self.name} does not stop")
        self.disk.cut(mode, rng.getrandbits(30))
        self.clear(process)
        return mode

    def unmount(self, how):
        return [*host_disk.unmount(f"{self.users}/", how), *host_disk.unmount(str(self.data), how)]

    def are_mounts_gone(self):
        left = self.unmount("unmount")
        below = f"{self.data}/"
        return not left and not host_disk.detach_loops(lambda file: file.startswith(below))

    def clear(self, process):
        """Takes away what is left of a boot; harmless if there is nothing."""
        namespace = None
        if process and process.is_running():
            # Open, so that loop devices name their files by their whole paths until they are gone.
            namespace = os.open(f"/proc/{process.process.pid}/ns/mnt", os.O_RDONLY)
            inside = os.readlink(f"/proc/self/fd/{namespace}")
            if inside != os.readlink("/proc/self/ns/mnt"):  # unless it was only about to start
                host_disk.kill_processes(inside, lambda: self.unmount("thaw"))
            process.kill()
        if not wait_until(self.are_mounts_gone, 60, 0.01):
            raise TimeoutError(f"mounts or loop devices of {self.name} stay")
        if namespace is not None:
            os.close(namespace)
        self.disk.clear()
