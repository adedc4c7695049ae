# SPDX-License-Identifier: Apache-2.0
"""A machine whose power can be cut, on this one: each boot is a mount namespace with a boot id of
its own, and its disk a loop device on the volatile disk.

At the cut the guest is stopped, and then the disk is cut between two requests: the image changes no
more. The processes and mounts of that boot are cleared away; what they still write goes to memory
only.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from host_disk import HostDisk, detach_loops, fuse_flags, kill_processes, unmount
from machine import HERE, Machine, build_disk, wait_until

CAP_SYS_RESOURCE = 24

# Begins a boot, in a new mount namespace. Its copies of the mounts of others would keep their
# devices in use. By the boot id skycap knows that the machine was started again.
BEGIN = """
awk -v own="$1/" '/ - [^ ]+ .dev.loop/ && index($5, own) != 1 { print $5 }' /proc/self/mountinfo |
    tac | xargs --no-run-if-empty umount --lazy 2>/dev/null
mount -t tmpfs tmpfs "$1/guest" &&
    cat /proc/sys/kernel/random/uuid >"$1/guest/boot_id" &&
    mount --bind "$1/guest/boot_id" /proc/sys/kernel/random/boot_id || exit
shift
exec "$@"
"""


def may_grow_ext4():
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1)


class HostMachine(Machine):
    def __init__(self, work, skycap):
        super().__init__(work)
        self.grows_ext4 = may_grow_ext4()
        self.skycap = shutil.copy(skycap, work)  # a build meanwhile changes nothing
        self.base = str(work / "guest")
        program = build_disk(work, "volatile-disk-fuse", *fuse_flags())
        os.mkdir(self.base)
        os.mkdir(work / "fuse")
        self.disk = HostDisk(program, self.image, self.statistics, work / "fuse")
        self.guest = self.namespace = None

    def boot(self, task, lies=False):
        loop = self.disk.attach(lies)
        self.write_task(task, base=self.base, disk=loop, skycap=str(self.skycap))
        self.start_guest()

    def start_guest(self):
        words = ["unshare", "--mount", "--propagation", "private"]
        words += ["sh", "-c", BEGIN, "sh", self.work]
        words += [sys.executable, HERE / "guest.py", self.task, self.record]
        paths = {"PYTHONPATH": str(self.work), "PYTHONDONTWRITEBYTECODE": "1"}
        self.guest = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, env=dict(os.environ, **paths)
        )
        own = os.readlink("/proc/self/ns/mnt")
        link = f"/proc/{self.guest.pid}/ns/mnt"
        wait_until(lambda: os.readlink(link) != own, "the guest has no mount namespace")
        self.namespace = os.open(link, os.O_RDONLY)  # it stays as long as this is open

    def has_ended(self):
        return self.guest.poll() is not None

    def cut(self, mode, seed, read_record):
        """Nobody answers between the reading of the record and the cut."""
        self.stop_guest()
        read_record()
        self.disk.cut(mode, seed)
        self.clear()
        return self.read_losses()

    def stop_guest(self):
        self.guest.send_signal(signal.SIGSTOP)
        tasks = f"/proc/{self.guest.pid}/task"

        def is_stopped():
            states = [
                pathlib.Path(f"{tasks}/{task}/stat").read_text().rsplit(")", 1)[1].split()[0]
                for task in os.listdir(tasks)
            ]
            return all(state in "TtZ" for state in states)

        wait_until(is_stopped, "the guest does not stop")

    def clear(self):
        if self.namespace is not None:
            kill_processes(os.readlink(f"/proc/self/fd/{self.namespace}"), self.thaw)
            self.guest.wait()
            wait_until(self.are_mounts_gone, "mounts or loop devices of the guest stay", 60)
            os.close(self.namespace)
            self.namespace = None
        self.disk.clear()

    def thaw(self):
        self.unmount("thaw")

    def unmount(self, how):
        enter = ["nsenter", f"--mount=/proc/{os.getpid()}/fd/{self.namespace}"]
        return unmount(self.base + "/", how, enter)

    def are_mounts_gone(self):
        """Volumes first, then the pool, then the disk: each can go when nothing is left on it."""
        left = self.unmount("unmount")
        below = self.base + "/disk/"
        devices = detach_loops(lambda file: file.startswith(below) or file == self.disk.loop)
        return not left and not devices
