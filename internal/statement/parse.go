package statement

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Is reports whether a text claims to be a statement.
func Is(text []byte) bool { return bytes.HasPrefix(text, []byte(header)) }

// Parse reads a statement. The error carries StatementRejected.
func Parse(text []byte) (*Statement, error) {
	r, err := newReader(text)
	if err != nil {
		return nil, err
	}
	s, err := r.head()
	if err != nil {
		return nil, err
	}
	if err := r.body(s); err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	// check: StatementRejected: a second spelling of the same facts could mean something else to another reader
	if !bytes.Equal(s.Text(), text) {
		return nil, rejected("is not in its one spelling")
	}
	return s, nil
}

func (r *reader) head() (*Statement, error) {
	kind, found := strings.CutPrefix(r.lines[0], header)
	// check: StatementRejected: a text for something else, or of a later version, means something else
	if !found {
		return nil, at(0, "does not start with %q", header+"KIND")
	}
	r.next++
	s := &Statement{Kind: Kind(kind)}
	var err error
	if s.Serial, err = r.number("serial"); err != nil {
		return nil, err
	}
	if s.Issued, err = r.number("issued"); err != nil {
		return nil, err
	}
	if r.is("cluster") {
		if s.Cluster, err = r.take("cluster"); err != nil {
			return nil, err
		}
	}
	return s, r.all("target", func(value string) error {
		s.Targets = append(s.Targets, value)
		return nil
	})
}

func (r *reader) body(s *Statement) error {
	switch s.Kind {
	case KindRoots:
		return r.roots(s)
	case KindSigners:
		return r.signers(s)
	case KindRevoke:
		return r.all("revoke", func(value string) error {
			s.Revoke = append(s.Revoke, value)
			return nil
		})
	case KindFloor:
		return r.floors(s)
	case KindReset:
		return r.reset(s)
	default:
		return at(0, "%.40q is not a kind of statement", s.Kind)
	}
}

func (r *reader) roots(s *Statement) error {
	threshold, err := r.number("threshold")
	if err != nil {
		return err
	}
	s.Roots = &Roots{Threshold: int(threshold)}
	return r.all("key", func(value string) error {
		key, comment, err := sshsig.ParsePublicKey(value)
		if err != nil {
			return r.fail("%v", err)
		}
		// check: StatementRejected: a comment is a second spelling of the same key
		if comment != "" {
			return r.fail("a key stands here without a comment")
		}
		s.Roots.Keys = append(s.Roots.Keys, key)
		return nil
	})
}

func (r *reader) signers(s *Statement) error {
	b := &Signers{}
	s.Signers = b
	var err error
	if b.Expires, err = r.number("expires"); err != nil {
		return err
	}
	days, err := r.take("max-validity")
	if err != nil {
		return err
	}
	n, err := r.parseNumber(strings.TrimSuffix(days, "d"))
	// check: StatementRejected: seconds or hours would be taken for days
	if err != nil || !strings.HasSuffix(days, "d") {
		return r.fail("max-validity is a number of days like %q", "90d")
	}
	b.MaxValidityDays = int(n)
	for i, phase := range script.Phases() {
		k, err := r.number("threshold " + string(phase))
		if err != nil {
			return err
		}
		b.Thresholds[i] = int(k)
	}
	return r.all("signer", func(value string) error {
		b.Lines = append(b.Lines, value)
		return nil
	})
}

func (r *reader) floors(s *Statement) error {
	return r.all("floor", func(value string) error {
		profile, serial, _ := strings.Cut(value, " ")
		n, err := r.parseNumber(serial)
		if err != nil {
			return err
		}
		s.Floors = append(s.Floors, Floor{profile, n})
		return nil
	})
}

func (r *reader) reset(s *Statement) error {
	b := &Reset{}
	s.Reset = b
	var err error
	if b.Profile, err = r.take("profile"); err != nil {
		return err
	}
	if b.Mark, err = r.number("mark"); err != nil {
		return err
	}
	for i, phase := range script.Phases() {
		if word := "sha256 " + string(phase); r.is(word) {
			if b.SHA256[i], err = r.take(word); err != nil {
				return err
			}
		}
	}
	return nil
}

// Text is the one spelling of a statement that Check accepts.
func (s *Statement) Text() []byte {
	b := []byte(header + string(s.Kind) + "\n")
	line := func(words ...string) { b = append(b, strings.Join(words, " ")+"\n"...) }
	line("serial", decimal(s.Serial))
	line("issued", decimal(s.Issued))
	if s.Cluster != "" {
		line("cluster", s.Cluster)
	}
	for _, target := range s.Targets {
		line("target", target)
	}
	s.writeBody(line)
	line("end")
	return b
}

func (s *Statement) writeBody(line func(words ...string)) {
	if s.Roots != nil {
		line("threshold", strconv.Itoa(s.Roots.Threshold))
		for _, key := range s.Roots.Keys {
			line("key", keyLine(key))
		}
	}
	if s.Signers != nil {
		line("expires", decimal(s.Signers.Expires))
		line("max-validity", strconv.Itoa(s.Signers.MaxValidityDays)+"d")
		for i, phase := range script.Phases() {
			line("threshold", string(phase), strconv.Itoa(s.Signers.Thresholds[i]))
		}
		for _, signer := range s.Signers.Lines {
			line("signer", signer)
		}
	}
	for _, fingerprint := range s.Revoke {
		line("revoke", fingerprint)
	}
	for _, f := range s.Floors {
		line("floor", f.Profile, decimal(f.Serial))
	}
	if s.Reset != nil {
		line("profile", s.Reset.Profile)
		line("mark", decimal(s.Reset.Mark))
		for i, phase := range script.Phases() {
			if s.Reset.SHA256[i] != "" {
				line("sha256", string(phase), s.Reset.SHA256[i])
			}
		}
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
