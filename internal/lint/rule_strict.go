package lint

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// missingStrictMode wants errexit, nounset and pipefail before the first command that does anything.
// karpenter-provider-ssh prepends them to unverified scripts only.
func missingStrictMode(s *source) []hit {
	missing := []string{"errexit", "nounset", "pipefail"}
	for _, stmt := range s.file.Stmts {
		c := commandOf(stmt)
		if c.name == "set" && !stmt.Background {
			for _, o := range setOptions(c.args) {
				if o.on {
					missing = slices.DeleteFunc(missing, func(m string) bool { return m == o.name })
				}
			}
			continue
		}
		if preamble(stmt, c) {
			continue
		}
		if len(missing) == 0 {
			return nil
		}
		return []hit{on(stmt, Warning, "the first command runs without "+strings.Join(missing, ", ")+": what fails is passed over",
			"write set -euo pipefail above it; nothing is prepended to scripts that are verified")}
	}
	return nil
}

// preamble tells the statements that cannot fail in a way that matters.
func preamble(stmt *syntax.Stmt, c command) bool {
	if len(stmt.Redirs) > 0 || stmt.Background || runs(stmt) {
		return false
	}
	switch n := stmt.Cmd.(type) {
	case *syntax.FuncDecl, *syntax.DeclClause:
		return true
	case *syntax.CallExpr:
		return len(n.Args) == 0 || slices.Contains([]string{"shopt", "umask", "trap", ":", "true", "unset"}, c.name)
	default:
		return false
	}
}

// runs tells whether the words of a statement run commands.
func runs(stmt *syntax.Stmt) bool {
	if _, ok := stmt.Cmd.(*syntax.FuncDecl); ok {
		return false
	}
	found := false
	syntax.Walk(stmt, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}
