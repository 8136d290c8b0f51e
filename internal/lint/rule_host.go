package lint

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// heldStdout finds background children that keep stdout or stderr: sshd, and the shim, wait for the end of both.
func heldStdout(s *source) []hit {
	silent, lastWait := s.silence()
	var all []hit
	for _, stmt := range s.facts.stmts {
		here := stmt.Pos().Offset()
		if !stmt.Background || here < lastWait || here > silent || s.facts.above[stmt].substituted || s.quietAround(stmt) {
			continue
		}
		all = append(all, on(stmt, Warning, "a background child holds stdout or stderr, and the run does not end before it does",
			"send both away: cmd >/dev/null 2>&1 &, or start it with systemd-run"))
	}
	return all
}

// silence finds where the script sends its own streams away for good (exec >FILE 2>&1), and where it last waits.
func (s *source) silence() (silent, lastWait uint) {
	silent = uint(len(s.text))
	for _, c := range s.facts.commands {
		at := c.call.Pos().Offset()
		if c.name == "exec" && len(c.args) == 0 && streams(c.stmt) == both() {
			silent = min(silent, at)
		}
		if c.name == "wait" {
			lastWait = max(lastWait, at)
		}
	}
	return silent, lastWait
}

// quietAround tells whether a statement, all that it runs, or a block around it has its streams sent away.
func (s *source) quietAround(stmt *syntax.Stmt) bool {
	for at := stmt; at != nil; at = s.facts.above[at].parent {
		if streams(at) == both() || commandOf(at).name == "systemd-run" {
			return true
		}
	}
	return inside(stmt) == both()
}

// away says which of stdout and stderr go elsewhere.
type away struct{ out, err bool }

func both() away { return away{true, true} }

// inside tells what all commands of a list, pipeline or block send away.
func inside(stmt *syntax.Stmt) away {
	own := streams(stmt)
	var inner []*syntax.Stmt
	switch c := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		inner = []*syntax.Stmt{c.X, c.Y}
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll { // the first one's stdout is the pipe
			x, y := inside(c.X), inside(c.Y)
			return away{own.out || y.out, own.err || y.err && (x.err || c.Op == syntax.PipeAll)}
		}
	case *syntax.Block:
		inner = c.Stmts
	case *syntax.Subshell:
		inner = c.Stmts
	}
	if len(inner) == 0 {
		return own
	}
	all := both()
	for _, i := range inner {
		w := inside(i)
		all = away{all.out && w.out, all.err && w.err}
	}
	return away{own.out || all.out, own.err || all.err}
}

// streams tells what a statement's own redirections send away.
func streams(stmt *syntax.Stmt) away {
	var a away
	for _, r := range stmt.Redirs {
		fd := "1"
		if r.N != nil {
			fd = r.N.Value
		}
		to, _ := literal(r.Word)
		switch {
		case r.Op == syntax.RdrAll || r.Op == syntax.AppAll:
			a = both()
		case r.Op == syntax.DplOut && r.N == nil && to != "" && strings.Trim(to, "0123456789-") != "":
			a = both() // >&file
		case r.Op == syntax.DplOut && to == "-", isOutput(r):
			a = away{a.out || fd == "1", a.err || fd == "2"}
		case r.Op == syntax.DplOut && fd == "2" && to == "1":
			a.err = a.out
		case r.Op == syntax.DplOut && fd == "1" && to == "2":
			a.out = a.err
		}
	}
	return a
}

// guards are the directories and files that hold hostwarrant on a host (docs/spec/shim.md).
func guards() []string {
	return []string{
		"/etc/kpssh", "/opt/kpssh", "/var/lib/hostwarrant", "/run/kpssh",
		"/etc/sudoers.d/kpssh", "/etc/ssh/sshd_config.d/kpssh.conf",
	}
}

// ownDirectory finds writes to what guards the host: a phase script has no business there, and a stolen
// key would start there.
func ownDirectory(s *source) []hit {
	var all []hit
	add := func(w *syntax.Word, removes bool) {
		if guard := guardOf(w, removes); guard != "" {
			all = append(all, on(w, Error, "the script changes "+guard+", which guards this host", "leave it alone: hosts are provisioned by other means"))
		}
	}
	for _, c := range s.facts.commands {
		for _, w := range changed(c) {
			add(w, c.name == "rm" && (c.has('r', "recursive") || c.has('R', "")) || c.name == "mv")
		}
	}
	for _, stmt := range s.facts.stmts {
		for _, r := range stmt.Redirs {
			if isOutput(r) {
				add(r.Word, false)
			}
		}
	}
	return all
}

// changed gives the arguments that a command writes to, moves or removes.
func changed(c command) []*syntax.Word {
	words := c.operands()
	switch c.name {
	case "rm", "rmdir", "unlink", "shred", "mv", "mkdir", "touch", "truncate", "tee", "chmod", "chown", "chgrp", "chattr", "setfacl", "umount":
		return words
	case "cp", "ln", "install", "rsync", "mount":
		for i, w := range c.args { // -t DIR
			if text, _ := literal(w); text == "-t" && i+1 < len(c.args) {
				return []*syntax.Word{c.args[i+1]}
			}
		}
		return words[max(0, len(words)-1):]
	case "sed", "perl":
		if c.has('i', "in-place") {
			return words
		}
	case "find":
		for _, w := range words {
			if text, _ := literal(w); text == "rm" {
				return words
			}
		}
		if slices.Contains(c.flags(), "-delete") {
			return words
		}
	case "dd":
		for _, w := range words {
			if text, _ := prefix(w); strings.HasPrefix(text, "of=") {
				return []*syntax.Word{w}
			}
		}
	}
	return nil
}

// guardOf gives the guard that a word names or, where what it names is removed with all below, that lies in it.
func guardOf(w *syntax.Word, removes bool) string {
	text, _ := prefix(w)
	text = strings.TrimPrefix(text, "of=")
	if !strings.HasPrefix(text, "/") {
		return ""
	}
	name := path.Clean(text)
	all := strings.TrimSuffix(strings.TrimSuffix(name, "*"), "/")
	for _, guard := range guards() {
		if within(name, guard) || removes && (within(guard, name) || name != all && within(guard, all)) {
			return guard
		}
	}
	return ""
}
