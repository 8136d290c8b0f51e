package hostsetup

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Who signs a release, and for what (docs/development/release.md).
const (
	releaseIdentity  = "release"
	releaseNamespace = "hostwarrant-release"
	shimName         = "kpssh-shim"
)

// CheckShim wants the shim to be the one of a release: its digest is in the list of
// checksums, and a release key signed the list. The error carries the Reasons of
// allowedsigners' Verify, and BytesChanged.
func CheckShim(shim, checksums, signature []byte, keys *allowedsigners.List, now time.Time) error {
	parsed, err := sshsig.Parse(signature)
	if err != nil {
		return err
	}
	// check: SignatureInvalid,SignerUnknown: a list of checksums that anybody may have written vouches for any shim
	if err := keys.Verify(releaseIdentity, releaseNamespace, parsed, checksums, nil, now); err != nil {
		return err
	}
	sum := sha256.Sum256(shim)
	digest := hex.EncodeToString(sum[:])
	// check: BytesChanged: a shim with one line less runs whatever the relay sends
	if !lists(string(checksums), digest, shimName) {
		return decision.Errorf(decision.BytesChanged, "the shim's sha256 is %s, which the signed checksums do not give for %s", digest, shimName).
			Try("give --shim and --checksums of one release")
	}
	return nil
}

// lists reports whether a list, as sha256sum writes it, gives a file this digest.
func lists(checksums, digest, name string) bool {
	for line := range strings.Lines(checksums) {
		text := strings.TrimSuffix(line, "\n")
		if text == digest+"  "+name || text == digest+" *"+name {
			return true
		}
	}
	return false
}
