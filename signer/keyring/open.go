package keyring

import (
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"golang.org/x/crypto/ssh"
)

// open reads the private key of a file by the type of its PEM block.
func (s Source) open(f *keyFile) (any, error) {
	block := f.pem()
	switch block.Type {
	case "OPENSSH PRIVATE KEY", "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
		return s.openSSH(f, block)
	case "ENCRYPTED PRIVATE KEY":
		return s.openSigstore(f, block, s.ask)
	case "ENCRYPTED COSIGN PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY":
		return s.openSigstore(f, block, s.cosignPassword)
	}
	return nil, f.damaged()
}

// openSSH opens what ssh-keygen and OpenSSL write.
func (s Source) openSSH(f *keyFile, block *pem.Block) (any, error) {
	data := pem.EncodeToMemory(block)
	key, err := ssh.ParseRawPrivateKey(data)
	if err == nil {
		return key, nil
	}
	if _, missing := errors.AsType[*ssh.PassphraseMissingError](err); !missing {
		// check: KeyTypeRefused: a curve that no verifier knows; what is damaged is another matter
		if onUnknownCurve(block) {
			return nil, f.unknownCurve()
		}
		return nil, f.damaged()
	}
	pass, err := s.ask(f.path)
	if err != nil {
		return nil, err
	}
	key, err = ssh.ParseRawPrivateKeyWithPassphrase(data, pass)
	if err != nil {
		return nil, wrongPassphrase(f.path, "that passphrase")
	}
	return key, nil
}

// openSigstore opens what cosign and sigstore write, and PKCS #8 with a passphrase.
func (s Source) openSigstore(f *keyFile, block *pem.Block, ask func(path string) ([]byte, error)) (any, error) {
	pass, err := ask(f.path)
	if err != nil {
		return nil, err
	}
	if pass == nil {
		pass = []byte{} // nil would mean that the key is not encrypted
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(pem.EncodeToMemory(block), cryptoutils.StaticPasswordFunc(pass))
	if err != nil && s.CosignPassword != nil && block.Type != "ENCRYPTED PRIVATE KEY" {
		return nil, wrongPassphrase(f.path, "the password in COSIGN_PASSWORD")
	}
	if err != nil {
		return nil, wrongPassphrase(f.path, "that passphrase")
	}
	return key, nil
}

func (s Source) ask(path string) ([]byte, error) {
	pass, err := s.Passphrase(path)
	if err != nil {
		return nil, &Error{
			fmt.Sprintf("key %q has a passphrase, and %v", path, err),
			"load it into ssh-agent with ssh-add, and name its .pub file in its place",
		}
	}
	return pass, nil
}

func (s Source) cosignPassword(path string) ([]byte, error) {
	if s.CosignPassword != nil {
		return s.CosignPassword, nil
	}
	pass, err := s.Passphrase(path)
	if err != nil {
		return nil, &Error{
			fmt.Sprintf("key %q has a password, and %v", path, err),
			"set COSIGN_PASSWORD, as for cosign",
		}
	}
	return pass, nil
}

// wrongPassphrase does not show the cause: it may hold bytes of the file.
func wrongPassphrase(path, what string) error {
	return &Error{fmt.Sprintf("key %q cannot be opened with %s", path, what), "a damaged file gives the same answer"}
}
