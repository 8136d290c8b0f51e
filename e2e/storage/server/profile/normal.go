package profile

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// content is a spec's keys in the order of the reference's encoder.
type content struct {
	Architectures        []string              `json:"architectures"`
	Capabilities         []string              `json:"capabilities"`
	Execs                []execCall            `json:"execs"`
	Opens                []openCall            `json:"opens"`
	Syscalls             []string              `json:"syscalls"`
	SeccompProfile       seccomp               `json:"seccompProfile"`
	Endpoints            []endpoint            `json:"endpoints"`
	ImageID              string                `json:"imageID"`
	ImageTag             string                `json:"imageTag"`
	RulePolicies         map[string]rulePolicy `json:"rulePolicies"`
	IdentifiedCallStacks []json.RawMessage     `json:"identifiedCallStacks"`
	metav1.LabelSelector `json:",inline"`
	Ingress              []neighbor `json:"ingress"`
	Egress               []neighbor `json:"egress"`
}

type execCall struct {
	Path       string   `json:"path,omitempty"`
	Args       []string `json:"args,omitempty"`
	Envs       []string `json:"envs,omitempty"`
	ParentPath string   `json:"parentPath,omitempty"`
}

type openCall struct {
	Path  string   `json:"path"`
	Flags []string `json:"flags"`
}

type seccomp struct {
	Name string      `json:"name,omitempty"`
	Path string      `json:"path,omitempty"`
	Spec seccompSpec `json:"spec"`
}

type seccompSpec struct {
	Disabled         bool              `json:"disabled,omitempty"`
	BaseProfileName  string            `json:"baseProfileName,omitempty"`
	DefaultAction    string            `json:"defaultAction"`
	Architectures    []string          `json:"architectures,omitempty"`
	ListenerPath     string            `json:"listenerPath,omitempty"`
	ListenerMetadata string            `json:"listenerMetadata,omitempty"`
	Syscalls         []json.RawMessage `json:"syscalls,omitempty"`
	Flags            []string          `json:"flags,omitempty"`
}

type endpoint struct {
	Endpoint  string          `json:"endpoint,omitempty"`
	Methods   []string        `json:"methods,omitempty"`
	Internal  bool            `json:"internal"`
	Direction string          `json:"direction,omitempty"`
	Headers   json.RawMessage `json:"headers,omitempty"`
}

type rulePolicy struct {
	ProcessAllowed   []string `json:"processAllowed,omitempty"`
	ContainerAllowed bool     `json:"containerAllowed,omitempty"`
}

type neighbor struct {
	Identifier        string                `json:"identifier"`
	Type              string                `json:"type"`
	DNS               string                `json:"dns"`
	DNSNames          []string              `json:"dnsNames"`
	Ports             []port                `json:"ports"`
	PodSelector       *metav1.LabelSelector `json:"podSelector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	IPAddress         string                `json:"ipAddress"`
}

type port struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     *int32 `json:"port"`
}

// normalize is what a spec looks like when it comes back: keys that the server does not know are
// gone, absent and empty lists are null, sets are sorted, and what is said twice is said once. Absent
// rulePolicies stay absent, unlike in signed content.
func normalize(raw []byte) ([]byte, error) {
	var c content
	if raw != nil {
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, fmt.Errorf("reading spec: %w", err)
		}
	}
	for _, set := range []*[]string{&c.Architectures, &c.Capabilities, &c.Syscalls} {
		*set = sorted(*set)
	}
	for id, policy := range c.RulePolicies {
		policy.ProcessAllowed = sorted(policy.ProcessAllowed)
		c.RulePolicies[id] = policy
	}
	for _, neighbors := range [][]neighbor{c.Ingress, c.Egress} {
		for i := range neighbors {
			neighbors[i].DNSNames, neighbors[i].Ports = null(neighbors[i].DNSNames), null(neighbors[i].Ports)
		}
	}
	for i := range c.Opens {
		c.Opens[i].Flags = null(c.Opens[i].Flags)
	}
	c.Execs, c.Opens, c.MatchExpressions = once(c.Execs), once(c.Opens), once(c.MatchExpressions)
	c.Endpoints, c.IdentifiedCallStacks = null(c.Endpoints), null(c.IdentifiedCallStacks)
	c.Ingress, c.Egress = null(c.Ingress), null(c.Egress)
	return json.Marshal(c)
}

// null makes an empty list an absent one.
func null[E any](list []E) []E {
	if len(list) == 0 {
		return nil
	}
	return list
}

func sorted(set []string) []string {
	slices.Sort(set)
	return null(slices.Compact(set))
}

// once drops what stands in the list before.
func once[E any](list []E) []E {
	seen := map[string]bool{}
	kept := list[:0]
	for _, entry := range list {
		text := fmt.Sprintf("%#v", entry)
		if !seen[text] {
			seen[text] = true
			kept = append(kept, entry)
		}
	}
	return null(kept)
}
