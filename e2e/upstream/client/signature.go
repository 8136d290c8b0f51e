package client

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// ConfigurationError is a profile or host that cannot be used. Nothing was dialled.
type ConfigurationError struct{ err error }

// Error says what is wrong with it.
func (e *ConfigurationError) Error() string { return e.err.Error() }

const namespace = "kpssh"

// check is what the controller asks of a phase before it connects.
func (p Profile) check(phase string, trusted []string) error {
	script, signature := p.Scripts[phase], p.Signatures[phase]
	switch {
	case script == "":
		return fmt.Errorf("no %s script", phase)
	case strings.Contains(script, "{{"):
		return fmt.Errorf("the %s script holds a template", phase)
	case signature == "":
		return fmt.Errorf("no signature for %s", phase)
	}
	return verify([]byte(script), []byte(signature), trusted)
}

// verify judges the first armored block of a signature (PROTOCOL.sshsig).
func verify(message, armored []byte, trusted []string) error {
	block, _ := pem.Decode(armored)
	if block == nil || block.Type != "SSH SIGNATURE" {
		return errors.New("no armored signature")
	}
	preamble := []byte("SSHSIG")
	raw, ok := bytes.CutPrefix(block.Bytes, preamble)
	if !ok {
		return errors.New("no SSHSIG")
	}
	var blob struct {
		Version   uint32
		Key       []byte
		Namespace string
		Reserved  string
		Hash      string
		Signature []byte
	}
	if err := ssh.Unmarshal(raw, &blob); err != nil {
		return fmt.Errorf("reading the signature: %w", err)
	}
	var digest []byte
	switch blob.Hash {
	case "sha256":
		sum := sha256.Sum256(message)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(message)
		digest = sum[:]
	}
	if blob.Version != 1 || blob.Namespace != namespace || digest == nil {
		return fmt.Errorf("version %d, namespace %q, hash %q", blob.Version, blob.Namespace, blob.Hash)
	}
	key, err := trustedKey(blob.Key, trusted)
	if err != nil {
		return err
	}
	// Format and Blob alone: what follows them, flags and counter of a token, is dropped.
	var signature struct {
		Format string
		Blob   []byte
		Rest   []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(blob.Signature, &signature); err != nil {
		return fmt.Errorf("reading the signature: %w", err)
	}
	toSign := slices.Concat(preamble, ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{namespace, "", blob.Hash, digest}))
	return key.Verify(toSign, &ssh.Signature{Format: signature.Format, Blob: signature.Blob})
}

func trustedKey(blob []byte, trusted []string) (ssh.PublicKey, error) {
	for _, line := range trusted {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("trustedSigners: %w", err)
		}
		if bytes.Equal(key.Marshal(), blob) {
			return key, nil
		}
	}
	return nil, errors.New("the signer is none of trustedSigners")
}
