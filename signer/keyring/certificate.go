package keyring

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// certSuffix is what ssh-keygen -s puts behind a key's name for its certificate.
const certSuffix = "-cert.pub"

// certificate gives the certificate that a file holds, nil where it holds something else.
func (f *keyFile) certificate() (*ssh.Certificate, error) {
	line, one := onlyLine(f.data)
	if !one {
		return nil, nil
	}
	c, err := sshsig.ParseCertificate(line)
	if isRefused(err) {
		return nil, refused(f.path, err)
	}
	if err != nil {
		return nil, &Error{fmt.Sprintf("certificate %q: %v", f.path, decision.From(err)), "give the file that ssh-keygen -s wrote"}
	}
	return c, nil
}

// certified gives the signer of a certificate: its key in the agent, or the private key file beside it.
func (s Source) certified(path string, c *ssh.Certificate) (ssh.Signer, io.Closer, error) {
	key, closer, err := s.fromAgent(path, c.Key, c)
	private, named := strings.CutSuffix(path, certSuffix)
	if err != nil && named && exists(private) {
		key, closer, err = s.Load(private)
	}
	if err != nil {
		return nil, nil, err
	}
	if !quorum.Same(key.PublicKey(), c.Key) {
		return nil, nil, errors.Join(notCertified(path, private), closer.Close())
	}
	signer, err := ssh.NewCertSigner(c, key)
	if err != nil {
		return nil, nil, errors.Join(notCertified(path, private), closer.Close())
	}
	return signer, closer, nil
}

func notCertified(path, private string) error {
	return &Error{fmt.Sprintf("the certificate %q is not of the key %q", path, private), "give the certificate of that key"}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
