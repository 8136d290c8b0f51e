package lint

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// worldReadableSecret follows secrets that a script prints into files. Scripts run with umask 022.
func worldReadableSecret(s *source) []hit {
	var all []hit
	seen := map[*syntax.Word]bool{}
	shields := s.shields()
	for _, u := range s.facts.uses {
		if !s.facts.secrets[u.name] || !u.shows() || !carries(u) {
			continue
		}
		for _, out := range s.outputs(u.stmt) {
			if seen[out.file] || s.flow.before[out.stmt].private {
				continue
			}
			seen[out.file] = true
			if before, after := s.shielded(out, shields); !before {
				all = append(all, s.exposed(u, out, after))
			}
		}
	}
	return all
}

func (s *source) exposed(u use, out output, later bool) hit {
	file := s.of(out.file)
	if later {
		return on(out.file, Warning, u.name+" is in "+file+" for everybody to read until chmod is reached",
			"make the file first: install -m 600 /dev/null "+file+", or write umask 077 above")
	}
	return on(out.file, Error, u.name+" is written to "+file+", which everybody may read (umask 022)",
		"make the file first: install -m 600 /dev/null "+file+", or write umask 077 above")
}

// carries tells whether the command prints what the expansion gives.
func carries(u use) bool {
	if u.place == hereDoc || u.hereString {
		return passesOn(u.stmt)
	}
	name := commandOf(u.stmt).name
	return u.place == argument && (name == "echo" || name == "printf")
}

// passesOn tells the commands whose output holds what they read.
func passesOn(stmt *syntax.Stmt) bool {
	if _, ok := stmt.Cmd.(*syntax.CallExpr); !ok {
		return true // a block, a loop
	}
	return slices.Contains([]string{"cat", "tee", "base64", "sed", "awk", "tr", "envsubst", "dd", "jq", "openssl", "sort", "grep"}, commandOf(stmt).name)
}

// output is a file that a statement writes.
type output struct {
	stmt *syntax.Stmt
	file *syntax.Word
}

// outputs follows what a statement prints to files: its own redirections, the next commands of its
// pipeline, blocks around it, words that it is substituted into.
func (s *source) outputs(stmt *syntax.Stmt) []output {
	var all []output
	for stmt != nil {
		found := written(stmt)
		all = append(all, found...)
		up := s.facts.above[stmt]
		switch {
		case toFile(stmt):
			return all
		case up.piped != nil && passesOn(up.piped):
			stmt = up.piped
		case up.piped != nil:
			return all
		case up.substituted && !printsWords(up.parent):
			return all
		default:
			stmt = up.parent
		}
	}
	return all
}

// printsWords tells the commands that put substituted text into their output.
func printsWords(stmt *syntax.Stmt) bool {
	name := commandOf(stmt).name
	return name == "echo" || name == "printf" || name == "cat" || name == "tee"
}

// toFile tells whether the output of a statement ends in a file or nowhere.
func toFile(stmt *syntax.Stmt) bool {
	return slices.ContainsFunc(stmt.Redirs, func(r *syntax.Redirect) bool { return isOutput(r) && (r.N == nil || r.N.Value == "1") })
}

// written gives the files that a statement itself writes its output to.
func written(stmt *syntax.Stmt) []output {
	var all []output
	for _, r := range stmt.Redirs {
		if isOutput(r) && (r.N == nil || r.N.Value == "1") && !isDevice(r.Word) {
			all = append(all, output{stmt, r.Word})
		}
	}
	if c := commandOf(stmt); c.name == "tee" {
		for _, w := range c.operands() {
			if !isDevice(w) {
				all = append(all, output{stmt, w})
			}
		}
	}
	return all
}

func isDevice(w *syntax.Word) bool {
	text, _ := prefix(w)
	return strings.HasPrefix(text, "/dev/") && !strings.HasPrefix(text, "/dev/shm/") || strings.HasPrefix(text, "/proc/") || strings.HasPrefix(text, "/sys/")
}

// shield is what keeps others from a file, or from all below a directory.
type shield struct {
	first uint // where it is put up
	chmod uint // the last chmod of what is there already, or 0
}

// shields finds mktemp, chmod, install and mkdir, by the word that names the file.
func (s *source) shields() map[string]shield {
	all := map[string]shield{}
	add := func(target string, offset uint, chmod bool) {
		h, found := all[target]
		if !found || offset < h.first {
			h.first = offset
		}
		if chmod {
			h.chmod = max(h.chmod, offset)
		}
		all[target] = h
	}
	for _, a := range s.facts.assigns {
		if a.node.Value != nil && strings.HasPrefix(plain(s.of(a.node.Value)), "$(mktemp") {
			add("$"+a.name, a.node.Pos().Offset(), false)
		}
	}
	for _, c := range s.facts.commands {
		mode, targets := "", c.operands()
		switch c.name {
		case "chmod":
			if len(targets) > 0 {
				mode, _ = literal(targets[0])
			}
		case "install", "mkdir":
			mode = modeFlag(c)
		}
		if !hidesMode(mode) {
			continue
		}
		for _, w := range targets {
			add(plain(s.of(w)), c.call.Pos().Offset(), c.name == "chmod")
		}
	}
	return all
}

// shielded tells whether a file is kept from others: before it is written, or by a chmod afterwards.
func (s *source) shielded(out output, shields map[string]shield) (before, after bool) {
	at := out.file.Pos().Offset()
	name := plain(s.of(out.file))
	for range maxParents {
		if h, found := shields[name]; found {
			before = before || h.first < at
			after = after || h.chmod > at
		}
		i := strings.LastIndexByte(name, '/')
		if i <= 0 {
			break
		}
		name = name[:i]
	}
	return before, after
}

// maxParents bounds how many directories above a file are looked at.
const maxParents = 64

// modeFlag gives the value of -m or --mode.
func modeFlag(c command) string {
	for i, w := range c.args {
		text, _ := literal(w)
		if value, found := strings.CutPrefix(text, "--mode="); found {
			return value
		}
		if !strings.HasPrefix(text, "-") || strings.HasPrefix(text, "--") || !strings.Contains(text, "m") {
			continue
		}
		if _, value, _ := strings.Cut(text, "m"); value != "" {
			return value
		}
		if i+1 < len(c.args) {
			value, _ := literal(c.args[i+1])
			return value
		}
	}
	return ""
}

// plain makes two spellings of a word alike: quotes and braces are taken off, and a / at the end.
func plain(word string) string {
	return strings.TrimSuffix(strings.NewReplacer(`"`, "", `'`, "", "{", "", "}", "").Replace(word), "/")
}
