# SPDX-License-Identifier: Apache-2.0
"""The volatile disk on this machine: a file of a FUSE file system with a loop device on it. And what
takes away the processes, mounts and loop devices of a boot whose power was cut."""

import os
import pathlib
import signal
import subprocess

from machine import wait_until

# Thaws and unmounts what is below a path, the uppermost first, as far as it is not in use. Prints
# what is left.
UNMOUNT = """
points() {
    awk -v below="$1" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac
}
for point in $(points "$1"); do fsfreeze --unfreeze "$point"; done 2>/dev/null
[ "$2" = thaw ] || for point in $(points "$1"); do umount "$point"; done 2>/dev/null
points "$1"
"""


def fuse_flags():
    flags = ["pkg-config", "--cflags", "--libs", "fuse3"]
    return subprocess.run(flags, check=True, capture_output=True, text=True).stdout.split()


def loop_files():
    found = {}
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            found["/dev/" + path.parts[3]] = path.read_text().strip()
        except OSError:
            pass  # it went meanwhile
    return found


def detach_loops(is_wanted):
    """Returns the devices that had such a file: they go with their last user."""
    devices = [device for device, file in loop_files().items() if is_wanted(file)]
    for device in devices:
        subprocess.run(["losetup", "--detach", device], stderr=subprocess.DEVNULL)
    return devices


def unmount(below, how, enter=()):
    """`how`: unmount or thaw. Returns the mount points that are left."""
    words = [*enter, "sh", "-c", UNMOUNT, "sh", below, how]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


def processes_in(namespace):
    """Of a mount namespace, by what its link says."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/mnt") == namespace:
                yield int(pid)
        except OSError:
            pass  # it ended meanwhile


def kill_processes(namespace, thaw):
    """`thaw`: who writes to a frozen file system cannot be killed."""

    def are_gone():
        pids = list(processes_in(namespace))
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if pids:
            thaw()
        return not pids

    wait_until(are_gone, "processes stay", 60)


class HostDisk:
    def __init__(self, program, image, statistics, place):
        """`place`: an empty directory for the FUSE file system."""
        self.program, self.image, self.statistics, self.place = program, image, statistics, place
        self.server = self.loop = None

    @property
    def file(self):
        return str(self.place / "disk")

    def attach(self, lies=False):
        """Returns the loop device."""
        self.server = subprocess.Popen(
            [self.program, self.image, self.statistics, "lying" if lies else "honest", self.place]
        )
        wait_until(lambda: os.path.exists(self.file), "the volatile disk is not there")
        attach = ["losetup", "--find", "--show", self.file]
        attached = subprocess.run(attach, check=True, capture_output=True, text=True)
        self.loop = attached.stdout.strip()
        return self.loop

    def cut(self, mode, seed):
        with open(self.place / "cut", "wb", buffering=0) as file:
            file.write(f"{mode} {seed}".encode())

    def clear(self):
        """Its file system is unmounted."""
        if self.loop:
            self.detach()
        if self.server:
            self.unmount_fuse()

    def detach(self):
        def is_gone():
            if loop_files().get(self.loop) != self.file:
                return True
            subprocess.run(["losetup", "--detach", self.loop], stderr=subprocess.DEVNULL)
            return False

        wait_until(is_gone, "the loop device of the disk stays", 60)
        self.loop = None

    def unmount_fuse(self):
        """Another process may hold a copy of the mount; it harms nobody."""
        if subprocess.run(["umount", self.place], stderr=subprocess.DEVNULL).returncode != 0:
            subprocess.run(["umount", "--lazy", self.place])
        self.server.kill()
        self.server.wait()
        self.server = None
