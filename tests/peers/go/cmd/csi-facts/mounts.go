// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// What is mounted, and how.
var mountFacts = slices.Concat(
	forKinds("flags of the mount point", []kind{tree, ext4, xfs}, pointFlags),
	forKinds("a flag that is not known is refused", []kind{tree, ext4, xfs, btrfs}, unknownFlag),
	forKinds("the flag ro", []kind{tree, ext4}, flagReadOnly),
	forKinds("the volume belongs to its mount group", []kind{tree, ext4}, mountGroup),
	forKinds("a mount group that is none is refused", []kind{tree, ext4}, badMountGroup),
	[]fact{
		{"fs_type is what is mounted", fileSystemTypes},
		{"fs_type that is not known is refused", unknownFileSystem},
		{"flags of the file system", fileSystemFlags},
		{"flags of a publication alone", flagsOfPublication},
		{"the parameter kind makes an image", imageByParameter},
		{"compression is set and changed", compression},
	},
)

func fileSystemTypes(t *trial) {
	for k, magic := range map[string]int64{"ext4": unix.EXT4_SUPER_MAGIC, "xfs": unix.XFS_SUPER_MAGIC, "btrfs": unix.BTRFS_SUPER_MAGIC} {
		i := slices.IndexFunc(allKinds, func(c kind) bool { return c.name == k })
		p := t.used(allKinds[i])
		equal(t, "the magic number of "+k, t.fileSystem(p.target).Type, magic)
		info, err := os.Stat(p.target)
		t.ok("stat", err)
		t.that(info.IsDir(), "it is a directory")
	}
	for _, name := range []string{"", "none"} {
		p := t.used(kind{"tree", func() *csi.VolumeCapability { return mounted(name) }, tree.size})
		entries, err := os.ReadDir(p.target)
		t.ok("read the directory", err)
		equal(t, "entries in a new directory", len(entries), 0)
	}
	info, err := os.Stat(t.used(device).target)
	t.ok("stat", err)
	t.that(info.Mode().Type() == os.ModeDevice, "a block volume is a block device")
}

func unknownFileSystem(t *trial) {
	for _, name := range []string{"ntfs", "ext3", "../ext4", "EXT4", strings.Repeat("x", 129), "ext4,xfs"} {
		request := t.request(ext4)
		request.VolumeCapabilities = []*csi.VolumeCapability{mounted(name)}
		_, err := t.tryCreate(request)
		t.code("fs_type "+name, err, codes.InvalidArgument)
	}
	request := t.request(xfs)
	request.VolumeCapabilities = []*csi.VolumeCapability{mounted("xfs"), mounted("ext4")}
	_, err := t.tryCreate(request)
	t.code("xfs and ext4 at once", err, codes.InvalidArgument)
}

func withFlags(k kind, flags ...string) *csi.VolumeCapability {
	capability := k.capability()
	capability.GetMount().MountFlags = flags
	return capability
}

func (t *trial) hasOptions(path string, wanted ...string) {
	found := t.mountOptions(path)
	for _, option := range wanted {
		t.that(slices.Contains(found, option), "%s is mounted with %s (%v)", path, option, found)
	}
}

func pointFlags(t *trial, k kind) {
	p := t.use(t.create(t.request(k)), withFlags(k, "noexec", "nodev", "nosuid", "noatime"))
	t.hasOptions(p.target, "rw", "noexec", "nodev", "nosuid", "noatime")
	t.ok("NodeStageVolume again", t.tryStage(p))
	t.ok("NodePublishVolume again", t.tryPublish(p))
	p.readOnly, p.target = true, t.path("second")
	t.code("a second publication", t.tryPublish(p), codes.FailedPrecondition)
}

func fileSystemFlags(t *trial) {
	p := t.use(t.create(t.request(ext4)), withFlags(ext4, "errors=remount-ro", "nodelalloc", "noatime"))
	t.hasOptions(p.target, "nodelalloc", "errors=remount-ro", "noatime")
	p = t.use(t.create(t.request(btrfs)), withFlags(btrfs, "compress=zstd"))
	t.hasOptions(p.target, "compress=zstd:3")
	p = t.use(t.create(t.request(xfs)), withFlags(xfs, "wsync"))
	t.hasOptions(p.target, "wsync")
}

func flagsOfPublication(t *trial) {
	p := t.stage(t.create(t.request(tree)), withMode(tree.capability(), manyWriters))
	p.capability = withMode(withFlags(tree, "noexec", "noatime"), manyWriters)
	t.publish(p)
	t.hasOptions(p.target, "noexec", "noatime")
	t.that(!slices.Contains(t.mountOptions(p.staging), "noexec"), "the staging is not touched by it")
}

