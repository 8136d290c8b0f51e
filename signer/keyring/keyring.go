package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// maxKeyFile is the largest key file that OpenSSH reads (MAX_KEY_FILE_SIZE in authfile.c).
const maxKeyFile = 1 << 20

// Error is a key that cannot be used, with what to do about it.
type Error struct{ What, Next string }

func (e *Error) Error() string { return e.What }

// Hint is what to do next.
func (e *Error) Hint() string { return e.Next }

// Source says where keys and passphrases come from.
type Source struct {
	// Passphrase asks for the passphrase of a file.
	Passphrase func(path string) ([]byte, error)
	// AgentSocket is the value of SSH_AUTH_SOCK.
	AgentSocket string
}

// Load gives a signer for a private key file, or for a public key file whose key the agent holds. Close
// ends the connection to the agent.
func (s Source) Load(path string) (signer ssh.Signer, closer io.Closer, err error) {
	data, err := readKeyFile(path)
	if err != nil {
		return nil, nil, err
	}
	if pub, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
		return s.fromAgent(path, pub)
	}
	if err := checkMode(path); err != nil {
		return nil, nil, err
	}
	signer, err = s.parse(path, data)
	return signer, io.NopCloser(nil), err
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		next := ""
		if errors.Is(err, fs.ErrNotExist) {
			next = "hostwarrant init DIR makes keys to start with"
		}
		return nil, &Error{fmt.Sprintf("opening key: %v", err), next}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, &Error{fmt.Sprintf("reading key: %v", err), ""}
	}
	if len(data) > maxKeyFile {
		return nil, &Error{fmt.Sprintf("key file %q is larger than %d bytes", path, maxKeyFile), "give a key file to --key"}
	}
	return data, nil
}

// checkMode refuses a private key that others on this machine can read, as ssh-keygen does.
func checkMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &Error{fmt.Sprintf("reading key: %v", err), ""}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return &Error{
			fmt.Sprintf("private key %q can be read by others (mode %04o)", path, info.Mode().Perm()),
			"chmod 600 it, and replace it if others may have read it",
		}
	}
	return nil
}

func (s Source) parse(path string, data []byte) (ssh.Signer, error) {
	key, err := ssh.ParseRawPrivateKey(data)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		pass, err := s.Passphrase(path)
		if err != nil {
			return nil, &Error{
				fmt.Sprintf("key %q has a passphrase, and %v", path, err),
				"load it into ssh-agent with ssh-add, and give its .pub file to --key",
			}
		}
		key, err = ssh.ParseRawPrivateKeyWithPassphrase(data, pass)
		if err != nil {
			// The cause is not shown: it may hold bytes of the file.
			return nil, &Error{fmt.Sprintf("key %q cannot be opened with that passphrase", path), ""}
		}
		return newSigner(path, key)
	}
	if err != nil {
		return nil, &Error{
			fmt.Sprintf("%q is neither a private key nor a public key line", path),
			"give an OpenSSH private key, or the .pub file of a key that ssh-agent holds",
		}
	}
	return newSigner(path, key)
}

func newSigner(path string, key any) (ssh.Signer, error) {
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, &Error{fmt.Sprintf("key %q cannot sign: %v", path, err), "use an Ed25519 key"}
	}
	return signer, nil
}

func (s Source) fromAgent(path string, pub ssh.PublicKey) (ssh.Signer, io.Closer, error) {
	const next = "start ssh-agent, load the key with ssh-add, and see ssh-add -L"
	if s.AgentSocket == "" {
		return nil, nil, &Error{fmt.Sprintf("%q is a public key, and there is no ssh-agent (SSH_AUTH_SOCK is not set)", path), next}
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
		if bytes.Equal(signer.PublicKey().Marshal(), pub.Marshal()) {
			algorithmSigner, ok := signer.(ssh.AlgorithmSigner)
			if !ok {
				break
			}
			return agentSigner{algorithmSigner, pub}, conn, nil
		}
	}
	return nil, nil, errors.Join(&Error{fmt.Sprintf("ssh-agent does not hold the key %s of %q", ssh.FingerprintSHA256(pub), path), next}, conn.Close())
}

// agentSigner gives the key as it is read from a file: the agent's own type hides an RSA key's size.
type agentSigner struct {
	ssh.AlgorithmSigner
	pub ssh.PublicKey
}

func (s agentSigner) PublicKey() ssh.PublicKey { return s.pub }

// dial reaches an agent at a Unix socket, or at a named pipe, as Windows' own agent has it.
func dial(socket string) (io.ReadWriteCloser, error) {
	if strings.HasPrefix(socket, `\\.\pipe\`) {
		return os.OpenFile(socket, os.O_RDWR, 0)
	}
	return net.Dial("unix", socket)
}
