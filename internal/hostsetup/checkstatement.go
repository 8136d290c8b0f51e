package hostsetup

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// statementsDir holds what the host accepted, and renderedPath the digests by which it
// sees that neither those nor the files rendered from them were changed.
const (
	statementsDir = StateDir + "/statements"
	renderedPath  = statementsDir + "/rendered"
)

func statementPath(kind statement.Kind) string { return statementsDir + "/" + string(kind) }

// kept reads the statement of a kind that the host has accepted.
func (f *Facts) kept(kind statement.Kind) (s *statement.Statement, there bool, err error) {
	content, there := f.Contents[statementPath(kind)]
	if _, entry := f.Entries[statementPath(kind)]; !there && entry {
		return nil, true, fmt.Errorf("it is no plain file")
	}
	if !there {
		return nil, false, nil
	}
	text, _, _ := bytes.Cut(content, []byte("-----BEGIN SSH SIGNATURE-----"))
	s, err = statement.Parse(text)
	if err == nil && s.Kind != kind {
		err = fmt.Errorf("it is a statement of kind %s", s.Kind)
	}
	return s, true, err
}

// damaged tells a kept statement that the shim refuses to go by, with 22.
func (f *Facts) damaged(kind statement.Kind) bool {
	_, there, err := f.kept(kind)
	if !there || err != nil {
		return there
	}
	rendered := "\n" + string(f.Contents[renderedPath])
	path := statementPath(kind)
	listed := strings.Contains(rendered, fmt.Sprintf("\n%x  %s\n", sha256.Sum256(f.Contents[path]), path)) ||
		strings.Contains(rendered, "\n"+strings.Repeat("0", 2*sha256.Size)+"  "+path+"\n") // taken, and not yet rendered
	return rendered != "\n" && !listed
}

// statements wants each kept statement to be whole.
func (c *checker) statements() {
	for _, kind := range statement.Kinds() {
		if c.facts.damaged(kind) {
			c.find(statementPath(kind), "is not the statement that was accepted: every run is refused with 22", "hostwarrant host repair --statement "+string(kind))
		}
	}
}

// stated holds a file that an accepted statement replaced to what that says.
func (c *checker) stated(want File) bool {
	if want.Statement == "" {
		return false
	}
	s, there, err := c.facts.kept(want.Statement)
	if !there {
		return false
	}
	if err != nil {
		return true // statements tells of it
	}
	c.notes = append(c.notes, note("%s is as the accepted %s statement of serial %d says, not as the policy does", want.Path, s.Kind, s.Serial))
	if difference := differs(s, c.facts.Contents[want.Path]); difference != "" {
		c.find(want.Path, "is not what the accepted "+string(s.Kind)+" statement says: "+difference, "send the host any phase or statement: the shim then renders it again")
	}
	return true
}

// differs compares a trust file with what a statement makes of it.
func differs(s *statement.Statement, got []byte) string {
	var lines []string
	switch s.Kind {
	case statement.KindRoots:
		lines = rootSigners(&trustpolicy.Roots{Keys: s.Roots.Keys})
	case statement.KindSigners:
		lines = s.Signers.Lines
	case statement.KindFloor:
		for _, f := range s.Floors {
			lines = append(lines, fmt.Sprintf("%s %d", f.Profile, f.Serial))
		}
	case statement.KindRevoke:
		return revokes(s.Revoke, got)
	default:
		return ""
	}
	return strings.ReplaceAll(compare(Lines(lines), got), "the policy", "it")
}

// revokes compares a list of revoked keys with what ssh-keygen makes of a statement: the same bytes but
// for the date.
func revokes(want []string, got []byte) string {
	list, err := krl.Parse(got)
	if err != nil {
		return "" // readable tells of it
	}
	said := list.Summary()
	made, err := krl.Render(want, said.Serial, time.Unix(int64(said.Date), 0))
	if err != nil || !bytes.Equal(made, got) {
		return fmt.Sprintf("it does not revoke exactly those %d keys", len(want))
	}
	return ""
}
