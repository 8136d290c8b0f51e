package keyring

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// maxKeyFile is the largest key file that OpenSSH reads (MAX_KEY_FILE_SIZE in authfile.c).
const maxKeyFile = 1 << 20

// keyFile is a file as it was when it was read.
type keyFile struct {
	path string
	data []byte
	mode fs.FileMode
}

func readKeyFile(path string) (*keyFile, error) {
	f, err := os.Open(path)
	if err != nil {
		next := ""
		if errors.Is(err, fs.ErrNotExist) {
			next = "hostwarrant init DIR makes keys to start with"
		}
		return nil, &Error{fmt.Sprintf("opening key: %v", err), next}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &Error{fmt.Sprintf("reading key: %v", err), ""}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, &Error{fmt.Sprintf("reading key: %v", err), "give a key file to --key"}
	}
	if len(data) > maxKeyFile {
		return nil, &Error{fmt.Sprintf("key file %q is larger than %d bytes", path, maxKeyFile), "give a key file to --key"}
	}
	return &keyFile{path, data, info.Mode()}, nil
}

// checkMode refuses a private key that others on this machine can read, as ssh-keygen does.
func (f *keyFile) checkMode() error {
	if runtime.GOOS != "windows" && f.mode.Perm()&0o077 != 0 {
		return &Error{
			fmt.Sprintf("private key %q can be read by others (mode %04o)", f.path, f.mode.Perm()),
			"chmod 600 it, and replace it if others may have read it",
		}
	}
	return nil
}

// elsewhere gives the key of a file that does not hold the private half: a public key, or the private
// key file of a security key, which only points at the token. It is nil for a file that may hold one.
func (f *keyFile) elsewhere() (ssh.PublicKey, error) {
	if block := f.pem(); block != nil {
		return f.blockElsewhere(block)
	}
	if bytes.Contains(f.data, []byte("-----BEGIN ")) {
		return nil, f.damaged()
	}
	line, one := onlyLine(f.data)
	if !one {
		return nil, f.noKey()
	}
	key, _, err := sshsig.ParsePublicKey(line)
	if isRefused(err) {
		return nil, refused(f.path, err)
	}
	if err != nil {
		return nil, f.noKey()
	}
	return key, nil
}

func (f *keyFile) blockElsewhere(block *pem.Block) (ssh.PublicKey, error) {
	switch block.Type {
	case "PUBLIC KEY":
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, f.damaged()
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			return nil, &Error{fmt.Sprintf("key %q: %s: %v", f.path, decision.KeyTypeRefused, err), usable}
		}
		// check: KeyTypeRefused: an agent must not be asked to sign with a key that can be factored
		if err := sshsig.CheckKey(key); err != nil {
			return nil, refused(f.path, err)
		}
		return key, nil
	case "OPENSSH PRIVATE KEY":
		return f.openSSH(block)
	case "DSA PRIVATE KEY":
		return nil, refused(f.path, refusedType("ssh-dss"))
	}
	return nil, nil
}

// openSSH looks at the public half, which an openssh-key-v1 file holds in clear (PROTOCOL.key).
func (f *keyFile) openSSH(block *pem.Block) (ssh.PublicKey, error) {
	const magic = "openssh-key-v1\x00"
	var outer struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
		Rest                 []byte `ssh:"rest"`
	}
	data, ok := strings.CutPrefix(string(block.Bytes), magic)
	if !ok || ssh.Unmarshal([]byte(data), &outer) != nil || outer.Keys != 1 {
		return nil, f.damaged()
	}
	key, err := parseBlob(outer.Public)
	switch {
	case isRefused(err):
		return nil, refused(f.path, err)
	case err != nil:
		return nil, f.damaged()
	case sshsig.IsSecurityKey(key):
		return key, nil
	}
	return nil, nil
}

// parseBlob reads a public key in its wire form by the rules for a public key line.
func parseBlob(blob []byte) (ssh.PublicKey, error) {
	var named struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(blob, &named); err != nil {
		return nil, err
	}
	key, _, err := sshsig.ParsePublicKey(named.Type + " " + base64.StdEncoding.EncodeToString(blob))
	return key, err
}

// refusedType is what the trust core says about a type of key.
func refusedType(name string) error {
	_, err := parseBlob(ssh.Marshal(struct{ Type string }{name}))
	return err
}

// pem is the block that holds the key. OpenSSL writes the curve of an EC key in front of it.
func (f *keyFile) pem() *pem.Block {
	block, rest := pem.Decode(f.data)
	if block != nil && block.Type == "EC PARAMETERS" {
		block, _ = pem.Decode(rest)
	}
	return block
}

// onlyLine gives the one line of a file that is neither empty nor a comment.
func onlyLine(data []byte) (line string, one bool) {
	for l := range strings.Lines(string(data)) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		if one {
			return "", false
		}
		line, one = l, true
	}
	return line, one
}

// These two never show the cause: it may hold bytes of the file.

const anyKey = "give a private key of OpenSSH or cosign, or the .pub file of a key that ssh-agent holds"

func (f *keyFile) noKey() error {
	return &Error{fmt.Sprintf("%q is neither a private key nor a public key line", f.path), anyKey}
}

func (f *keyFile) damaged() error {
	return &Error{fmt.Sprintf("%q looks like a key file, but is damaged or of a kind that is not read", f.path), anyKey}
}
