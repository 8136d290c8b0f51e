package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/canonical"
)

// MaxFile bounds a file; a ConfigMap, in which it is mounted, holds 1 MiB.
const MaxFile = 1 << 20

// The modes of the format. An absent one means alert there.
const (
	Alert   = "alert"
	Enforce = "enforce"
)

// Policy is what is signed, field by field in the order in which the format writes it.
type Policy struct {
	Mode           string                  `json:"mode,omitempty"`
	Classes        map[string]Class        `json:"classes"`
	RuleClasses    map[string]RuleClass    `json:"ruleClasses,omitempty"`
	BindingClasses map[string]BindingClass `json:"bindingClasses,omitempty"`
	PolicyVersion  int64                   `json:"policyVersion,omitempty"`
}

// Class says who may sign fragments of a class, and which parts those may set.
type Class struct {
	Signers          []string `json:"signers"`
	AllowedSpecPaths []string `json:"allowedSpecPaths"`
}

// RuleClass says who may sign rules of a class, and which.
type RuleClass struct {
	Signers        []string `json:"signers"`
	AllowedRuleIDs []string `json:"allowedRuleIDs"`
}

// BindingClass says who may sign bindings of a class.
type BindingClass struct {
	Signers []string `json:"signers"`
}

// File is a policy with the annotations that sign it.
type File struct {
	Policy      Policy            `json:"policy"`
	Annotations map[string]string `json:"annotations"`
}

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...)
}

// Parse reads a file strictly: what the signature does not cover, or what two
// readers take differently, is refused. The error carries Malformed, NotCanonical
// or TooLarge. The signature is not looked at: see Verify.
func Parse(text []byte) (*File, error) {
	// check: TooLarge: work before verification must be bounded
	if len(text) > MaxFile {
		return nil, decision.Errorf(decision.TooLarge, "the file has %d bytes, more than %d", len(text), MaxFile)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var f File
	// check: Malformed: an unknown field is not signed, and must not look as if it were
	if err := decoder.Decode(&f); err != nil {
		return nil, malformed("%v", err)
	}
	_, err := decoder.Token()
	// check: Malformed: text behind the policy would be carried along unread
	if !errors.Is(err, io.EOF) {
		return nil, malformed("there is text behind the policy")
	}
	again, err := f.Encode()
	if err != nil {
		return nil, err
	}
	var was, is bytes.Buffer
	if err := errors.Join(json.Compact(&was, text), json.Compact(&is, again)); err != nil {
		return nil, malformed("%v", err)
	}
	// check: NotCanonical: repeated or case-folded fields are read differently by different readers
	if !bytes.Equal(was.Bytes(), is.Bytes()) {
		return nil, decision.Errorf(decision.NotCanonical, "the file is not as the format writes it: repeated, reordered or differently spelled fields")
	}
	// check: Malformed: an unknown mode means alert to the format's own reader: a slip would switch enforcement off
	if f.Policy.Mode != "" && f.Policy.Mode != Alert && f.Policy.Mode != Enforce {
		return nil, malformed("mode %.40q is neither alert nor enforce", f.Policy.Mode)
	}
	// check: Malformed: the format's own reader refuses a policy without classes
	if len(f.Policy.Classes) == 0 || f.Policy.PolicyVersion < 0 {
		return nil, malformed("the policy has no classes, or a version below 0")
	}
	return &f, nil
}

// Encode writes a file as the format does: two spaces, no final newline.
func (f *File) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, malformed("%v", err)
	}
	return text, nil
}

// Digest is the canonical hash of the policy: the text that is signed.
func (p *Policy) Digest() (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", malformed("%v", err)
	}
	return canonical.Hash(text)
}
