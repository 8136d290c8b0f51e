package object

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Kinds and API groups we judge.
const (
	KindJoinProfile = "SSHJoinProfile"
	KindHost        = "SSHHost"
	KindNodeClass   = "SSHNodeClass"
	KindHostRun     = "HostRun"
	KindTrustPolicy = "TrustPolicy"

	KindHostStatement = "HostStatement"

	// Of kubescape; what they hold is read by internal/fragment.
	KindContainerProfile = "ContainerProfile"
	KindSeccompProfile   = "SeccompProfile"
	KindRules            = "Rules"
	KindRuleBinding      = "RuntimeRuleAlertBinding"

	GroupKPSSH       = "karpenter.dklesev.github.io"
	GroupHostwarrant = "hostwarrant.dev"
	GroupStorage     = "spdx.softwarecomposition.kubescape.io"
	GroupKubescape   = "kubescape.io"
)

// GroupOf is the API group of a kind we judge, "" of any other.
func GroupOf(kind string) string {
	switch kind {
	case KindJoinProfile, KindHost, KindNodeClass:
		return GroupKPSSH
	case KindHostRun, KindTrustPolicy, KindHostStatement:
		return GroupHostwarrant
	case KindContainerProfile, KindSeccompProfile:
		return GroupStorage
	case KindRules, KindRuleBinding:
		return GroupKubescape
	default:
		return ""
	}
}

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

// Group is the API group that apiVersion names.
func (m Meta) Group() string {
	group, _, _ := strings.Cut(m.APIVersion, "/")
	return group
}

// ParseMeta reads the metadata of an object of any kind.
func ParseMeta(raw []byte) (Meta, error) {
	o, err := parseAny(raw)
	return o.Meta, err
}

// parts are an object taken apart; spec and status are nil where there is none.
type parts struct {
	Meta
	created      string // metadata.creationTimestamp
	spec, status fields
	text         json.RawMessage // of spec
}

// parseAny takes apart an object of any kind.
func parseAny(raw []byte) (parts, error) {
	text := bytes.TrimSpace(raw)
	// check: Malformed: what is no JSON is read by each reader as it likes
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return parts{}, malformed("", "not a JSON object")
	}
	top, err := take(text)
	if err != nil {
		return parts{}, err
	}
	var metadata fields
	o := parts{text: top["spec"]}
	err = top.getAll("", map[string]any{
		"apiVersion": &o.APIVersion, "kind": &o.Kind, "metadata": &metadata, "spec": &o.spec, "status": &o.status,
	})
	if err != nil {
		return o, err
	}
	var deleted string
	err = metadata.getAll("metadata", map[string]any{
		"name": &o.Name, "namespace": &o.Namespace, "uid": &o.UID, "labels": &o.Labels, "annotations": &o.Annotations,
		"finalizers": &o.Finalizers, "deletionTimestamp": &deleted, "creationTimestamp": &o.created,
	})
	o.Deleting = deleted != ""
	return o, err
}

// parse reads an object that must be of the given kind.
func parse(raw []byte, kind string) (parts, error) {
	o, err := parseAny(raw)
	if err != nil {
		return o, err
	}
	// check: Malformed: an object of one kind must not be judged by another kind's rules
	if o.Kind != kind {
		return o, malformed("kind", "is %.60q, not %s", o.Kind, kind)
	}
	// check: Malformed: an object without a spec has nothing that could be vouched for
	if o.spec == nil {
		return o, malformed("spec", "is missing")
	}
	return o, nil
}
