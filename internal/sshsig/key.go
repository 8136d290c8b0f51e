package sshsig

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// MinRSABits is the smallest RSA modulus that may vouch for anything. ssh-keygen
// itself stops at 1024; NIST SP 800-57 part 1 gives 3072 for use beyond 2030.
const MinRSABits = 3072

// maxRSABits bounds the work of one verification.
const maxRSABits = 16384

// maxKeyLine bounds a public key line; an RSA key of 16384 bits takes 2800 bytes.
const maxKeyLine = 8192

// algorithms maps each key type that may vouch to the signature algorithms it may use.
func algorithms(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return []string{keyType}
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512}
	}
	return nil
}

// IsSecurityKey reports whether the key lives on a FIDO token (sk-ssh-ed25519, sk-ecdsa).
func IsSecurityKey(key ssh.PublicKey) bool {
	return key.Type() == ssh.KeyAlgoSKED25519 || key.Type() == ssh.KeyAlgoSKECDSA256
}

// ParsePublicKey reads one OpenSSH public key line, "type base64 [comment]", of
// a key that may vouch for something. Options, certificates, other spacing and
// other encodings of a key are errors; each error carries its Reason.
func ParsePublicKey(line string) (key ssh.PublicKey, comment string, err error) {
	if len(line) > maxKeyLine {
		return nil, "", malformedKey("public key line is longer than %d bytes", maxKeyLine)
	}
	blob, comment, err := parseLine(line)
	if err != nil {
		return nil, "", err
	}
	key, err = parseKey(blob)
	if err != nil {
		return nil, "", err
	}
	return key, comment, nil
}

// parseLine gives the key blob of a line, which is of the type that the line names.
func parseLine(line string) (blob []byte, comment string, err error) {
	// check: Malformed: a line break or NUL would put a second entry into files rendered from this key
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, "", malformedKey("public key line holds a control character")
	}
	keyType, rest, _ := strings.Cut(line, " ")
	encoded, comment, _ := strings.Cut(rest, " ")
	blob, decodeErr := base64.StdEncoding.Strict().DecodeString(encoded)
	// check: Malformed: what is not plainly a key must not be guessed at
	if decodeErr != nil || len(blob) == 0 {
		return nil, "", malformedKey("not a public key line %q", "TYPE BASE64 [COMMENT]")
	}
	r := wire.NewReader(blob)
	// check: Malformed: readers differ in whether they believe the line's type or the blob's (x/crypto 7626c50)
	if named := string(r.String()); r.Failed || named != keyType {
		return nil, "", malformedKey("public key line says %.40q but its key is a %.40q", keyType, named)
	}
	return blob, comment, nil
}

func malformedKey(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...)
}

// parseKey reads a public key blob of an allowed type and size.
func parseKey(blob []byte) (ssh.PublicKey, error) {
	r := wire.NewReader(blob)
	keyType := string(r.String())
	// check: SignatureMalformed: what has no type is no key
	if r.Failed {
		return nil, malformed("public key is cut short")
	}
	// check: KeyTypeRefused: certificates, DSA and algorithms that one of our verifiers does not know
	if algorithms(keyType) == nil {
		return nil, refusedType(keyType)
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, malformed("public key of type %s cannot be read", keyType)
	}
	// check: SignatureMalformed: a second encoding of one key would count as another key
	if !bytes.Equal(key.Marshal(), blob) {
		return nil, malformed("public key of type %s is not in its canonical encoding", keyType)
	}
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	return key, nil
}

// CheckKey refuses, with KeyTypeRefused, key types and sizes that may not vouch
// for anything.
func CheckKey(key ssh.PublicKey) error {
	// check: KeyTypeRefused: a key that did not come through parseKey
	if algorithms(key.Type()) == nil {
		return refusedType(key.Type())
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519:
		return checkPoint(key)
	case ssh.KeyAlgoSKED25519:
		if err := checkPoint(key); err != nil {
			return err
		}
		return checkApplication(key)
	case ssh.KeyAlgoSKECDSA256:
		return checkApplication(key)
	case ssh.KeyAlgoRSA:
		return checkModulus(key)
	}
	return nil
}

func checkModulus(key ssh.PublicKey) error {
	bits := rsaBits(key)
	// check: KeyTypeRefused: ssh-keygen verifies RSA of 1024 bits, which can be factored
	if bits < MinRSABits || bits > maxRSABits {
		return decision.Errorf(decision.KeyTypeRefused, "RSA key of %d bits may not sign; %d to %d may", bits, MinRSABits, maxRSABits)
	}
	return nil
}

// checkApplication looks at the last field of a security key (PROTOCOL.u2f).
func checkApplication(key ssh.PublicKey) error {
	var application []byte
	for r := wire.NewReader(key.Marshal()); r.More(); {
		application = r.String()
	}
	// check: KeyTypeRefused: C programs read the application up to its NUL, or refuse the key
	if bytes.IndexByte(application, 0) >= 0 {
		return decision.Errorf(decision.KeyTypeRefused, "security key has a NUL in its application")
	}
	return nil
}

func refusedType(keyType string) error {
	return decision.Errorf(decision.KeyTypeRefused, "key type %.40q may not sign", keyType).
		Try("use ssh-ed25519, ecdsa-sha2-nistp256/384/521, their sk- forms, or RSA of 3072 bits or more")
}

// rsaBits is the size of the modulus, and 0 for what is not an RSA key.
func rsaBits(key ssh.PublicKey) int {
	holder, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	public, ok := holder.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0
	}
	return public.N.BitLen()
}
