# SPDX-License-Identifier: Apache-2.0
"""The control: of each kind one thing that is flushed and one that is not, on the bare disk, on its
file system, and in a volume. After a cut the first is there and the second is not. A lying disk
loses both."""

import mmap
import os

from calls import MIB, content, write_file

PAGE = 4096
RAW_BYTES = 2 * PAGE  # at the end of the disk, behind the file system
FILE_BYTES = 50000


class RawPages:
    """Pages at the end of the disk, read and written past the kernel's cache."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.start = os.lseek(self.fd, 0, os.SEEK_END) - RAW_BYTES
        self.page = mmap.mmap(-1, PAGE)

    def write(self, number, byte):
        self.page[:] = bytes([byte]) * PAGE
        os.pwritev(self.fd, [self.page], self.start + number * PAGE)

    def has(self, number, byte):
        os.preadv(self.fd, [self.page], self.start + number * PAGE)
        return self.page[:] == bytes([byte]) * PAGE

    def flush(self):
        os.fsync(self.fd)


def is_whole(path, tag):
    try:
        with open(path, "rb") as file:
            return file.read() == content(tag, FILE_BYTES)
    except OSError:
        return False


def write(guest, begin):
    """Flushed things first; behind them nothing is flushed any more."""
    tag = guest.task["tag"]
    pages = RawPages(guest.task["disk"])
    pages.write(0, guest.task["byte"])
    pages.flush()
    if not begin(guest):
        return
    if "control" not in guest.model.volumes:
        guest.calls.create("control", "tree", 64 * MIB)
    guest.calls.publish("control")
    volume = guest.calls.targets + "control"
    for path in (guest.disk, volume):
        write_file(f"{path}/flushed-{tag}", content(tag, FILE_BYTES), True)
    for path in (guest.disk, volume):
        write_file(f"{path}/loose-{tag}", content(tag, FILE_BYTES), False)
    pages.write(1, guest.task["byte"])
    guest.note("written")


def check(guest, begin):
    tag = guest.task["tag"]
    pages = RawPages(guest.task["disk"])
    found = {
        "flushed on the disk": pages.has(0, guest.task["byte"]),
        "loose on the disk": pages.has(1, guest.task["byte"]),
    }
    volume = guest.calls.targets + "control"
    if begin(guest) and "control" in guest.model.volumes:
        guest.calls.publish("control")
    for where, path in (("file system", guest.disk), ("volume", volume)):
        for what in ("flushed", "loose"):
            found[f"{what} in the {where}"] = is_whole(f"{path}/{what}-{tag}", tag)
    guest.note("found", found=found)
