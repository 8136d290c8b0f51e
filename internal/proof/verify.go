package proof

import (
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Host says which keys are those of one host. The zero Host has none.
type Host struct {
	// Keys are its own keys.
	Keys []ssh.PublicKey
	// Authorities certify keys of hosts.
	Authorities []ssh.PublicKey
	// Principals are the names under which an authority may certify this host: one
	// of them must stand in the certificate, letter by letter.
	Principals []string
}

// Question is what the host was asked with. The zero Question has no answer.
type Question struct {
	// Cluster is the id of the cluster that asks. A host that was told no cluster
	// answers for none, and that is accepted.
	Cluster string
	// RunUID and Nonce must be in the answer.
	RunUID, Nonce string
}

// Verify returns the facts of a proof that this host made for this question. The
// error carries ProofFailed, Malformed, or what its signature or certificate is
// refused with.
func Verify(text, armored []byte, host Host, asked Question, now time.Time) (*Facts, error) {
	if err := verifySignature(text, armored, host, now); err != nil {
		return nil, err
	}
	f, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if err := asked.answeredBy(f); err != nil {
		return nil, err
	}
	return f, nil
}

func verifySignature(text, armored []byte, host Host, now time.Time) error {
	// check: Malformed: work before verification must be bounded
	if len(text) > MaxBytes {
		return decision.Errorf(decision.Malformed, "the proof is %d bytes long, more than %d", len(text), MaxBytes)
	}
	signatures, err := sshsig.ParseAllWithCertificates(armored)
	if err != nil {
		return err
	}
	// check: SignatureMalformed: readers differ in which of several blocks they take
	if len(signatures) != 1 {
		return decision.Errorf(decision.SignatureMalformed, "the proof has %d signatures where one is wanted", len(signatures))
	}
	if err := host.vouches(signatures[0], now); err != nil {
		return err
	}
	return signatures[0].Verify(Namespace, text)
}

// vouches says whether the key of a signature is one of the host's.
func (h Host) vouches(s *sshsig.Signature, now time.Time) error {
	// A key that is named itself counts whatever certificate it shows beside.
	if quorum.Holds(h.Keys, s.PublicKey()) {
		return nil
	}
	c := s.Certificate()
	// check: ProofFailed: a key that the courier alone vouches for, or that of another host
	if c == nil {
		return decision.Errorf(decision.ProofFailed, "the proof is signed by %s, which is not a key of this host", sshsig.Fingerprint(s.PublicKey()))
	}
	// check: ProofFailed: anyone can be an authority of his own
	if c.SignatureKey == nil || !quorum.Holds(h.Authorities, c.SignatureKey) {
		return decision.Errorf(decision.ProofFailed, "the proof is signed by %s, whose certificate is by no authority of this host", sshsig.Fingerprint(s.PublicKey()))
	}
	if err := sshsig.CheckHostCertificate(c, now); err != nil {
		return decision.From(err).At("host certificate")
	}
	// check: ProofFailed: another host of the same authority
	if !slices.ContainsFunc(c.ValidPrincipals, func(p string) bool { return slices.Contains(h.Principals, p) }) {
		return decision.Errorf(decision.ProofFailed, "the host certificate is for other names than %.200q", h.Principals)
	}
	return nil
}

// answeredBy compares question and answer.
func (q Question) answeredBy(f *Facts) error {
	// check: ProofFailed: a proof that was made at another time is shown again
	if q.Nonce == "" || f.Nonce != q.Nonce {
		return decision.Errorf(decision.ProofFailed, "the proof is for another nonce")
	}
	// check: ProofFailed: a proof that was made for another run
	if q.RunUID == "" || f.RunUID != q.RunUID {
		return decision.Errorf(decision.ProofFailed, "the proof is for the run %s", f.RunUID)
	}
	// check: ProofFailed: a host of another cluster
	if f.Cluster != "" && f.Cluster != q.Cluster {
		return decision.Errorf(decision.ProofFailed, "the host belongs to cluster %s, not %.63q", f.Cluster, q.Cluster)
	}
	return nil
}
