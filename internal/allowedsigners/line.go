package allowedsigners

import (
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// blanks are what parts the fields of a line.
const blanks = " \t"

// parseLine reads "PRINCIPALS [OPTIONS] KEYTYPE BASE64 [COMMENT]", and gives nil
// for a line without a signer.
func parseLine(line string) (*entry, error) {
	// check: Malformed: a NUL ends a line for one reader and not for another, and crashes ssh-keygen before 9.2
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, malformed("line holds a control character")
	}
	rest := strings.TrimLeft(line, blanks)
	if rest == "" || rest[0] == '#' {
		return nil, nil
	}
	names, rest, err := cutPrincipals(rest)
	if err != nil {
		return nil, err
	}
	e := &entry{}
	if e.principals, err = parsePatterns(names); err != nil {
		return nil, err
	}
	if !startsWithKey(rest) {
		if e.options, rest, err = cutOptions(rest); err != nil {
			if startsWithKey(names) { // what ssh-keygen writes into a .pub file
				return nil, malformed("line begins with a key, and whose it is comes first").
					Try(`write a principal before it, as in: release namespaces="hostwarrant-release" ssh-ed25519 AAAA…`)
			}
			return nil, err
		}
	}
	if e.key, err = parseKey(rest); err != nil {
		return nil, err
	}
	return e, nil
}

// cutPrincipals takes the first field, which may stand in quotes to hold blanks.
func cutPrincipals(line string) (names, rest string, err error) {
	quoted, isQuoted := strings.CutPrefix(line, `"`)
	if !isQuoted {
		names, rest = cutField(line)
	} else {
		var closed bool
		names, rest, closed = strings.Cut(quoted, `"`)
		// check: Malformed: ssh-keygen refuses the line, and what it takes as the name is unclear
		if !closed || rest != "" && !strings.ContainsRune(blanks, rune(rest[0])) {
			return "", "", malformed("principals stand in quotes that do not close, or that something follows")
		}
		rest = strings.TrimLeft(rest, blanks)
	}
	// check: Malformed: a quote inside a field is read as its end in one place and dropped in another
	if strings.Contains(names, `"`) {
		return "", "", malformed("principals %.80q hold a quote", names)
	}
	return names, rest, nil
}

func cutField(line string) (field, rest string) {
	end := strings.IndexAny(line, blanks)
	if end < 0 {
		return line, ""
	}
	return line[:end], strings.TrimLeft(line[end:], blanks)
}

// startsWithKey tells a key from options, which come before it. No option is
// called like a key type.
func startsWithKey(rest string) bool {
	word, _ := cutField(rest)
	return strings.HasPrefix(word, "ssh-") || strings.HasPrefix(word, "ecdsa-") || strings.HasPrefix(word, "sk-")
}

// parseKey reads a key that may vouch for something, alone or as an authority.
// A certificate is none: ssh-keygen would take it whatever its dates.
func parseKey(rest string) (ssh.PublicKey, error) {
	keyType, rest := cutField(rest)
	encoded, _ := cutField(rest)
	// The reader of keys would refuse it as well; this says it in plainer words.
	if encoded == "" {
		return nil, malformed("line has no public key after its principals and options").
			Try(`write PRINCIPALS [OPTIONS] KEYTYPE BASE64, as in: join@tls-* namespaces="kpssh" ssh-ed25519 AAAA…`)
	}
	key, _, err := sshsig.ParsePublicKey(keyType + " " + encoded)
	if err == nil {
		return key, nil
	}
	e := decision.From(err)
	if e.Reason != decision.KeyTypeRefused {
		return nil, malformed("%s", e.What)
	}
	return nil, e
}
