// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const contentSize = 1 * int(mib)

// content gives bytes that no compression makes smaller, the same for the same seed.
func content(seed uint64, size int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	data := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(data)
	return data
}

// file is where a volume's content is: a file in it, or itself.
func (p place) file() string {
	if p.capability.GetBlock() != nil {
		return p.target
	}
	return filepath.Join(p.target, "content")
}

func (t *trial) writeFile(path string, data []byte) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	t.ok("open for writing", err)
	defer file.Close()
	_, err = file.Write(data)
	t.ok("write", err)
	t.ok("fsync", file.Sync())
}

func (t *trial) write(p place, seed uint64) {
	t.writeFile(p.file(), content(seed, contentSize))
}

func (t *trial) reads(p place, seed uint64) {
	file, err := os.Open(p.file())
	t.ok("open for reading", err)
	defer file.Close()
	found := make([]byte, contentSize)
	_, err = io.ReadFull(file, found)
	t.ok("read", err)
	t.that(bytes.Equal(found, content(seed, contentSize)), "%s has its contents", p.file())
}

// refusesWrites tries to change what is at the place.
func (t *trial) refusesWrites(p place) {
	file, err := os.OpenFile(p.file(), os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		defer file.Close()
		_, err = file.Write(make([]byte, 4096))
		if err == nil {
			err = file.Sync()
		}
	}
	t.that(errors.Is(err, unix.EROFS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES),
		"a write to %s is refused (%v)", p.file(), err)
}

// ---- sizes ----

func (t *trial) fileSystem(path string) unix.Statfs_t {
	var found unix.Statfs_t
	t.ok("statfs", unix.Statfs(path, &found))
	return found
}

func (t *trial) fileSystemBytes(path string) int64 {
	found := t.fileSystem(path)
	return int64(found.Blocks) * found.Bsize
}

func (t *trial) deviceBytes(path string) int64 {
	file, err := os.Open(path)
	t.ok("open the device", err)
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	t.ok("seek", err)
	return size
}

// size is what the user of a volume sees: of the device, or of the file system.
func (t *trial) size(p place) int64 {
	if p.capability.GetBlock() != nil {
		return t.deviceBytes(p.target)
	}
	return t.fileSystemBytes(p.target)
}

func (t *trial) isReadOnlyDevice(path string) bool {
	file, err := os.Open(path)
	t.ok("open the device", err)
	defer file.Close()
	readOnly, err := unix.IoctlGetInt(int(file.Fd()), unix.BLKROGET)
	t.ok("BLKROGET", err)
	return readOnly != 0
}

// fill writes until there is no space, and tells how much there was.
func (t *trial) fill(path string) int64 {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	t.ok("open for writing", err)
	defer file.Close()
	data, total := content(99, int(256*kib)), int64(0)
	for err == nil {
		var written int
		written, err = file.Write(data)
		total += int64(written)
		if err == nil && total%(8*mib) == 0 {
			err = file.Sync()
		}
		t.that(total < 1024*mib, "it becomes full")
	}
	t.that(errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT), "there is no space: %v", err)
	return total
}

func (t *trial) syncFileSystem(path string) {
	directory, err := os.Open(path)
	t.ok("open", err)
	defer directory.Close()
	t.ok("syncfs", unix.Syncfs(int(directory.Fd())))
}

// hasCapability of this process, which has what the driver has.
func hasCapability(number int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[number/32].Effective&(1<<(number%32)) != 0
}

// ---- mounts ----

// mountOptions of what is mounted at the path on top, those of the point and of the file system; nil if there is nothing.
func (t *trial) mountOptions(path string) []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	t.ok("read the mounts", err)
	var options []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if fields[4] == path {
			options = strings.Split(fields[5]+","+fields[len(fields)-1], ",")
		}
	}
	return options
}

func (t *trial) isMounted(path string) bool {
	return t.mountOptions(path) != nil
}

// mountsBelow tells what is mounted in a directory.
func (t *trial) mountsBelow(directory string) []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	t.ok("read the mounts", err)
	var found []string
	for line := range strings.Lines(string(table)) {
		if at := strings.Fields(line)[4]; strings.HasPrefix(at, directory+"/") {
			found = append(found, at)
		}
	}
	return found
}
