package quorum

import (
	"slices"
	"strconv"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// MaxSignatures bounds the verifications of one text: a root statement needs the
// thresholds of two generations, 8 each.
const MaxSignatures = 16

// Signers returns the distinct keys, of those that may count, that signed the
// message in the namespace. A signature by another key says nothing; one by a
// key that counts and does not cover the message is an error, whose Where is the
// number of the signature, as in "signatures[1]".
func Signers(namespace string, message []byte, signatures []string, may []ssh.PublicKey) ([]ssh.PublicKey, error) {
	var signed []ssh.PublicKey
	for i, armored := range signatures {
		key, err := signer(namespace, message, armored, may)
		if err != nil {
			return nil, decision.From(err).At("signatures[" + strconv.Itoa(i) + "]")
		}
		if key == nil {
			continue
		}
		// check: PolicyUnsigned,ThresholdNotMet: one key that signs twice is still one key
		if Holds(signed, key) {
			continue
		}
		signed = append(signed, key)
	}
	return signed, nil
}

// Count is how many of the keys are among signed.
func Count(signed, keys []ssh.PublicKey) int {
	n := 0
	for _, key := range signed {
		if Holds(keys, key) {
			n++
		}
	}
	return n
}

// Holds reports whether the key itself is among keys; comments and spellings do not matter.
func Holds(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return Same(k, key) })
}

// Same reports whether two keys are one.
func Same(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// signer returns the key that signed, or nil for a key that does not count.
func signer(namespace string, message []byte, armored string, may []ssh.PublicKey) (ssh.PublicKey, error) {
	signature, err := sshsig.Parse([]byte(armored))
	if err != nil {
		return nil, err
	}
	key := signature.PublicKey()
	if !Holds(may, key) {
		return nil, nil
	}
	err = signature.Verify(namespace, message)
	// check: SignatureInvalid,NewlineChanged: only the very bytes that were signed
	if err != nil {
		return nil, mismatch(signature, namespace, message, err)
	}
	return key, nil
}

// mismatch words what became of the bytes that the signature does not match.
func mismatch(signature *sshsig.Signature, namespace string, message []byte, err error) error {
	change := script.NewlineChange(message, func(b []byte) bool { return signature.Verify(namespace, b) == nil })
	if change == "" {
		return err
	}
	return decision.Errorf(decision.NewlineChanged, "%s after %s signed", change, sshsig.Fingerprint(signature.PublicKey()))
}
