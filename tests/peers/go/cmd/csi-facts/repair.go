// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// What has happened behind the driver's back is made good by the next call.
var repairFacts = slices.Concat(
	forKinds("published again after the target was unmounted", []kind{tree, ext4, device}, targetUnmounted),
	forKinds("published onto what others have mounted upon it", []kind{tree, ext4, device}, targetCovered),
	forKinds("staged again after the staging was unmounted", []kind{tree, ext4, xfs, btrfs}, stagingUnmounted),
	forKinds("unpublished and unstaged though nothing is mounted", []kind{tree, ext4}, undoneBehind),
	forKinds("deleted though rows say that it is used", []kind{tree, ext4}, deletedAfterUnmount),
)

// mountForeign mounts what no driver has mounted.
func (t *trial) mountForeign(path string) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		t.ok("bind a file", unix.Mount("/dev/null", path, "", unix.MS_BIND, ""))
	} else {
		t.ok("mount tmpfs", unix.Mount("tmpfs", path, "tmpfs", 0, "size=1m"))
	}
	t.later(func() error { _ = unix.Unmount(path, unix.MNT_DETACH); return nil })
}

func (t *trial) unmount(path string) {
	t.ok("unmount "+path, unix.Unmount(path, 0))
}

func targetUnmounted(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	t.unmount(p.target)
	t.ok("NodePublishVolume", t.tryPublish(p))
	t.reads(p, 1)
	t.unmount(p.target)
	t.ok("remove the target", os.RemoveAll(p.target))
	t.ok("NodePublishVolume", t.tryPublish(p))
	t.reads(p, 1)
}

func targetCovered(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	t.mountForeign(p.target)
	t.ok("NodePublishVolume", t.tryPublish(p))
	t.reads(p, 1)
	t.ok("NodeUnpublishVolume", t.unpublish(p))
	_, err := os.Lstat(p.target)
	t.that(os.IsNotExist(err), "the target path is removed")
}

func stagingUnmounted(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	t.unmount(p.target)
	t.unmount(p.staging)
	t.code("NodePublishVolume without its staging", t.tryPublish(p), codes.FailedPrecondition)
	t.ok("NodeStageVolume", t.tryStage(p))
	t.ok("NodePublishVolume", t.tryPublish(p))
	t.reads(p, 1)
}

func undoneBehind(t *trial, k kind) {
	p := t.used(k)
	t.unmount(p.target)
	t.unmount(p.staging)
	t.release(p)
	t.ok("DeleteVolume", t.deleteVolume(p.id))
}

func deletedAfterUnmount(t *trial, k kind) {
	p := t.used(k)
	t.unmount(p.target)
	t.unmount(p.staging)
	t.ok("DeleteVolume", t.deleteVolume(p.id))
	t.ok("remove the target", os.RemoveAll(p.target))
}
