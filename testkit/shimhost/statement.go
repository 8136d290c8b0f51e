package shimhost

import (
	"crypto/rand"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// Statement is what a relay sends to bring a statement for this host's cluster, signed by
// roots, or by the host's one root where none is given.
func (h *Host) Statement(s statement.Statement, roots ...ssh.Signer) ([]byte, error) {
	s.Cluster = Cluster
	if s.Issued == 0 {
		s.Issued = h.Made.Unix()
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		roots = []ssh.Signer{h.Root}
	}
	var blocks strings.Builder
	for _, root := range roots {
		block, err := sshsig.Sign(rand.Reader, root, statement.Namespace, s.Text())
		if err != nil {
			return nil, err
		}
		blocks.Write(block)
	}
	return envelope.Envelope{Phase: envelope.PhaseStatement, Statement: s.Text(), StatementSig: []byte(blocks.String())}.Encode()
}

// SignerLine is the line of allowed_signers by which the host trusts its signer.
func (h *Host) SignerLine() string {
	return `install@*,join@*,leave@*,uninstall@*,kpssh namespaces="kpssh" ` + PublicLine(h.Signer)
}
