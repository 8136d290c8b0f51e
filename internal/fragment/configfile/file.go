package configfile

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/canonical"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// MaxFile bounds a file; a ConfigMap, in which it is mounted, holds 1 MiB.
const MaxFile = 1 << 20

// File is a configuration with the annotations that sign it.
type File struct {
	Config      fragment.Free
	Annotations map[string]string
}

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...)
}

// Parse reads a file strictly. The error carries Malformed, NotCanonical or TooLarge. The
// signature is not looked at: see Verify.
func Parse(text []byte) (*File, error) {
	// check: TooLarge: work before verification must be bounded
	if len(text) > MaxFile {
		return nil, decision.Errorf(decision.TooLarge, "the file has %d bytes, more than %d", len(text), MaxFile)
	}
	var whole fragment.Free // in which no name stands twice
	// check: Malformed: text that is no JSON, or goes on behind it, would be carried along unread
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, refusal(err)
	}
	var fields map[string]json.RawMessage
	// check: Malformed: a list or a text has no configuration in it
	if json.Unmarshal(whole, &fields) != nil {
		return nil, malformed("the file is no object")
	}
	for name := range fields {
		// check: Malformed: what stands beside the configuration is not signed, and must not look as if it were
		if name != "config" && name != "annotations" {
			return nil, malformed("unknown field %.60q", name)
		}
	}
	f := File{Config: fragment.Free(fields["config"])}
	// check: Malformed: a list or a text is no configuration, and may hash like one
	if !bytes.HasPrefix(f.Config, []byte("{")) {
		return nil, malformed("config is missing, or no object")
	}
	// check: Malformed: annotations that are no map of texts hold no signature
	if raw := fields["annotations"]; raw != nil && json.Unmarshal(raw, &f.Annotations) != nil {
		return nil, malformed("annotations are no map of texts")
	}
	return &f, nil
}

// refusal keeps the Reason of an error that carries one.
func refusal(err error) error {
	if e := decision.From(err); e.Reason != decision.Internal {
		return e
	}
	return malformed("not JSON: %v", err)
}

// Verify reports whether the root signed the configuration. The error carries what signature.ByRoot does.
func (f *File) Verify(root *ecdsa.PublicKey) error {
	digest, err := canonical.Hash(f.Config)
	if err != nil {
		return err
	}
	return signature.ByRoot(f.Annotations, digest, root)
}
