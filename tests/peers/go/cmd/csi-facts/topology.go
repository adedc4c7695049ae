// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// Where volumes are.
var topologyFacts = []fact{
	{"a volume is where this node is", volumesAreHere},
	{"requisite topology is kept to", requisiteTopology},
	{"preferred topology comes from the requisite", preferredTopology},
}

func (t *trial) info() *csi.NodeGetInfoResponse {
	response, err := t.NodeGetInfo(t.ctx, &csi.NodeGetInfoRequest{})
	t.ok("NodeGetInfo", err)
	return response
}

func (t *trial) nodeID() string { return t.info().NodeId }

func (t *trial) here() *csi.Topology { return t.info().AccessibleTopology }

// elsewhere differs from here in its values.
func elsewhere(t *trial) *csi.Topology {
	other := &csi.Topology{Segments: map[string]string{}}
	for key, value := range t.here().Segments {
		other.Segments[key] = value + "-other"
	}
	return other
}

func foreign() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{"topology.example.org/rack": "r1"}}
}

func volumesAreHere(t *trial) {
	volume := t.create(t.request(tree))
	equal(t, "topologies", len(volume.AccessibleTopology), 1)
	equal(t, "the topology", volume.AccessibleTopology[0].String(), t.here().String())
}

func (t *trial) createIn(requisite, preferred []*csi.Topology) error {
	request := t.request(tree)
	request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: requisite, Preferred: preferred}
	_, err := t.tryCreate(request)
	return err
}

func requisiteTopology(t *trial) {
	here, other := t.here(), elsewhere(t)
	t.ok("here", t.createIn([]*csi.Topology{here}, nil))
	t.ok("here or elsewhere", t.createIn([]*csi.Topology{other, here}, nil))
	t.code("elsewhere", t.createIn([]*csi.Topology{other}, nil), codes.ResourceExhausted)
	t.code("by a key of others", t.createIn([]*csi.Topology{foreign()}, nil), codes.ResourceExhausted)
	request := t.request(tree)
	request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{other}}
	_, err := t.tryCreate(request)
	t.code("elsewhere", err, codes.ResourceExhausted)
	request.AccessibilityRequirements = nil
	t.create(request)
	request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{other}}
	_, err = t.tryCreate(request)
	t.code("a volume that exists here, elsewhere", err, codes.ResourceExhausted, codes.AlreadyExists)
}

func preferredTopology(t *trial) {
	here, other := t.here(), elsewhere(t)
	t.ok("preferred here", t.createIn(nil, []*csi.Topology{here}))
	t.ok("preferred elsewhere, here is possible", t.createIn([]*csi.Topology{here, other}, []*csi.Topology{other}))
	t.ok("preferred elsewhere, then here", t.createIn([]*csi.Topology{here, other}, []*csi.Topology{other, here}))
	t.code("preferred what is not requisite", t.createIn([]*csi.Topology{here}, []*csi.Topology{other}), codes.InvalidArgument)
}
