# SPDX-License-Identifier: Apache-2.0
"""Trees for the tests of streams: describe(), compare(), and random changes with a seed."""

import errno
import fcntl
import hashlib
import os
import random
import shutil
import stat
import struct

FICLONERANGE = 0x4020940D
# Attributes that belong to the host or to one file system; xfs shows its access lists a second time.
HOST_XATTRS = ("security.selinux", "btrfs.", "trusted.SGI_ACL_")
MAX_BYTES = 300_000


def read_xattrs(path):
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return {}
        raise
    return {name: os.getxattr(path, name, follow_symlinks=False)
            for name in names if not name.startswith(HOST_XATTRS)}


def find_data(path, size):
    """The ranges of the file that are not holes."""
    ranges, position = [], 0
    with open(path, "rb") as file:
        while position < size:
            try:
                start = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                raise
            position = min(size, os.lseek(file.fileno(), start, os.SEEK_HOLE))
            ranges.append((start, position))
    return tuple(ranges)


def read_sum(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def describe_entry(path, first_names, name, with_holes):
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    facts = {"mode": oct(status.st_mode), "owner": (status.st_uid, status.st_gid),
             "mtime": status.st_mtime_ns, "atime": status.st_atime_ns, "xattrs": read_xattrs(path)}
    if kind != stat.S_IFDIR:
        facts["links"] = status.st_nlink
        facts["first name"] = first_names.setdefault((status.st_dev, status.st_ino), name)
    if kind == stat.S_IFREG:
        facts["size"] = status.st_size
        facts["sum"] = read_sum(path)
        if with_holes:
            facts["data"] = find_data(path, status.st_size)
    elif kind == stat.S_IFLNK:
        facts["target"] = os.readlink(path)
    elif kind in (stat.S_IFCHR, stat.S_IFBLK):
        facts["device"] = status.st_rdev
    return facts


def describe(root, with_holes=False):
    """All facts about a tree that a stream carries, by path. Needs a mount with noatime."""
    entries, first_names, todo = {}, {}, [b""]
    while todo:
        name = todo.pop()
        path = os.path.join(os.fsencode(root), name) if name else os.fsencode(root)
        entries[name] = describe_entry(path, first_names, name, with_holes)
        if stat.S_ISDIR(os.lstat(path).st_mode):
            todo += [os.path.join(name, entry) for entry in sorted(os.listdir(path))]
    return entries


def differences(left, right):
    """Lines that tell what differs, at most ten."""
    lines = []
    for name in sorted(left.keys() | right.keys()):
        if name not in left or name not in right:
            lines.append(f"{name!r} is only in the {'first' if name in left else 'second'} tree")
        elif left[name] != right[name]:
            lines += [f"{name!r}: {fact}: {str(left[name].get(fact)):.200} and {str(right[name].get(fact)):.200}"
                      for fact in left[name].keys() | right[name].keys()
                      if left[name].get(fact) != right[name].get(fact)]
    return lines[:10]


def acl(user, group, named, other, mask):
    """A POSIX access list with an entry for user 1000, as the kernel keeps it."""
    undefined = 0xFFFFFFFF
    entries = [(1, user, undefined), (2, named, 1000), (4, group, undefined), (16, mask, undefined),
               (32, other, undefined)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def capability():
    """CAP_NET_RAW, permitted and effective."""
    return struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)


class RandomTree:
    """Changes a tree at random; the same seed makes the same changes."""

    def __init__(self, root, seed, can_clone=False):
        self.root = root
        self.random = random.Random(seed)
        self.can_clone = can_clone
        self.made = 0

    def path(self, name):
        return os.path.join(self.root, name)

    def list(self, wanted):
        """The names of all entries for which wanted(mode) holds, sorted."""
        names = []
        for directory, folders, files in os.walk(self.root):
            folders.sort()
            names += [os.path.relpath(os.path.join(directory, name), self.root)
                      for name in sorted(folders + files)]
        return [name for name in names if wanted(os.lstat(self.path(name)).st_mode)]

    def choose(self, wanted):
        names = self.list(wanted)
        return self.random.choice(names) if names else None

    def new_name(self):
        """In a directory of the tree; half of the time a name that has been used before."""
        self.made += 1
        directory = self.random.choice([""] + self.list(stat.S_ISDIR))
        number = self.random.randrange(12) if self.random.random() < 0.5 else self.made
        return os.path.join(directory, f"n{number}")

    def free_name(self):
        for _ in range(20):
            name = self.new_name()
            if not os.path.lexists(self.path(name)):
                return name
        return os.path.join(f"free{self.made}-{self.random.randrange(10**9)}")

    def bytes(self, size):
        return self.random.randbytes(size)

    def make_file(self):
        with open(self.path(self.free_name()), "xb") as file:
            for _ in range(self.random.randrange(4)):
                file.seek(self.random.randrange(MAX_BYTES))
                file.write(self.bytes(self.random.choice([1, 100, 4096, 20_000, 140_000])))

    def make_directory(self):
        os.mkdir(self.path(self.free_name()))

    def make_other(self):
        path = self.path(self.free_name())
        kind = self.random.randrange(5)
        if kind == 0:
            os.symlink("/etc/" + "x" * self.random.randrange(1, 200), path)
        elif kind == 1:
            os.mkfifo(path)
        elif kind == 2:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        elif kind == 3:
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(259, 70_000))
        else:
            os.mknod(path, stat.S_IFSOCK | 0o600)

    def make_link(self):
        name = self.choose(lambda mode: not stat.S_ISDIR(mode))
        if name:
            os.link(self.path(name), self.path(self.free_name()), follow_symlinks=False)

    def write(self):
        name = self.choose(stat.S_ISREG)
        if name:
            with open(self.path(name), "r+b") as file:
                file.seek(self.random.randrange(MAX_BYTES))
                file.write(self.bytes(self.random.choice([10, 5000, 70_000])))

    def truncate(self):
        name = self.choose(stat.S_ISREG)
        if name:
            os.truncate(self.path(name), self.random.randrange(MAX_BYTES))

    def clone(self):
        """Shares extents between two files, or two places of one."""
        source, target = self.choose(stat.S_ISREG), self.choose(stat.S_ISREG)
        if not source or not self.can_clone:
            return
        blocks = os.stat(self.path(source)).st_size // 4096
        if blocks < 2:
            return
        start = self.random.randrange(blocks)
        count = self.random.randrange(1, blocks - start + 1)
        to = self.random.randrange(MAX_BYTES // 4096)
        with open(self.path(source), "rb") as reader, open(self.path(target), "r+b") as writer:
            try:
                fcntl.ioctl(writer, FICLONERANGE,
                            struct.pack("=qQQQ", reader.fileno(), start * 4096, count * 4096, to * 4096))
            except OSError as error:
                if error.errno != errno.EINVAL:  # the ranges overlap
                    raise

    def rename(self):
        name = self.choose(lambda mode: True)
        if not name:
            return
        other = self.free_name()
        if not (other + "/").startswith(name + "/"):
            os.rename(self.path(name), self.path(other))

    def replace(self):
        """Moves a file over another one."""
        name, other = (self.choose(lambda mode: not stat.S_ISDIR(mode)) for _ in range(2))
        if name and name != other:
            os.rename(self.path(name), self.path(other))

    def exchange(self):
        """Two entries get each other's names."""
        name, other = (self.choose(lambda mode: True) for _ in range(2))
        if not name or (name + "/").startswith(other + "/") or (other + "/").startswith(name + "/"):
            return
        aside = self.path("aside")
        os.rename(self.path(name), aside)
        os.rename(self.path(other), self.path(name))
        os.rename(aside, self.path(other))

    def remove(self):
        name = self.choose(lambda mode: True)
        if not name:
            return
        path = self.path(name)
        if stat.S_ISDIR(os.lstat(path).st_mode):
            if self.random.random() < 0.5:
                shutil.rmtree(path)
        else:
            os.unlink(path)

    def set_metadata(self):
        name = self.choose(lambda mode: True)
        if not name:
            return
        path = self.path(name)
        mode = os.lstat(path).st_mode
        os.chown(path, self.random.randrange(3), self.random.randrange(3), follow_symlinks=False)
        if not stat.S_ISLNK(mode):
            os.chmod(path, self.random.choice([0o644, 0o4755, 0o2750, 0o1777, 0o600]))
        times = tuple(self.random.randrange(2 * 10**18) for _ in range(2))
        os.utime(path, ns=times, follow_symlinks=False)

    def set_xattr(self):
        name = self.choose(lambda mode: stat.S_ISREG(mode) or stat.S_ISDIR(mode))
        if not name:
            return
        path = self.path(name)
        for known in os.listxattr(path):
            if self.random.random() < 0.3 and not known.startswith(HOST_XATTRS):
                os.removexattr(path, known)
        os.setxattr(path, f"user.x{self.random.randrange(3)}", self.bytes(self.random.randrange(200)))
        os.setxattr(path, "trusted.y", b"")
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode) and self.random.random() < 0.3:
            os.setxattr(path, "security.capability", capability())
        if self.random.random() < 0.3:
            os.setxattr(path, "system.posix_acl_access", acl(7, 5, 6, 4, 7))
        if stat.S_ISDIR(mode) and self.random.random() < 0.3:
            os.setxattr(path, "system.posix_acl_default", acl(7, 5, 6, 4, 7))

    def change(self, count):
        choices = ([self.make_file] * 5 + [self.make_directory] * 3 + [self.make_other] * 2 +
                   [self.make_link] * 2 + [self.write] * 3 + [self.truncate] + [self.clone] * 2 +
                   [self.rename] * 4 + [self.replace] + [self.exchange] * 2 + [self.remove] * 4 +
                   [self.set_metadata] * 3 + [self.set_xattr] * 2)
        for _ in range(count):
            self.random.choice(choices)()
