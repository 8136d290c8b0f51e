package object

import (
	"encoding/json"
)

// Kinds and API groups we judge.
const (
	KindJoinProfile = "SSHJoinProfile"
	KindHost        = "SSHHost"
	KindTrustPolicy = "TrustPolicy"

	GroupKPSSH       = "karpenter.dklesev.github.io"
	GroupHostwarrant = "hostwarrant.dev"
)

// Meta is what we read of an object's apiVersion, kind and metadata.
type Meta struct {
	APIVersion, Kind    string
	Name, Namespace     string
	UID                 string
	Labels, Annotations map[string]string
	Finalizers          []string
	// Deleting is true once metadata.deletionTimestamp is set.
	Deleting bool
}

// ParseMeta reads the metadata of an object of any kind.
func ParseMeta(raw []byte) (Meta, error) {
	m, _, err := parseAny(raw)
	return m, err
}

// parseAny returns the metadata and the spec, which is nil where there is none.
func parseAny(raw []byte) (Meta, fields, error) {
	var top, metadata, spec fields
	if err := json.Unmarshal(raw, &top); err != nil || top == nil {
		return Meta{}, nil, malformed("", "not a JSON object")
	}
	m := Meta{}
	if err := top.getAll("", map[string]any{"apiVersion": &m.APIVersion, "kind": &m.Kind, "metadata": &metadata, "spec": &spec}); err != nil {
		return m, nil, err
	}
	var deleted string
	err := metadata.getAll("metadata", map[string]any{
		"name": &m.Name, "namespace": &m.Namespace, "uid": &m.UID, "labels": &m.Labels, "annotations": &m.Annotations,
		"finalizers": &m.Finalizers, "deletionTimestamp": &deleted,
	})
	m.Deleting = deleted != ""
	return m, spec, err
}

// parse reads an object that must be of the given kind.
func parse(raw []byte, kind string) (Meta, fields, error) {
	m, spec, err := parseAny(raw)
	if err != nil {
		return m, nil, err
	}
	// check: Malformed: an object of one kind must not be judged by another kind's rules
	if m.Kind != kind {
		return m, nil, malformed("kind", "is %.60q, not %s", m.Kind, kind)
	}
	// check: Malformed: an object without a spec has nothing that could be vouched for
	if spec == nil {
		return m, nil, malformed("spec", "is missing")
	}
	return m, spec, nil
}
