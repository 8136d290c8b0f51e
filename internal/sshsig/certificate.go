package sshsig

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

const (
	// maxPrincipals is OpenSSH's SSHKEY_CERT_MAX_PRINCIPALS (sshkey.h): it does
	// not read a certificate with more.
	maxPrincipals = 256

	// lastSecond is 9999-12-31T23:59:59Z. A later end is no end.
	lastSecond = 253402300799
)

// certifiedType is the key type that a certificate type certifies, and "" for
// what is not a certificate of a key that may vouch.
func certifiedType(keyType string) string {
	switch keyType {
	case ssh.CertAlgoED25519v01:
		return ssh.KeyAlgoED25519
	case ssh.CertAlgoECDSA256v01:
		return ssh.KeyAlgoECDSA256
	case ssh.CertAlgoECDSA384v01:
		return ssh.KeyAlgoECDSA384
	case ssh.CertAlgoECDSA521v01:
		return ssh.KeyAlgoECDSA521
	case ssh.CertAlgoSKED25519v01:
		return ssh.KeyAlgoSKED25519
	case ssh.CertAlgoSKECDSA256v01:
		return ssh.KeyAlgoSKECDSA256
	case ssh.CertAlgoRSAv01:
		return ssh.KeyAlgoRSA
	}
	return ""
}

// ParseAllWithCertificates is ParseAll for callers that have a cert-authority
// entry to check against: a block may hold a certificate in place of its key.
// Nothing of a certificate is believed before CheckCertificate, and its key must
// not be looked up among plain keys: ssh-keygen does not either.
func ParseAllWithCertificates(armored []byte) ([]*Signature, error) {
	return parseAll(armored, parseKeyOrCertificate)
}

// Certificate is what the signature names in place of a key, and nil for a raw
// key. PublicKey then is the certified key.
func (s *Signature) Certificate() *ssh.Certificate { return s.certificate }

// identity is who a signature says made it.
type identity struct {
	key         ssh.PublicKey
	certificate *ssh.Certificate
}

func parseRawKey(blob []byte) (identity, error) {
	key, err := parseKey(blob)
	return identity{key: key}, err
}

func parseKeyOrCertificate(blob []byte) (identity, error) {
	r := wire.NewReader(blob)
	keyType := string(r.String())
	if r.Failed || certifiedType(keyType) == "" {
		return parseRawKey(blob)
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return identity{}, malformed("certificate of type %s cannot be read", keyType)
	}
	certificate, ok := key.(*ssh.Certificate)
	// check: SignatureMalformed: what is added to a certificate without its CA, or written another way, is read differently by other readers
	if !ok || !bytes.Equal(certificate.Marshal(), blob) {
		return identity{}, malformed("certificate of type %s is not in its canonical encoding", keyType)
	}
	certified, err := parseKey(certificate.Key.Marshal())
	if err != nil {
		return identity{}, err
	}
	return identity{key: certified, certificate: certificate}, nil
}

// ParseCertificate reads one line of a certificate, as ssh-keygen -s writes it to
// KEY-cert.pub; nil where the line is of another type. Nothing of it is believed
// before CheckCertificate.
func ParseCertificate(line string) (*ssh.Certificate, error) {
	if keyType, _, _ := strings.Cut(line, " "); certifiedType(keyType) == "" {
		return nil, nil
	}
	// check: Malformed: no signature with a larger one can be read
	if len(line) > 2*MaxArmored {
		return nil, malformedKey("certificate line is longer than %d bytes", 2*MaxArmored)
	}
	blob, _, err := parseLine(line)
	if err != nil {
		return nil, err
	}
	who, err := parseKeyOrCertificate(blob)
	return who.certificate, err
}

// CheckCertificate says whether a user certificate stands by itself at the time
// now: whoever calls it has still to ask whether its CA is trusted, and for
// which of its principals. The error carries KeyTypeRefused, NotYetValid,
// Expired or SignatureInvalid.
func CheckCertificate(c *ssh.Certificate, now time.Time) error {
	return check(c, ssh.UserCert, now)
}

// CheckHostCertificate is CheckCertificate for what a host shows. Whoever calls it
// has still to ask whether its CA is trusted, and for which of its principals,
// which are names and addresses of hosts.
func CheckHostCertificate(c *ssh.Certificate, now time.Time) error {
	return check(c, ssh.HostCert, now)
}

