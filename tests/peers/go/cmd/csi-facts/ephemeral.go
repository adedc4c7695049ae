// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// Volumes that live as long as one workload.
var ephemeralFacts = []fact{
	{"an inline volume comes and goes with its publication", inlineVolume},
	{"an inline volume has its size and file system", inlineSize},
	{"an inline volume that cannot be is refused", inlineRefused},
	{"an inline volume is asked about by its id", inlineAsked},
}

// inline is an id as kubelet makes them.
const inline = "csi-5f2c8b9e07d6c1a4f3b2e1d0c9b8a7968574635241302f1e0d9c8b7a69584736"

func (t *trial) tryInline(p place, context map[string]string) error {
	all := map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "pod"}
	for key, value := range context {
		all[key] = value
	}
	_, err := t.NodePublishVolume(t.ctx, &csi.NodePublishVolumeRequest{VolumeId: p.id, TargetPath: p.target,
		VolumeCapability: p.capability, VolumeContext: all, Readonly: p.readOnly})
	return err
}

func (t *trial) inline(capability *csi.VolumeCapability, context map[string]string) place {
	p := place{id: inline, capability: capability, target: t.path("target")}
	t.later(func() error { return t.unpublish(p) })
	t.ok("NodePublishVolume", t.tryInline(p, context))
	return p
}

func inlineVolume(t *trial) {
	before := t.volumes()
	p := t.inline(mounted(""), nil)
	t.write(p, 1)
	t.ok("again", t.tryInline(p, nil))
	t.reads(p, 1)
	t.that(slices.Equal(t.volumes(), before), "it is not listed")
	for range 2 {
		t.ok("NodeUnpublishVolume", t.unpublish(p))
		_, err := os.Lstat(p.target)
		t.that(os.IsNotExist(err), "the target path is removed")
	}
	p = t.inline(mounted(""), nil)
	_, err := os.Stat(p.file())
	t.that(os.IsNotExist(err), "it is empty the next time")
}

func inlineSize(t *trial) {
	p := t.inline(mounted("ext4"), map[string]string{"size": "32Mi"})
	equal(t, "the magic number", t.fileSystem(p.target).Type, unix.EXT4_SUPER_MAGIC)
	t.that(t.fileSystemBytes(p.target) <= 32*mib, "it has its size")
	t.ok("NodeUnpublishVolume", t.unpublish(p))
	if t.enforcesTrees {
		p = t.inline(mounted(""), map[string]string{"size": "16Mi"})
		t.near("written", t.fill(p.file()), 16*mib)
	}
}

func inlineRefused(t *trial) {
	p := place{id: inline, capability: block(), target: t.path("target")}
	t.code("as a block device", t.tryInline(p, nil), codes.InvalidArgument)
	p.capability = mounted("")
	t.code("with a bad size", t.tryInline(p, map[string]string{"size": "large"}), codes.InvalidArgument)
	t.code("with a negative size", t.tryInline(p, map[string]string{"size": "-5Mi"}), codes.InvalidArgument)
	t.code("with an unknown parameter", t.tryInline(p, map[string]string{"colour": "red"}), codes.InvalidArgument)
	p.target = filepath.Join(t.path("missing"), "target")
	t.code("without a directory above", t.tryInline(p, nil), codes.FailedPrecondition)
	t.ok("NodeUnpublishVolume", t.unpublish(p))
}

func inlineAsked(t *trial) {
	p := t.inline(mounted(""), nil)
	t.that(t.stats(p)[csi.VolumeUsage_BYTES] != nil, "it has stats")
	response, err := t.NodeGetVolumeHealth(t.ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: p.id})
	t.ok("NodeGetVolumeHealth", err)
	equal(t, "complaints", len(response.VolumeHealth.HealthStatuses), 0)
	p.target = t.path("second")
	t.later(func() error { return t.unpublish(p) })
	t.code("at a second path", t.tryInline(p, nil), codes.FailedPrecondition)
}
