package transport

import (
	"golang.org/x/crypto/ssh"
)

// maxLoginKey is far above the largest key file: RSA 16384 takes 13 KiB.
const maxLoginKey = 64 << 10

// ParseLoginKey reads the private key with which the relay logs in to a host.
// It is the only place in the relay where a private key is read: it opens a
// connection and can vouch for nothing, since hosts take no login key as signer.
func ParseLoginKey(pem []byte) (ssh.Signer, error) {
	if len(pem) == 0 || len(pem) > maxLoginKey {
		return nil, failed(LoginKeyInvalid, "the login key is empty or longer than %d bytes", maxLoginKey)
	}
	key, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		// the parser's own text could quote the file
		return nil, failed(LoginKeyInvalid, "the login key is not an unencrypted private key in PEM")
	}
	return key, nil
}