func check(c *ssh.Certificate, kind uint32, now time.Time) error {
	if err := checkShape(c, kind); err != nil {
		return err
	}
	if err := checkTerm(c, now); err != nil {
		return err
	}
	return checkAuthority(c)
}

func refusedCertificate(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.KeyTypeRefused, format, args...)
}

// checkShape checks what does not depend on the time or on the CA's signature.
func checkShape(c *ssh.Certificate, kind uint32) error {
	// check: KeyTypeRefused: what is not there is no certificate
	if c == nil || c.Key == nil || c.SignatureKey == nil || c.Signature == nil {
		return refusedCertificate("certificate is incomplete")
	}
	if err := CheckKey(c.Key); err != nil {
		return err
	}
	// A CA that is itself a certificate fails here too: its type is none of a raw key.
	if err := CheckKey(c.SignatureKey); err != nil {
		return decision.From(err).At("certificate authority")
	}
	// check: KeyTypeRefused: a host's certificate says nothing about who may sign, nor a user's about which host is meant
	if c.CertType != kind {
		return refusedCertificate("certificate of type %d is not %s", c.CertType, certificateKind(kind))
	}
	// check: KeyTypeRefused: a critical option limits the certificate, and ssh-keygen verifies as if it were not there
	if len(c.CriticalOptions) != 0 {
		return refusedCertificate("certificate has critical options, which cannot be honoured for a signature")
	}
	// check: KeyTypeRefused: a certificate for nobody was taken as one for everybody (CVE-2024-7594)
	if len(c.ValidPrincipals) == 0 {
		return refusedCertificate("certificate names no principal")
	}
	// check: KeyTypeRefused: ssh-keygen does not read a certificate with so many
	if len(c.ValidPrincipals) > maxPrincipals {
		return refusedCertificate("certificate names %d principals, more than %d", len(c.ValidPrincipals), maxPrincipals)
	}
	// check: KeyTypeRefused: C programs read a name up to its NUL, or refuse it
	if slices.ContainsFunc(append([]string{c.KeyId}, c.ValidPrincipals...), hasNUL) {
		return refusedCertificate("certificate has a NUL in its key id or a principal")
	}
	return nil
}

func certificateKind(kind uint32) string {
	if kind == ssh.HostCert {
		return "a host certificate"
	}
	return "a user certificate"
}

func hasNUL(s string) bool { return strings.Contains(s, "\x00") }

// checkTerm reads the times as PROTOCOL.certkeys does: valid after <= now < valid before.
func checkTerm(c *ssh.Certificate, now time.Time) error {
	// check: KeyTypeRefused: a certificate without an end outlives every change of mind
	if c.ValidBefore > lastSecond {
		return refusedCertificate("certificate has no end").Try("issue it with an end: ssh-keygen -s CA -V +90d …")
	}
	seconds := max(now.Unix(), 0)
	// check: NotYetValid: the CA vouches from this time on only
	if uint64(seconds) < c.ValidAfter {
		return decision.Errorf(decision.NotYetValid, "certificate is valid from %s on", stamp(c.ValidAfter))
	}
	// check: Expired: the CA vouches up to this time only
	if uint64(seconds) >= c.ValidBefore {
		return decision.Errorf(decision.Expired, "certificate expired at %s", stamp(c.ValidBefore))
	}
	return nil
}

func stamp(seconds uint64) string {
	if seconds > lastSecond {
		return "a time after the year 9999"
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}

// checkAuthority checks that the key that the certificate names as its CA signed
// it, with an algorithm and an encoding that a signer may use. A FIDO token of a
// CA must have been touched.
func checkAuthority(c *ssh.Certificate) error {
	raw := wire.AppendString(nil, c.Signature.Format)
	raw = wire.AppendString(raw, c.Signature.Blob)
	raw = append(raw, c.Signature.Rest...)
	signature, err := parseRaw(c.SignatureKey, raw)
	if err != nil {
		return decision.From(err).At("certificate authority")
	}
	// check: SignatureInvalid: anyone can write a certificate that names a CA
	if c.SignatureKey.Verify(certifiedData(c), signature) != nil {
		return decision.Errorf(decision.SignatureInvalid, "certificate is not signed by its authority %s", Fingerprint(c.SignatureKey))
	}
	return nil
}

// certifiedData is all of the certificate before its signature (PROTOCOL.certkeys).
func certifiedData(c *ssh.Certificate) []byte {
	unsigned := *c
	unsigned.Signature = nil
	data := unsigned.Marshal()
	return data[:len(data)-4] // an empty signature is written as its length alone
}