func unknownFlag(t *trial, k kind) {
	volume := t.create(t.request(k))
	p := place{id: volume.VolumeId, capability: withFlags(k, "no-such-flag"), staging: t.directory("staging"), target: t.path("target")}
	t.code("NodeStageVolume", t.tryStage(p), codes.InvalidArgument)
	t.that(!t.isMounted(p.staging), "nothing stays mounted")
	p.capability = k.capability()
	t.later(func() error { return t.unstage(p) })
	t.ok("NodeStageVolume without the flag", t.tryStage(p))
	t.write(t.publish(p), 1)
}

func flagReadOnly(t *trial, k kind) {
	p := t.use(t.create(t.request(k)), withFlags(k, "ro"))
	t.refusesWrites(p)
	open, err := os.Open(p.target)
	t.ok("open the directory", err)
	defer open.Close()
	t.ok("NodeStageVolume again", t.tryStage(p))
	t.ok("NodePublishVolume again, while it is in use", t.tryPublish(p))
}

// ---- mount groups ----

const group = 4711

func mountGroup(t *trial, k kind) {
	volume := t.create(t.request(k))
	p := t.use(volume, k.capability())
	t.write(p, 1)
	t.ok("make a directory", os.Mkdir(filepath.Join(p.target, "sub"), 0o700))
	t.ok("make a link out of the volume", os.Symlink("/etc/hostname", filepath.Join(p.target, "link")))
	t.release(p)
	p = t.use(volume, inGroup(k.capability(), "4711"))
	t.belongsTo(p.target, group)
	t.belongsTo(p.file(), group)
	t.belongsTo(filepath.Join(p.target, "sub"), group)
	info, err := os.Stat(p.target)
	t.ok("stat", err)
	t.that(info.Mode()&os.ModeSetgid != 0, "new files get the group of the directory")
	equal(t, "permissions of the group", info.Mode().Perm()&0o070, 0o070)
	t.writeFile(filepath.Join(p.target, "new"), []byte("x"))
	t.belongsTo(filepath.Join(p.target, "new"), group)
	t.reads(p, 1)
	t.belongsTo("/etc/hostname", 0)
}

func (t *trial) belongsTo(path string, group uint32) {
	info, err := os.Stat(path)
	t.ok("stat", err)
	equal(t, "the group of "+path, info.Sys().(*syscall.Stat_t).Gid, group)
}

func badMountGroup(t *trial, k kind) {
	volume := t.create(t.request(k))
	for _, name := range []string{"users", "-1", "4294967295", "99999999999999999999", "12x", " 12", strings.Repeat("1", 129)} {
		p := place{id: volume.VolumeId, capability: inGroup(k.capability(), name), staging: t.directory("staging")}
		t.code("NodeStageVolume for "+name, t.tryStage(p), codes.InvalidArgument)
		t.that(!t.isMounted(p.staging), "nothing stays mounted")
	}
	t.ok("DeleteVolume", t.deleteVolume(volume.VolumeId))
}

// ---- parameters ----

func imageByParameter(t *trial) {
	request := t.request(kind{"", func() *csi.VolumeCapability { return mounted("") }, ext4.size})
	request.Parameters = map[string]string{"kind": "image"}
	p := t.use(t.create(request), mounted(""))
	equal(t, "the magic number", t.fileSystem(p.target).Type, unix.EXT4_SUPER_MAGIC)
	for key, value := range map[string]string{"kind": "other", "nocow": "yes", "unknown": "x", "compression": "rle"} {
		request = t.request(tree)
		request.Parameters = map[string]string{key: value}
		_, err := t.tryCreate(request)
		t.code("parameter "+key+"="+value, err, codes.InvalidArgument)
	}
	request = t.request(device)
	request.Parameters = map[string]string{"kind": "tree"}
	_, err := t.tryCreate(request)
	t.code("a tree as a block device", err, codes.InvalidArgument)
}

func compression(t *trial) {
	request := t.request(tree)
	request.MutableParameters = map[string]string{"compression": "zstd"}
	volume, err := t.tryCreate(request)
	if !t.compresses {
		t.code("compression where there is none", err, codes.InvalidArgument)
		return
	}
	t.ok("CreateVolume", err)
	p := t.use(volume, tree.capability())
	t.isCompressedBy(p.target, "zstd")
	_, err = t.ControllerModifyVolume(t.ctx, &csi.ControllerModifyVolumeRequest{VolumeId: volume.VolumeId,
		MutableParameters: map[string]string{"compression": "lzo"}})
	t.ok("ControllerModifyVolume", err)
	t.isCompressedBy(p.target, "lzo")
}

func (t *trial) isCompressedBy(path, wanted string) {
	value := make([]byte, 32)
	size, err := unix.Getxattr(path, "btrfs.compression", value)
	t.ok("ask for the compression", err)
	equal(t, "the compression", string(value[:size]), wanted)
}
