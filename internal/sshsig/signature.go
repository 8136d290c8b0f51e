package sshsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"slices"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

const (
	magic   = "SSHSIG"
	version = 1

	// flagUserPresent is bit 0 of a FIDO assertion's flags (PROTOCOL.u2f): someone touched the token.
	flagUserPresent = 1
	// skSuffix is the flags byte and the counter behind an sk signature (PROTOCOL.u2f).
	skSuffix = 1 + 4
)

// Signature is one SSHSIG block in canonical form. It says nothing yet: only
// Verify does, and then only for the message it was given.
type Signature struct {
	key         ssh.PublicKey
	certificate *ssh.Certificate
	namespace   string
	hash        string
	signature   *ssh.Signature
}

// PublicKey is the key that claims to have signed.
func (s *Signature) PublicKey() ssh.PublicKey { return s.key }

// Namespace is what the signature claims to be for.
func (s *Signature) Namespace() string { return s.namespace }

// HashAlgorithm is "sha256" or "sha512".
func (s *Signature) HashAlgorithm() string { return s.hash }

// Parse reads exactly one canonical armored block. A missing final LF is
// tolerated, since YAML's "|-" drops it; nothing else is. The error carries
// SignatureMalformed or KeyTypeRefused.
func Parse(armored []byte) (*Signature, error) {
	all, err := ParseAll(armored)
	if err != nil {
		return nil, err
	}
	// check: SignatureMalformed: readers differ in which of several blocks they take
	if len(all) != 1 {
		return nil, malformed("holds %d signatures where one is wanted", len(all))
	}
	return all[0], nil
}

// ParseAll reads one to MaxBlocks canonical armored blocks, one directly after
// the other. Certificates are refused: see ParseAllWithCertificates.
func ParseAll(armored []byte) ([]*Signature, error) { return parseAll(armored, parseRawKey) }

func parseAll(armored []byte, parseIdentity func([]byte) (identity, error)) ([]*Signature, error) {
	// check: SignatureMalformed: work before verification must be bounded
	if len(armored) > MaxArmored {
		return nil, malformed("signature text is %d bytes long, more than %d", len(armored), MaxArmored)
	}
	var all []*Signature
	for rest := canonicalEnd(armored); len(all) == 0 || len(rest) > 0; {
		// check: SignatureMalformed: each block costs a verification
		if len(all) == MaxBlocks {
			return nil, malformed("holds more than %d signatures", MaxBlocks)
		}
		blob, after, err := dearmor(rest)
		if err != nil {
			return nil, err
		}
		signature, err := parseBlob(blob, parseIdentity)
		if err != nil {
			return nil, err
		}
		all, rest = append(all, signature), after
	}
	return all, nil
}

// parseBlob reads the binary form of PROTOCOL.sshsig, "Blob format".
func parseBlob(blob []byte, parseIdentity func([]byte) (identity, error)) (*Signature, error) {
	r := wire.NewReader(blob)
	if string(r.Take(uint64(len(magic)))) != magic {
		return nil, malformed("signature does not start with %q", magic)
	}
	// check: SignatureMalformed: the version is not covered by the signature, and OpenSSH takes 0 for 1
	if v := r.Uint32(); v != version {
		return nil, malformed("signature has version %d, not %d", v, version)
	}
	keyBlob, namespace, reserved, hash, raw := r.String(), r.String(), r.String(), r.String(), r.String()
	// check: SignatureMalformed: trailing bytes are read differently by different readers
	if !r.Done() {
		return nil, malformed("signature is cut short or has bytes left over")
	}
	// check: SignatureMalformed: the blob's reserved field is not covered by the signature
	if len(reserved) != 0 {
		return nil, malformed("signature has something in its reserved field")
	}
	// check: SignatureMalformed: only the two hashes of PROTOCOL.sshsig
	if digest(string(hash), nil) == nil {
		return nil, malformed("hash %.20q is not sha256 or sha512", hash)
	}
	who, err := parseIdentity(keyBlob)
	if err != nil {
		return nil, err
	}
	signature, err := parseRaw(who.key, raw)
	if err != nil {
		return nil, err
	}
	return &Signature{key: who.key, certificate: who.certificate, namespace: string(namespace), hash: string(hash), signature: signature}, nil
}

