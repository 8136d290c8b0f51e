package krl

import (
	"bytes"
	"crypto/rsa"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// minRSABits is OpenSSH's SSH_RSA_MINIMUM_MODULUS_SIZE (sshkey.h): smaller keys
// it does not read.
const minRSABits = 1024

// readable parses a public key that both x/crypto and every OpenSSH read. It
// need not be one that may sign: old and weak keys are what one revokes.
func readable(blob []byte) (ssh.PublicKey, error) {
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, malformed("a public key cannot be read")
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return key, nil
	case ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return key, checkApplication(blob)
	case ssh.KeyAlgoRSA:
		return key, checkRSA(key)
	}
	return nil, malformed("public keys of type %.40q are not read here", key.Type()).Try("revoke the plain key of a certificate")
}

// checkApplication looks at the last field of a security key (PROTOCOL.u2f).
func checkApplication(blob []byte) error {
	var application []byte
	for r := wire.NewReader(blob); r.More(); {
		application = r.String()
	}
	// check: Malformed: OpenSSH refuses a list with such a key
	if bytes.IndexByte(application, 0) >= 0 {
		return malformed("a security key has a NUL in its application")
	}
	return nil
}

func checkRSA(key ssh.PublicKey) error {
	holder, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return malformed("an RSA key cannot be read")
	}
	public, ok := holder.CryptoPublicKey().(*rsa.PublicKey)
	// check: Malformed: OpenSSH refuses a KRL with such a key, and skips it in a plain list
	if !ok || public.N.BitLen() < minRSABits {
		return malformed("an RSA key of fewer than %d bits is not read by OpenSSH", minRSABits)
	}
	return nil
}
