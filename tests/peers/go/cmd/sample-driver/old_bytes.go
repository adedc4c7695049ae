// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What volumes hold when they are made, with --old-bytes.
var oldBytes = []byte("what another volume has left here\n")

func run(command ...string) (string, error) {
	output, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return "", status.Errorf(codes.Internal, "%s: %v: %s", strings.Join(command, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

func (d *driver) imageOf(id string) string {
	return filepath.Join(d.oldBytes, strings.ReplaceAll(id, "/", "-"))
}

// makeImage is what thick LVM does: the volume is a part of the disk as others have left it.
func (d *driver) makeImage(v *volume) error {
	content := bytes.Repeat(oldBytes, int(v.CapacityBytes)/len(oldBytes)+1)[:v.CapacityBytes]
	return os.WriteFile(d.imageOf(v.VolumeId), content, 0o600)
}

// publishOld publishes a raw volume as a loop device, another as a directory with a file in it.
func (d *driver) publishOld(request *csi.NodePublishVolumeRequest) error {
	target := request.TargetPath
	if request.VolumeCapability.GetBlock() == nil {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, "old"), oldBytes, 0o600)
	}
	if found, err := os.Stat(target); err == nil && found.Mode()&os.ModeDevice != 0 {
		return nil
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		return err
	}
	device, err := run("losetup", "--find", "--show", d.imageOf(request.VolumeId))
	if err == nil {
		_, err = run("mount", "--bind", device, target)
	}
	return err
}

func (d *driver) unpublishOld(request *csi.NodeUnpublishVolumeRequest) error {
	target := request.TargetPath
	if found, err := os.Stat(target); err == nil && found.Mode()&os.ModeDevice != 0 {
		if _, err := run("umount", target); err != nil {
			return err
		}
		devices, err := run("losetup", "--noheadings", "--output", "NAME", "--associated", d.imageOf(request.VolumeId))
		if err != nil {
			return err
		}
		for _, device := range strings.Fields(devices) {
			if _, err := run("losetup", "--detach", device); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(target)
}
