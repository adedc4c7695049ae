// SPDX-License-Identifier: Apache-2.0

// v1-snapshotter is a plugin built from Velero's own framework: a volume snapshotter of version 1.
// Its volumes are the files in a directory (setting "directory"), its snapshots are copies of them.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

type snapshotter struct {
	log       logrus.FieldLogger
	directory string
}

func (s *snapshotter) Init(config map[string]string) error {
	s.directory = config["directory"]
	if s.directory == "" {
		return errors.New("the setting directory is missing")
	}
	s.log.WithField("directory", s.directory).Info("initialized")
	return appendLine(filepath.Join(s.directory, "inits"), fmt.Sprint(os.Getpid()))
}

func (s *snapshotter) path(id string) (string, error) {
	if s.directory == "" {
		return "", errors.New("Init was not called")
	}
	if id == "" || strings.Contains(id, "/") {
		return "", fmt.Errorf("bad id %q", id)
	}
	return filepath.Join(s.directory, id), nil
}

func (s *snapshotter) copy(from, to string) error {
	source, err := s.path(from)
	if err != nil {
		return err
	}
	target, err := s.path(to)
	if err != nil {
		return err
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

func (s *snapshotter) CreateSnapshot(volume, zone string, tags map[string]string) (string, error) {
	switch tags["test"] { // what goes wrong on demand
	case "crash":
		panic("crashed as the test asked for")
	case "exit":
		fmt.Fprintln(os.Stderr, "leaving as the test asked for")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	case "print":
		for i := 0; i < 10000; i++ {
			fmt.Println("a plugin that prints much to its standard output, which a host must read")
		}
	}
	id := "snap-" + volume + "-" + tags["velero.io/backup"]
	s.log.WithField("tags", tags).Warn("taking a snapshot")
	return id, s.copy(volume, id)
}

func (s *snapshotter) CreateVolumeFromSnapshot(snapshot, kind, zone string, iops *int64) (string, error) {
	id := "restored-" + snapshot
	if kind != "file" || iops == nil || *iops != 300 {
		return "", fmt.Errorf("type %q and iops %v are not what GetVolumeInfo said", kind, iops)
	}
	return id, s.copy(snapshot, id)
}

func (s *snapshotter) GetVolumeInfo(volume, zone string) (string, *int64, error) {
	iops := int64(300)
	return "file", &iops, nil
}

func (s *snapshotter) DeleteSnapshot(snapshot string) error {
	path, err := s.path(snapshot)
	if err != nil {
		return err
	}
	if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *snapshotter) GetVolumeID(volume runtime.Unstructured) (string, error) {
	path, _, err := unstructured.NestedString(volume.UnstructuredContent(), "spec", "hostPath", "path")
	return filepath.Base(path), err
}

func (s *snapshotter) SetVolumeID(volume runtime.Unstructured, id string) (runtime.Unstructured, error) {
	content := volume.UnstructuredContent()
	err := unstructured.SetNestedField(content, filepath.Join(s.directory, id), "spec", "hostPath", "path")
	return &unstructured.Unstructured{Object: content}, err
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, line)
	return err
}

func main() {
	framework.NewServer().
		RegisterVolumeSnapshotter("test.skycap.dev/files", func(log logrus.FieldLogger) (interface{}, error) {
			return &snapshotter{log: log}, nil
		}).
		Serve()
}
