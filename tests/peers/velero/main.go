// SPDX-License-Identifier: Apache-2.0

// Calls plugins as Velero's server does, with Velero's own code: velero-client COMMAND [FLAG...] <REQUEST
//
// Plugins are the programs in $VELERO_PLUGIN_DIR. The flags are those of Velero's server, which passes them to every plugin. REQUEST is an object of JSON
// with what the command needs; the answer is one, too. Errors and the log go to stderr; then the exit code is 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/sirupsen/logrus"
	api "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt/process"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/util/logging"
)

type request struct {
	Name     string            // of the plugin
	Config   map[string]string // of a VolumeSnapshotLocation
	Volume   map[string]any    // a PersistentVolume
	Original map[string]any    // the PersistentVolume in the backup
	Backup   api.Backup
	Restore  api.Restore
	ID       string // of a volume, snapshot or operation
	Type     string
	Tags     map[string]string
}

type answer map[string]any

type session struct {
	request  request
	registry process.Registry
	manager  clientmgmt.Manager
}

var commands = map[string]func(*session) (answer, error){
	"list":           (*session).list,
	"take":           (*session).take,
	"create-volume":  (*session).createVolume,
	"delete":         (*session).delete,
	"backup":         (*session).backup,
	"progress":       (*session).backupProgress,
	"cancel":         (*session).backupCancel,
	"restore":        (*session).restore,
	"restoring":      (*session).restoreProgress,
	"delete-item":    (*session).deleteItem,
	"direct":         (*session).direct,
	"direct-restart": (*session).restart,
}

func run(command string) (answer, error) {
	do, known := commands[command]
	if !known {
		return nil, fmt.Errorf("no command %q", command)
	}
	log := logging.DefaultLogger(logrus.DebugLevel, logging.FormatText)
	log.Out = os.Stderr
	it := session{registry: process.NewRegistry(os.Getenv("VELERO_PLUGIN_DIR"), log, log.Level)}
	if err := json.NewDecoder(os.Stdin).Decode(&it.request); err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	if !strings.HasPrefix(command, "direct") {
		if err := it.registry.DiscoverPlugins(); err != nil {
			return nil, fmt.Errorf("Velero's server does not start: %w", err)
		}
	}
	it.manager = clientmgmt.NewManager(log, log.Level, it.registry)
	defer it.manager.CleanupClients()
	return do(&it)
}

func main() {
	// Velero's server first asks itself for plugins.
	if len(os.Args) > 1 && os.Args[1] == "run-plugins" {
		framework.NewServer().Serve()
		return
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: velero-client COMMAND [FLAG...]")
		os.Exit(2)
	}
	result, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "velero-client: %v\n", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		os.Exit(1)
	}
}
