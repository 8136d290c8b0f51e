package keyring

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// fromAgent gives a key that the agent holds, or of which it holds one of the certificates alone.
func (s Source) fromAgent(path string, pub ssh.PublicKey, certificates ...ssh.PublicKey) (ssh.Signer, io.Closer, error) {
	const next = "start ssh-agent, load the key with ssh-add, and see ssh-add -L"
	if s.AgentSocket == "" {
		return nil, nil, &Error{fmt.Sprintf("%q does not hold the private half of its key, and there is no ssh-agent (SSH_AUTH_SOCK is not set)", path), next + orBeside(path)}
	}
	conn, err := dial(s.AgentSocket)
	if err != nil {
		return nil, nil, &Error{fmt.Sprintf("reaching ssh-agent: %v", err), next}
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return nil, nil, errors.Join(&Error{fmt.Sprintf("asking ssh-agent for its keys: %v", err), next}, conn.Close())
	}
	for _, signer := range signers {
		if quorum.Same(signer.PublicKey(), pub) || quorum.Holds(certificates, signer.PublicKey()) {
			algorithmSigner, ok := signer.(ssh.AlgorithmSigner)
			if !ok {
				break
			}
			return &agentSigner{algorithmSigner, pub, s.Notify}, conn, nil
		}
	}
	return nil, nil, errors.Join(notHeld(path, pub, len(signers)), conn.Close())
}

// orBeside names the private key file that lies beside a public one, as ssh-keygen and cosign put it there.
func orBeside(path string) string {
	name, public := strings.CutSuffix(path, ".pub")
	for _, private := range []string{name, name + ".key"} {
		if public && exists(private) {
			return "; or give the private key " + strconv.Quote(private)
		}
	}
	return ""
}

// notHeld says that the agent lacks a key. A locked agent lists none (PROTOCOL.agent, ssh-add -x).
func notHeld(path string, pub ssh.PublicKey, others int) error {
	what := fmt.Sprintf("ssh-agent does not hold the key %s of %q", ssh.FingerprintSHA256(pub), path)
	if others == 0 {
		return &Error{what + ": it lists no key at all, as one that is locked does", "ssh-add -X unlocks it; ssh-add KEY loads a key; ssh-add -L lists what it holds"}
	}
	next := "load it with ssh-add, and see ssh-add -L" + orBeside(path)
	if sshsig.IsSecurityKey(pub) {
		next = "load it with ssh-add from the file that ssh-keygen made, or from the token with ssh-add -K"
	}
	return &Error{what, next}
}

// agentSigner gives the key as it is read from a file: the agent's own type hides an RSA key's size.
type agentSigner struct {
	ssh.AlgorithmSigner
	pub    ssh.PublicKey
	notify func(text string)
}

func (s *agentSigner) PublicKey() ssh.PublicKey { return s.pub }

func (s *agentSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	if s.notify != nil && sshsig.IsSecurityKey(s.pub) {
		s.notify("touch the security key " + sshsig.Fingerprint(s.pub))
	}
	return s.said(s.AlgorithmSigner.Sign(rand, data))
}

func (s *agentSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	return s.said(s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm))
}

// said tells what an agent's refusal may mean: the protocol has one answer for all of it.
func (s *agentSigner) said(signature *ssh.Signature, err error) (*ssh.Signature, error) {
	if err == nil {
		return signature, nil
	}
	var causes string
	if sshsig.IsSecurityKey(s.pub) {
		causes = "the token was not touched in time or is not plugged in, or wants a PIN"
	} else {
		causes = "its use was not confirmed (ssh-add -c), its time is over (ssh-add -t), its token is gone, or the agent was locked"
	}
	return nil, fmt.Errorf("ssh-agent holds the key and refused to sign (%v): %s", err, causes)
}

// dial reaches an agent at a Unix socket, or at a named pipe, as Windows' own agent has it.
func dial(socket string) (io.ReadWriteCloser, error) {
	if strings.HasPrefix(socket, `\\.\pipe\`) {
		return os.OpenFile(socket, os.O_RDWR, 0)
	}
	return net.Dial("unix", socket)
}
