// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

const blockSize = 4096

// metadata makes up blocks: StreamMessages messages with one block each.
type metadata struct {
	csi.UnimplementedSnapshotMetadataServer
	*driver
}

// pieces calls send for each message that the fault in force asks for.
func (m metadata) pieces(snapshotID string, send func(number int, capacity int64) error) error {
	m.store.lock.Lock()
	found := m.store.snapshot(snapshotID)
	m.store.lock.Unlock()
	if found == nil {
		return missing("snapshot", snapshotID)
	}
	current := m.faults.now()
	count := current.StreamMessages
	if count == 0 {
		count = 3
	}
	for i := range count {
		time.Sleep(time.Duration(current.StreamPauseMs) * time.Millisecond)
		if err := send(i, found.Size); err != nil {
			return err
		}
	}
	return nil
}

func block(number int) []*csi.BlockMetadata {
	return []*csi.BlockMetadata{{ByteOffset: int64(number) * blockSize, SizeBytes: blockSize}}
}

func (m metadata) GetMetadataAllocated(request *csi.GetMetadataAllocatedRequest, stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
	return m.pieces(request.GetSnapshotId(), func(number int, capacity int64) error {
		return stream.Send(&csi.GetMetadataAllocatedResponse{BlockMetadataType: csi.BlockMetadataType_FIXED_LENGTH,
			VolumeCapacityBytes: capacity, BlockMetadata: block(number)})
	})
}

func (m metadata) GetMetadataDelta(request *csi.GetMetadataDeltaRequest, stream csi.SnapshotMetadata_GetMetadataDeltaServer) error {
	return m.pieces(request.GetTargetSnapshotId(), func(number int, capacity int64) error {
		return stream.Send(&csi.GetMetadataDeltaResponse{BlockMetadataType: csi.BlockMetadataType_FIXED_LENGTH,
			VolumeCapacityBytes: capacity, BlockMetadata: block(number)})
	})
}
