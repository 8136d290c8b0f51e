package trustpolicy

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxDocument bounds the document's bytes; etcd takes 1.5 MiB a request, and a
// policy of 1,000 RSA signers has 600 KB, of 1,000 Ed25519 signers 150 KB.
const MaxDocument = 512 * 1024

// document is the YAML form, field by field as docs/spec/trust-policy.md has it.
type document struct {
	Version      int                `yaml:"version"`
	Clusters     map[string]Cluster `yaml:"clusters"`
	Issued       string             `yaml:"issued"`
	Expires      string             `yaml:"expires"`
	Mode         string             `yaml:"mode"`
	WarnUntil    string             `yaml:"warnUntil"`
	RootVersion  int                `yaml:"rootVersion"`
	JoinProfiles joinProfiles       `yaml:"joinProfiles"`
	Revoked      revoked            `yaml:"revoked"`
}

type joinProfiles struct {
	Signers        []signer       `yaml:"signers"`
	Thresholds     map[string]int `yaml:"thresholds"`
	RequireWarrant bool           `yaml:"requireWarrant"`
	MaxValidity    string         `yaml:"maxValidity"`
	Hosts          Hosts          `yaml:"hosts"`
}

type signer struct {
	Name        string   `yaml:"name"`
	Key         string   `yaml:"key"`
	ValidBefore string   `yaml:"validBefore"`
	Profiles    []string `yaml:"profiles"`
	Phases      []string `yaml:"phases"`
}

type revoked struct {
	Signers []string `yaml:"signers"`
}

// Cluster is what the policy knows of one cluster.
type Cluster struct {
	// Endpoints are API server URLs, and CASHA256 hex digests of its decoded CA bundle.
	Endpoints []string `yaml:"endpoints"`
	CASHA256  []string `yaml:"caSHA256"`
}

// Hosts says what an SSHHost may hold. An empty list allows nothing.
type Hosts struct {
	Users        []string `yaml:"users"`
	Ports        []int    `yaml:"ports"`
	ShimCommands []string `yaml:"shimCommands"`
}

// decode reads the YAML strictly: one document, no unknown, repeated or
// case-folded fields, no anchors, aliases, merges or explicit tags.
func decode(text []byte) (*document, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, malformed("not YAML: %s", firstLine(err))
	}
	// check: PolicyMalformed: people must see in one place what a field says; aliases and merges move it elsewhere
	if at := hidden(&root); at != nil {
		return nil, malformed("line %d: anchors, aliases, merges and tags are not allowed", at.Line)
	}
	// check: PolicyMalformed: "profiles:" with nothing behind it would be read as absent, which means every profile
	if at := null(&root); at != nil {
		return nil, malformed("line %d: a field without a value; give it one, or leave the field out", at.Line)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var d document
	if err := decoder.Decode(&d); err != nil {
		return nil, malformed("%s", firstLine(err))
	}
	// check: PolicyMalformed: a second document would be signed but not read
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, malformed("holds more than one YAML document")
	}
	return &d, nil
}

// hidden finds the first node that says something other than its own text.
func hidden(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge" {
		return n
	}
	for _, child := range n.Content {
		if found := hidden(child); found != nil {
			return found
		}
	}
	return nil
}

// null finds the first node that says nothing: null, ~ or an empty value.
func null(n *yaml.Node) *yaml.Node {
	if n.Tag == "!!null" {
		return n
	}
	for _, child := range n.Content {
		if found := null(child); found != nil {
			return found
		}
	}
	return nil
}

// firstLine drops the "yaml: " prefix and the list form of the library's errors.
func firstLine(err error) string {
	text := err.Error()
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		text = typed.Errors[0]
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "yaml: "), "\n")
	return text
}
