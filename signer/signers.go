package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// signerEntry is a line of an allowed_signers file. Only the plain form is read; what else OpenSSH
// knows (certificates, validity, negation, quoted principals) is refused rather than read differently.
type signerEntry struct {
	principals, namespaces []string
	key                    ssh.PublicKey
}

func parseSigners(text string) ([]signerEntry, error) {
	var all []signerEntry
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %v", i+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func parseSigner(line string) (signerEntry, error) {
	principals, rest, _ := strings.Cut(line, " ")
	if principals == "" || strings.ContainsAny(principals, "!\"\t") {
		return signerEntry{}, fmt.Errorf("principals %.80q are not plain names or patterns with commas between them", principals)
	}
	e := signerEntry{principals: strings.Split(principals, ",")}
	if list, found := strings.CutPrefix(rest, `namespaces="`); found {
		names, after, closed := strings.Cut(list, `" `)
		if !closed || names == "" || strings.ContainsAny(names, `*?!"`+" \t") {
			return signerEntry{}, fmt.Errorf("namespaces %.80q are not plain names with commas between them", names)
		}
		e.namespaces, rest = strings.Split(names, ","), after
	}
	key, _, err := sshsig.ParsePublicKey(rest)
	if err != nil {
		return signerEntry{}, fmt.Errorf("%v after PRINCIPALS and namespaces, the only option that is read here", err)
	}
	e.key = key
	return e, nil
}

func (e signerEntry) allows(identity, namespace string) bool {
	if e.namespaces != nil && !slices.Contains(e.namespaces, namespace) {
		return false
	}
	for _, p := range e.principals {
		if wildcard(p, identity) {
			return true
		}
	}
	return false
}

// wildcard matches * and ? as OpenSSH's match_pattern does.
func wildcard(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
