package allowedsigners

import (
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Bounds on a file (docs/spec/allowed-signers.md): work before a signature is
// judged must be bounded, and so must a match.
const (
	MaxSize  = 1 << 20
	MaxLines = 10000
)

// List is who may sign. The zero List allows nobody.
type List struct {
	entries []entry
}

// entry is one line.
type entry struct {
	line       int
	principals patterns
	key        ssh.PublicKey
	options    options
}

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...)
}

// Parse reads a file. Comments, blank lines and CRLF line ends are fine; any
// line that cannot be read is an error that names it. The error carries
// Malformed, KeyTypeRefused or TooLarge.
func Parse(text []byte) (*List, error) {
	// check: TooLarge: work before anything is decided must be bounded
	if len(text) > MaxSize {
		return nil, decision.Errorf(decision.TooLarge, "allowed_signers is %d bytes long, more than %d", len(text), MaxSize)
	}
	l, n := &List{}, 0
	for line := range strings.SplitSeq(string(text), "\n") {
		n++
		// check: TooLarge: each line costs a comparison with each signature
		if n > MaxLines {
			return nil, decision.Errorf(decision.TooLarge, "allowed_signers has more than %d lines", MaxLines)
		}
		e, err := parseLine(strings.TrimSuffix(line, "\r"))
		if err != nil {
			return nil, decision.From(err).At(fmt.Sprintf("line %d", n))
		}
		if e != nil {
			e.line = n
			l.entries = append(l.entries, *e)
		}
	}
	return l, nil
}
