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
// The types of its parts stand beside the code that checks them.
type document struct {
	Version         int                      `yaml:"version"`
	Clusters        map[string]Cluster       `yaml:"clusters"`
	Issued          string                   `yaml:"issued"`
	Expires         string                   `yaml:"expires"`
	Mode            string                   `yaml:"mode"`
	WarnUntil       string                   `yaml:"warnUntil"`
	RootVersion     int                      `yaml:"rootVersion"`
	JoinProfiles    joinProfiles             `yaml:"joinProfiles"`
	FragmentClasses map[string]FragmentClass `yaml:"fragmentClasses"`
	RuleClasses     map[string]RuleClass     `yaml:"ruleClasses"`
	BindingClasses  map[string]BindingClass  `yaml:"bindingClasses"`
	Learners        []string                 `yaml:"learners"`
	Bundles         map[string]Bundle        `yaml:"bundles"`
	Revoked         revoked                  `yaml:"revoked"`
	Floors          map[string]int64         `yaml:"floors"`
	Resets          []Reset                  `yaml:"resets"`
	Waivers         []waiver                 `yaml:"waivers"`
}

type joinProfiles struct {
	Signers        []signer       `yaml:"signers"`
	Thresholds     map[string]int `yaml:"thresholds"`
	RequireWarrant *bool          `yaml:"requireWarrant"`
	MaxValidity    string         `yaml:"maxValidity"`
	Unguarded      []unguarded    `yaml:"unguarded"`
	Hosts          hosts          `yaml:"hosts"`
}

// decode reads the YAML strictly: one document, no unknown, repeated or
// case-folded fields, and each value in the one spelling of strict.go.
func decode(text []byte) (*document, error) {
	// check: PolicyMalformed: work on what nobody verified must be bounded
	if len(text) > MaxDocument {
		return nil, malformed("the document has %d bytes, more than %d", len(text), MaxDocument)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, malformed("not YAML: %s", firstLine(err))
	}
	if err := strict(&root); err != nil {
		return nil, err
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
