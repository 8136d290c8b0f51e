package statement

import (
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
)

// maxSkew is how far ahead of the clock a signed time may be (docs/spec/shim.md has the same day).
const maxSkew = 24 * time.Hour

// Signed is a statement's bytes with its detached signatures.
type Signed struct {
	Text       []byte
	Signatures []string
}

// Verify is Authenticate for a statement that may take effect at now. Whether it
// is for this place, and newer than what is known, the caller asks. The error
// carries NotYetValid, or what Authenticate gives.
func Verify(s Signed, roots Roots, now time.Time) (*Statement, error) {
	st, err := Authenticate(s, roots)
	if err != nil {
		return nil, err
	}
	if err := st.InTime(now); err != nil {
		return nil, err
	}
	return st, nil
}

// Authenticate returns the statement that s holds if enough of the roots signed
// it; a new generation of roots must have signed its own naming too. The error
// carries StatementRejected, ThresholdNotMet, or the Reason of a signature that is
// bad in itself.
func Authenticate(s Signed, roots Roots) (*Statement, error) {
	// check: ThresholdNotMet: without roots nothing can be vouched for
	if roots.Threshold < 1 || len(roots.Keys) < roots.Threshold {
		return nil, decision.Errorf(decision.ThresholdNotMet, "there are no root keys to verify the statement with")
	}
	// check: StatementRejected: work before verification must be bounded
	if len(s.Text) > MaxBytes || len(s.Signatures) > quorum.MaxSignatures {
		return nil, rejected("has %d bytes and %d signatures, more than %d and %d", len(s.Text), len(s.Signatures), MaxBytes, quorum.MaxSignatures)
	}
	signed, err := quorum.Signers(Namespace, s.Text, s.Signatures, roots.Keys)
	if err != nil {
		return nil, err
	}
	// check: ThresholdNotMet: whoever can deliver a statement must not be able to make one
	if len(signed) < roots.Threshold {
		return nil, tooFew(len(signed), roots.Threshold, "root keys")
	}
	st, err := Parse(s.Text)
	if err != nil {
		return nil, err
	}
	if st.Kind != KindRoots {
		return st, nil
	}
	if err := st.signedByItself(s); err != nil {
		return nil, err
	}
	return st, nil
}

// InTime refuses a statement that is issued more than a day ahead.
func (s *Statement) InTime(now time.Time) error {
	// check: NotYetValid: a time far ahead would raise a host's clock for good
	if time.Unix(s.Issued, 0).After(now.Add(maxSkew)) {
		return decision.Errorf(decision.NotYetValid, "the statement is issued at %s, more than a day from now", stamp(s.Issued)).
			Try("check the clock here and where it was signed")
	}
	return nil
}

// signedByItself wants the new generation's own threshold: keys that nobody holds must not take over.
func (s *Statement) signedByItself(signed Signed) error {
	own, err := quorum.Signers(Namespace, signed.Text, signed.Signatures, s.Roots.Keys)
	if err != nil {
		return err
	}
	// check: ThresholdNotMet: a typing error in a new key would lock everybody out
	if len(own) < s.Roots.Threshold {
		return tooFew(len(own), s.Roots.Threshold, "its own new root keys")
	}
	return nil
}

func tooFew(have, need int, of string) error {
	return decision.Errorf(decision.ThresholdNotMet, "%d of %d needed signatures by %s", have, need, of).
		Try("hostwarrant statement sign FILE --key ROOT")
}

// For reports whether a reader that knows only its cluster's id is meant: the
// statement names that cluster and narrows it no further, or says any.
func (s *Statement) For(clusterID string) bool {
	if s.Cluster != "" {
		return s.Cluster == clusterID && len(s.Targets) == 0
	}
	return len(s.Targets) == 1 && s.Targets[0] == "any"
}

// Among reports whether the key is one of the roots.
func (r *Roots) Among(key ssh.PublicKey) bool { return quorum.Holds(r.Keys, key) }

func stamp(epoch int64) string { return time.Unix(epoch, 0).UTC().Format(time.RFC3339) }
