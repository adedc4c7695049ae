// SPDX-License-Identifier: Apache-2.0

// Decodes manifests as the types of the Kubernetes API: manifest-objects FILE...
//
// Prints each object as a line of JSON: {"file": FILE, "object": OBJECT}. A field that a type does not have, a field given twice, a value of
// the wrong type or an unknown kind is an error, which is printed on stderr; then the exit code is 1.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	groupsnapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
)

type line struct {
	File   string         `json:"file"`
	Object runtime.Object `json:"object"`
}

func newDecoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, snapshot.AddToScheme, groupsnapshot.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme,
		serializer.SerializerOptions{Yaml: true, Strict: true}), nil
}

// decodeFile calls print for each object of the file.
func decodeFile(decoder runtime.Decoder, name string, print func(line) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := yaml.NewYAMLReader(bufio.NewReader(file))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
		if err := print(line{name, object}); err != nil {
			return err
		}
	}
}

func main() {
	decoder, err := newDecoder()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	code := 0
	for _, name := range os.Args[1:] {
		if err := decodeFile(decoder, name, func(object line) error { return out.Encode(object) }); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			code = 1
		}
	}
	os.Exit(code)
}
