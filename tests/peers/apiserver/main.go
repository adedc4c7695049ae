// SPDX-License-Identifier: Apache-2.0

// A real kube-apiserver, to which manifests are given with a server-side dry run.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
