package main

import (
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// usable says whether a key may sign scripts: by itself, or by a certificate that stands now.
func (c *cli) usable(path string, key ssh.Signer) error {
	certificate, ok := key.PublicKey().(*ssh.Certificate)
	if !ok {
		return checkKey(path, key)
	}
	if err := sshsig.CheckCertificate(certificate, c.now()); err != nil {
		return undecided(fmt.Errorf("certificate %s: %w", path, err))
	}
	return nil
}

// loadRoot loads a key that signs for itself alone.
func (c *cli) loadRoot(path string) (key ssh.Signer, closeAll func(*error), err error) {
	closeAll = func(*error) {}
	key, closer, err := c.keys.Load(path)
	if err != nil {
		return nil, closeAll, undecided(err)
	}
	closeAll = func(err *error) { closeKey(closer, err) }
	// check: KeyTypeRefused: who may certify a root could make roots
	if _, certified := key.PublicKey().(*ssh.Certificate); certified {
		err := decision.Errorf(decision.KeyTypeRefused, "a root signs with its own key, not with a certificate").Try("give the key that was certified")
		return nil, closeAll, undecided(fmt.Errorf("key %s: %w", path, err))
	}
	return key, closeAll, checkKey(path, key)
}
