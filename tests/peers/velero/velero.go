// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/vmware-tanzu/velero/pkg/plugin/framework/common"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	snapshotters "github.com/vmware-tanzu/velero/pkg/plugin/velero/volumesnapshotter/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The kinds that the plugin has, as Velero's registry knows them.
func (it *session) list() (answer, error) {
	kinds := []string{}
	for _, kind := range common.AllPluginKinds() {
		for _, plugin := range it.registry.List(kind) {
			kinds = append(kinds, fmt.Sprintf("%s %s", kind, plugin.Name))
		}
	}
	slices.Sort(kinds)
	return answer{"plugins": kinds}, nil
}

func (it *session) snapshotter() (snapshotters.VolumeSnapshotter, error) {
	found, err := it.manager.GetVolumeSnapshotter(it.request.Name)
	if err != nil {
		return nil, err
	}
	return found, found.Init(it.request.Config)
}

func (it *session) volume() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: it.request.Volume}
}

// As a backup does with a PersistentVolume; asks for the snapshot twice.
func (it *session) take() (answer, error) {
	plugin, err := it.snapshotter()
	if err != nil {
		return nil, err
	}
	id, err := plugin.GetVolumeID(it.volume())
	if err != nil || id == "" {
		return answer{"volume": id}, err
	}
	kind, iops, err := plugin.GetVolumeInfo(id, "")
	if err != nil {
		return nil, err
	}
	snapshot, err := plugin.CreateSnapshot(id, "", it.request.Tags)
	if err != nil {
		return nil, err
	}
	again, err := plugin.CreateSnapshot(id, "", it.request.Tags)
	return answer{"volume": id, "type": kind, "iops": iops, "snapshot": snapshot, "again": again}, err
}

// As a restore does with a PersistentVolume.
func (it *session) createVolume() (answer, error) {
	plugin, err := it.snapshotter()
	if err != nil {
		return nil, err
	}
	id, err := plugin.CreateVolumeFromSnapshot(it.request.ID, it.request.Type, "", nil)
	if err != nil {
		return nil, err
	}
	object, err := plugin.SetVolumeID(it.volume(), id)
	if err != nil {
		return nil, err
	}
	return answer{"volume": id, "object": object}, nil
}

func (it *session) delete() (answer, error) {
	plugin, err := it.snapshotter()
	if err != nil {
		return nil, err
	}
	return answer{}, plugin.DeleteSnapshot(it.request.ID)
}

func (it *session) backup() (answer, error) {
	action, err := it.manager.GetBackupItemActionV2(it.request.Name)
	if err != nil {
		return nil, err
	}
	selector, err := action.AppliesTo()
	if err != nil {
		return nil, err
	}
	item, more, operation, later, err := action.Execute(it.volume(), &it.request.Backup)
	if err != nil {
		return nil, err
	}
	return answer{"resources": selector.IncludedResources, "object": item, "operation": operation, "more": len(more) + len(later)}, nil
}

func progressAnswer(progress velero.OperationProgress, err error) (answer, error) {
	return answer{"completed": progress.Completed, "err": progress.Err, "done": progress.NCompleted, "total": progress.NTotal,
		"units": progress.OperationUnits, "description": progress.Description, "started": progress.Started, "updated": progress.Updated}, err
}

func (it *session) backupProgress() (answer, error) {
	action, err := it.manager.GetBackupItemActionV2(it.request.Name)
	if err != nil {
		return nil, err
	}
	return progressAnswer(action.Progress(it.request.ID, &it.request.Backup))
}

func (it *session) backupCancel() (answer, error) {
	action, err := it.manager.GetBackupItemActionV2(it.request.Name)
	if err != nil {
		return nil, err
	}
	return answer{}, action.Cancel(it.request.ID, &it.request.Backup)
}

func (it *session) restore() (answer, error) {
	action, err := it.manager.GetRestoreItemActionV2(it.request.Name)
	if err != nil {
		return nil, err
	}
	output, err := action.Execute(&velero.RestoreItemActionExecuteInput{
		Item:           it.volume(),
		ItemFromBackup: &unstructured.Unstructured{Object: it.request.Original},
		Restore:        &it.request.Restore,
	})
	if err != nil {
		return nil, err
	}
	return answer{"object": output.UpdatedItem, "operation": output.OperationID, "skip": output.SkipRestore}, nil
}

func (it *session) restoreProgress() (answer, error) {
	action, err := it.manager.GetRestoreItemActionV2(it.request.Name)
	if err != nil {
		return nil, err
	}
	return progressAnswer(action.Progress(it.request.ID, &it.request.Restore))
}

func (it *session) deleteItem() (answer, error) {
	action, err := it.manager.GetDeleteItemAction(it.request.Name)
	if err != nil {
		return nil, err
	}
	return answer{}, action.Execute(&velero.DeleteItemActionExecuteInput{Item: it.volume(), Backup: &it.request.Backup})
}
