// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
)

const (
	mostFiles   = 6
	mostBytes   = 96 << 10
	regions     = 8 // of a block device
	regionBytes = 64 << 10
	regionEvery = 1 << 20
)

// content is what a volume holds: the seed of each file's bytes by its name, or of each region's of a block device. It never changes:
// a write makes another one.
type content struct {
	files map[string]uint64
}

var emptyContent = &content{}

func (c *content) with(name string, seed uint64) *content {
	files := maps.Clone(c.files)
	if files == nil {
		files = map[string]uint64{}
	}
	files[name] = seed
	return &content{files}
}

func (c *content) without(name string) *content {
	files := maps.Clone(c.files)
	delete(files, name)
	return &content{files}
}

func known(seed uint64, size int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	out := make([]byte, size)
	rand.NewChaCha8(key).Read(out)
	return out
}

func fileBytes(seed uint64) []byte { return known(seed, int(seed%mostBytes)) }

// change writes through the published volume, until it is durable, or removes a file.
func (s *storm) change(r *rand.Rand, v *volume) error {
	v.data.Lock()
	defer v.data.Unlock()
	before := v.contents[0]
	name := fmt.Sprintf("file-%d", r.IntN(mostFiles))
	seed := r.Uint64()
	path := s.targetPath(v)
	if v.kind == block {
		region := r.IntN(regions)
		v.contents = []*content{before.with(fmt.Sprint(region), seed)}
		v.note("write region %d", region)
		s.written.Add(regionBytes)
		return writeRegion(path, region, known(seed, regionBytes))
	}
	if _, there := before.files[name]; there && r.IntN(4) == 0 {
		v.contents = []*content{before.without(name)}
		v.note("remove %s", name)
		return errors.Join(os.Remove(filepath.Join(path, name)), syncPath(path))
	}
	v.contents = []*content{before.with(name, seed)}
	v.note("write %s", name)
	s.written.Add(int64(len(fileBytes(seed))))
	return errors.Join(writeFile(filepath.Join(path, name), fileBytes(seed)), syncPath(path))
}

func writeFile(path string, data []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

func writeRegion(path string, region int, data []byte) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, int64(region)*regionEvery)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// verify compares a published volume with what it may hold, and settles on what it does hold.
func (s *storm) verify(v *volume) error {
	var differences []error
	for _, c := range v.contents {
		err := compare(s.targetPath(v), v.kind, c)
		if err == nil {
			v.data.Lock()
			v.contents = []*content{c}
			v.data.Unlock()
			return s.verifySize(v)
		}
		differences = append(differences, err)
	}
	return v.fault("its contents are not what was written: %v", errors.Join(differences...))
}

func (s *storm) verifySize(v *volume) error {
	if v.kind != block || v.unanswered != nil {
		return nil
	}
	file, err := os.Open(s.targetPath(v))
	if err != nil {
		return v.fault("%v", err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size != v.size {
		return v.fault("its device has %d bytes instead of %d (%v)", size, v.size, err)
	}
	return nil
}

func compare(path string, k kind, c *content) error {
	if k == block {
		return compareRegions(path, c)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	found := 0
	for _, entry := range entries {
		if k == ext4 && entry.Name() == "lost+found" {
			continue
		}
		if _, wanted := c.files[entry.Name()]; !wanted {
			return fmt.Errorf("%s should not be there", entry.Name())
		}
		found++
	}
	if found != len(c.files) {
		return fmt.Errorf("%d files are missing", len(c.files)-found)
	}
	for name, seed := range c.files {
		data, err := os.ReadFile(filepath.Join(path, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(data, fileBytes(seed)) {
			return fmt.Errorf("%s has other bytes", name)
		}
	}
	return nil
}

func compareRegions(path string, c *content) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	data := make([]byte, regionBytes)
	for region := range regions {
		if _, err := file.ReadAt(data, int64(region)*regionEvery); err != nil {
			return err
		}
		wanted := make([]byte, regionBytes)
		if seed, written := c.files[fmt.Sprint(region)]; written {
			wanted = known(seed, regionBytes)
		}
		if !bytes.Equal(data, wanted) {
			return fmt.Errorf("region %d has other bytes", region)
		}
	}
	return nil
}
