package fragment

import (
	"crypto/ecdsa"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

func todo() error { return decision.Errorf(decision.Internal, "not written yet") }

// Parse reads a carrier from JSON.
func Parse(raw []byte) (*Object, error) { return nil, todo() }

// Verify reports what was signed.
func Verify(o *Object) (*Fragment, error) { return nil, todo() }

// Content gives the canonical content.
func Content(o *Object) ([]byte, error) { return nil, todo() }

// Digest is what is signed.
func Digest(content []byte) (string, error) { return "", todo() }

// Fingerprint is "key:" and the SHA-256 of the SPKI.
func Fingerprint(key *ecdsa.PublicKey) (string, error) { return "", todo() }

// Annotations are those of a signature.
func Annotations(content, certificatePEM, signature []byte, embed bool, at time.Time) map[string]string {
	return nil
}
