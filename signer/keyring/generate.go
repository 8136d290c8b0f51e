package keyring

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Pair is a new key: the private half as an OpenSSH file, the public half as a line with its comment,
// and a signer.
type Pair struct {
	Private []byte
	Public  string
	Signer  ssh.Signer
}

// Generate makes an Ed25519 key without a passphrase. The comment stands in both halves.
func Generate(rand io.Reader, comment string) (*Pair, error) {
	pub, priv, err := ed25519.GenerateKey(rand)
	if err != nil {
		return nil, fmt.Errorf("making a key: %v", err)
	}
	block, err := ssh.MarshalPrivateKey(priv, comment)
	if err != nil {
		return nil, fmt.Errorf("writing a key: %v", err)
	}
	signer, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		return nil, fmt.Errorf("using a new key: %v", err)
	}
	sshPub, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("using a new key: %v", err)
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(sshPub)), "\n")
	return &Pair{Private: pem.EncodeToMemory(block), Public: line + " " + comment, Signer: signer}, nil
}
