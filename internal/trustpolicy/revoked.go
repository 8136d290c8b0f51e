package trustpolicy

import (
	"slices"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

type revoked struct {
	Signers         []string `yaml:"signers"`
	FragmentSigners []string `yaml:"fragmentSigners"`
}

func (d *document) revocations(p *Policy) error {
	// check: PolicyMalformed: a revocation that matches no key revokes nothing
	if i := slices.IndexFunc(d.Revoked.Signers, func(f string) bool { return !sshsig.ValidFingerprint(f) }); i >= 0 {
		return malformed("revoked.signers: %.80q is no fingerprint SHA256:... of a key", d.Revoked.Signers[i])
	}
	// check: PolicyMalformed: a revocation that matches no key revokes nothing
	if i := slices.IndexFunc(d.Revoked.FragmentSigners, func(f string) bool { return !fragmentPrint.MatchString(f) }); i >= 0 {
		return malformed("revoked.fragmentSigners: %.80q is not key: and 64 lower-case hex digits", d.Revoked.FragmentSigners[i])
	}
	p.revoked, p.RevokedFragmentSigners = d.Revoked.Signers, d.Revoked.FragmentSigners
	return nil
}

// Revoked reports whether the policy revokes the key.
func (p *Policy) Revoked(key ssh.PublicKey) bool {
	return slices.Contains(p.revoked, sshsig.Fingerprint(key))
}

// RevokedSigners are the fingerprints that the policy revokes, ascending, each once.
func (p *Policy) RevokedSigners() []string {
	return slices.Compact(slices.Sorted(slices.Values(p.revoked)))
}
