package keyring

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Error is a key that cannot be used, with what to do about it.
type Error struct{ What, Next string }

func (e *Error) Error() string { return e.What }

// Hint is what to do next.
func (e *Error) Hint() string { return e.Next }

// Source says where keys and passphrases come from.
type Source struct {
	// Passphrase asks for the passphrase of a file.
	Passphrase func(path string) ([]byte, error)
	// CosignPassword is the value of COSIGN_PASSWORD, which opens cosign's keys and no others; nil where
	// it is not set.
	CosignPassword []byte
	// AgentSocket is the value of SSH_AUTH_SOCK.
	AgentSocket string
	// Notify, where there is one, tells people what a key waits for.
	Notify func(text string)
}

// Load gives a signer for a private key file, for a public key file whose key the agent holds, or for a
// certificate (docs/cli.md, Keys), which then is the signer's public key. Close ends the connection to the
// agent. A key that may not vouch for anything is refused before anybody is
// asked for a passphrase, a PIN or a touch, wherever its file tells.
func (s Source) Load(path string) (ssh.Signer, io.Closer, error) {
	f, err := readKeyFile(path)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := f.certificate()
	if err != nil {
		return nil, nil, err
	}
	if certificate != nil {
		return s.certified(path, certificate)
	}
	pub, err := f.elsewhere()
	if err != nil {
		return nil, nil, err
	}
	if pub != nil {
		return s.fromAgent(path, pub)
	}
	if err := f.checkMode(); err != nil {
		return nil, nil, err
	}
	key, err := s.open(f)
	if err != nil {
		return nil, nil, err
	}
	signer, err := newSigner(path, key)
	return signer, io.NopCloser(nil), err
}

func newSigner(path string, key any) (ssh.Signer, error) {
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, &Error{fmt.Sprintf("key %q: %s: %v", path, decision.KeyTypeRefused, err), usable}
	}
	// check: KeyTypeRefused: a key that can be factored, or that some verifier does not know
	if err := sshsig.CheckKey(signer.PublicKey()); err != nil {
		return nil, refused(path, err)
	}
	return signer, nil
}

const usable = "ssh-keygen -t ed25519 makes a key that may"

// refused is a rule of the trust core that says no to a key.
func refused(path string, err error) error {
	e := decision.From(err)
	next := e.Hint
	if next == "" {
		next = usable
	}
	return &Error{fmt.Sprintf("key %q: %v", path, e), next}
}

// isRefused tells a key that may not be used from a text that is no key.
func isRefused(err error) bool {
	e, ok := errors.AsType[*decision.Error](err)
	return ok && e.Reason == decision.KeyTypeRefused
}
