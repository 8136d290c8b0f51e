package main

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// policyWithRootLink gives a policy that is in force, and the roots statement that made its roots what they are,
// as a host keeps it: the text with the signatures behind it. nil is for the first generation, and for roots whose
// statement nobody gave.
func (c *cli) policyWithRootLink(path string, t trust) (verify.Snapshot, []byte, error) {
	p, err := c.readPolicy(path)
	if err != nil {
		return verify.Snapshot{}, nil, err
	}
	s, err := c.inForce(path, p, t)
	if err != nil {
		return verify.Snapshot{}, nil, err
	}
	anchor, err := readPublic("--root", t.roots)
	if err != nil {
		return verify.Snapshot{}, nil, err
	}
	for _, link := range append(p.Signed().Chain, statement.Signed{Text: anchor}) {
		read, err := statement.Parse(link.Text)
		if err == nil && read.Kind == statement.KindRoots && int(read.Serial) == s.Policy.RootVersion {
			kept := string(link.Text)
			for _, block := range link.Signatures {
				kept += strings.TrimRight(block, "\n") + "\n" // YAML may have dropped the last one
			}
			return s, []byte(kept), nil
		}
	}
	return s, nil, nil
}
