package lint

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fixedTmpName finds names in directories where everybody may write: any user of the host can put a file
// or a link there first.
func fixedTmpName(s *source) []hit {
	var all []hit
	seen := map[string]bool{}
	check := func(w *syntax.Word) {
		name := tmpName(w)
		if name == "" || seen[name] {
			return
		}
		seen[name] = true
		all = append(all, on(w, Warning, name+" is a name that any user of the host can take first", `use a name nobody knows: f=$(mktemp) or d=$(mktemp -d)`))
	}
	for _, c := range s.facts.commands {
		if slices.Contains([]string{"mktemp", "echo", "printf", "rm", "mount", "umount"}, c.name) {
			continue
		}
		for _, w := range c.args {
			check(w)
		}
	}
	for _, a := range s.facts.assigns {
		if a.node.Value != nil && a.name != "TMPDIR" {
			check(a.node.Value)
		}
	}
	for _, stmt := range s.facts.stmts {
		for _, r := range stmt.Redirs {
			if r.Hdoc == nil && r.Op != syntax.WordHdoc {
				check(r.Word)
			}
		}
	}
	return all
}

// tmpName gives the guessable name that a word holds, or "".
func tmpName(w *syntax.Word) string {
	text, whole := prefix(w)
	if i := strings.Index(text, "=/"); i >= 0 {
		text = text[i+1:]
	}
	for _, dir := range []string{"/tmp/", "/var/tmp/", "/dev/shm/"} {
		rest, found := strings.CutPrefix(text, dir)
		if !found {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if (name != "" || !whole) && !strings.Contains(name, "*") && (whole || name != "" && deeper || guessable(w)) {
			return dir + name
		}
	}
	return ""
}

// guessable tells whether all that a word expands is known to others: the process id, the host, a parameter.
func guessable(w *syntax.Word) bool {
	known := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			known = known && n.Param != nil && (isParam(n.Param.Value) || slices.Contains([]string{"$", "PPID", "UID", "EUID", "USER", "HOSTNAME"}, n.Param.Value))
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			known = false
		}
		return known
	})
	return known
}