// parseRaw reads the signature encoding of the key's type (RFC 4253 section 6.6,
// RFC 5656 section 3.1.2, RFC 8332, RFC 8709, PROTOCOL.u2f).
func parseRaw(key ssh.PublicKey, raw []byte) (*ssh.Signature, error) {
	r := wire.NewReader(raw)
	algorithm, value := string(r.String()), r.String()
	if r.Failed {
		return nil, malformed("signature value is cut short")
	}
	// check: KeyTypeRefused: SHA-1 (ssh-rsa), and webauthn signatures, which our host shim cannot check for touch
	if !slices.Contains(algorithms(key.Type()), algorithm) {
		return nil, decision.Errorf(decision.KeyTypeRefused, "signature algorithm %.40q may not be used with a %s key", algorithm, key.Type())
	}
	want := 0
	if IsSecurityKey(key) {
		want = skSuffix
	}
	// check: SignatureMalformed: bytes after the value are ignored by x/crypto and refused by ssh-keygen
	if len(r.Rest) != want {
		return nil, malformed("signature value has %d bytes after it, not %d", len(r.Rest), want)
	}
	// check: SignatureMalformed: padded numbers are a second spelling
	if !canonicalValue(key, value) {
		return nil, malformed("signature value is not in the canonical form of a %s key", key.Type())
	}
	return &ssh.Signature{Format: algorithm, Blob: value, Rest: r.Rest}, nil
}

// canonicalValue checks the length or number encoding of a signature value.
func canonicalValue(key ssh.PublicKey, value []byte) bool {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519:
		return len(value) == 64 // ed25519.SignatureSize
	case ssh.KeyAlgoRSA:
		return len(value) == (rsaBits(key)+7)/8
	case ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256:
		rs := wire.NewReader(value)
		r, s := rs.Mpint(), rs.Mpint()
		return r && s && rs.Done()
	}
	return false
}

// CheckPurpose checks what a signature says of itself, before any key is
// trusted: that it is for namespace, and that a FIDO token was touched for it.
// The error carries WrongNamespace or TouchMissing.
func (s *Signature) CheckPurpose(namespace string) error {
	// check: WrongNamespace: a signature made for something else (a git commit, another kind) must not count here
	if s.namespace != namespace {
		return decision.Errorf(decision.WrongNamespace, "signature is for namespace %.40q, not %q", s.namespace, namespace)
	}
	// check: TouchMissing: malware on the signer's machine can use a token that nobody touches; ssh-keygen does not look
	if IsSecurityKey(s.key) && (len(s.signature.Rest) != skSuffix || s.signature.Rest[0]&flagUserPresent == 0) {
		return decision.Errorf(decision.TouchMissing, "the security key %s was not touched for this signature", Fingerprint(s.key))
	}
	return nil
}

// Verify checks the purpose of s and that its key signed message. The error
// carries WrongNamespace, TouchMissing or SignatureInvalid. Whether the key may
// sign this is not asked here.
func (s *Signature) Verify(namespace string, message []byte) error {
	if err := s.CheckPurpose(namespace); err != nil {
		return err
	}
	// check: SignatureInvalid: the signature itself
	if err := s.key.Verify(signedData(namespace, s.hash, message), s.signature); err != nil {
		return decision.Errorf(decision.SignatureInvalid, "signature by %s does not match these bytes", Fingerprint(s.key))
	}
	return nil
}

// signedData rebuilds from our own expectations what must have been signed
// (PROTOCOL.sshsig, "Signed Data").
func signedData(namespace, hash string, message []byte) []byte {
	b := []byte(magic)
	b = wire.AppendString(b, namespace)
	b = wire.AppendString(b, "") // reserved
	b = wire.AppendString(b, hash)
	return wire.AppendString(b, digest(hash, message))
}

// digest is nil for a hash that is not allowed.
func digest(hash string, message []byte) []byte {
	switch hash {
	case "sha256":
		sum := sha256.Sum256(message)
		return sum[:]
	case "sha512":
		sum := sha512.Sum512(message)
		return sum[:]
	}
	return nil
}
