package lint

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// traceSecrets finds set -x while secrets are on command lines: xtrace prints words after expansion, to
// stderr, which ends up in logs and events. Here-documents are not printed.
func traceSecrets(s *source) []hit {
	var tracers []*syntax.Stmt
	for _, stmt := range s.facts.stmts {
		if s.flow.tracer[stmt] {
			tracers = append(tracers, stmt)
		}
	}
	leaks := map[*syntax.Stmt][]use{}
	for _, u := range s.facts.uses {
		if len(tracers) > 0 && s.isTraced(u) {
			t := lastBefore(tracers, u)
			leaks[t] = append(leaks[t], u)
		}
	}
	var all []hit
	for _, t := range tracers {
		switch {
		case len(leaks[t]) > 0:
			all = append(all, on(t, Error, "tracing is on where secrets are expanded, and prints them into logs: "+s.list(leaks[t]), "leave x out, or write set +x above the first of them"))
		case s.secretInScope():
			all = append(all, on(t, Note, "tracing is on in a script that is given secrets; none is expanded under it", "keep secrets off the command lines below, or leave x out"))
		}
	}
	return all
}

// isTraced tells whether xtrace prints the value of a secret.
func (s *source) isTraced(u use) bool {
	return s.facts.secrets[u.name] && u.shows() && !u.untraced && s.flow.before[u.stmt].traced
}

func lastBefore(tracers []*syntax.Stmt, u use) *syntax.Stmt {
	last := tracers[0]
	for _, t := range tracers {
		if u.exp.Pos().After(t.Pos()) {
			last = t
		}
	}
	return last
}

// list names parameters with their lines, the first three of them.
func (s *source) list(uses []use) string {
	var all []string
	for _, u := range uses {
		text := fmt.Sprintf("%s in line %d", u.name, s.lineOf(u.exp))
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) > 3 {
		all = append(all[:3], fmt.Sprintf("and %d more", len(all)-3))
	}
	return strings.Join(all, ", ")
}

// secretArgument finds secrets on the command line of programs: every user of the host can read it in /proc.
func secretArgument(s *source) []hit {
	var all []hit
	seen := map[*syntax.Stmt]bool{}
	for _, u := range s.facts.uses {
		if u.place != argument || !s.facts.secrets[u.name] || !u.shows() || seen[u.stmt] {
			continue
		}
		c := commandOf(u.stmt)
		if c.name == "" || len(c.wrappers) == 0 && (isBuiltinCommand(c.name) || s.flow.funcs[c.name] != nil) {
			continue
		}
		seen[u.stmt] = true
		all = append(all, on(u.exp, Warning, u.name+" is an argument of "+c.name+", and every user of the host can read arguments while it runs",
			"hand it over on stdin, or in a file that umask 077 hides"))
	}
	return all
}

// isBuiltinCommand tells the commands that bash runs itself, without a process of their own.
func isBuiltinCommand(name string) bool {
	return slices.Contains([]string{":", ".", "[", "alias", "cd", "echo", "eval", "exit", "export", "false", "hash", "let", "local", "mapfile", "printf",
		"read", "readonly", "return", "set", "shift", "source", "test", "trap", "true", "type", "unset", "wait"}, name)
}
