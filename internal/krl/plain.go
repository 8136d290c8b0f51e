package krl

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// plain reads public keys, one a line, with comments and blank lines between.
func (l *List) plain(data []byte) error {
	n := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		n++
		if err := l.line(line); err != nil {
			return decision.From(err).At(fmt.Sprintf("line %d", n))
		}
	}
	return nil
}

func (l *List) line(line string) error {
	// check: Malformed: a NUL or CR ends a line for one reader and not for another
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return malformed("line holds a control character").Try("lines end with LF alone")
	}
	// A space, as ssh-keygen sees it, is one of these two.
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	// check: Malformed: a line that is skipped is a key that is not revoked
	if len(fields) < 2 {
		return malformed("not a public key line %q", "TYPE BASE64 [COMMENT]").Try("a fingerprint goes into a KRL: ssh-keygen -k")
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	if err != nil {
		return malformed("not a public key line %q", "TYPE BASE64 [COMMENT]").Try("a fingerprint goes into a KRL: ssh-keygen -k")
	}
	key, err := readable(blob)
	if err != nil {
		return err
	}
	// check: Malformed: readers differ in whether they believe the line's type or the blob's
	if key.Type() != fields[0] {
		return malformed("line says %.40q but its key is a %.40q", fields[0], key.Type())
	}
	l.keys[string(key.Marshal())] = true
	return nil
}
