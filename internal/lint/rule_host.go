package lint

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// heldStdout finds background children that keep stdout or stderr: sshd, and the shim, wait for the end of both.
func heldStdout(s *source) []hit {
	var waits uint
	all, silent := []hit{}, uint(0)
	for _, c := range s.facts.commands {
		if c.name == "wait" {
			waits = c.call.Pos().Offset()
		}
		if len(c.wrappers) == 1 && c.wrappers[0] == "exec" && c.name == "" && quiet(c.stmt) && silent == 0 {
			silent = c.stmt.Pos().Offset()
		}
	}
	for _, stmt := range s.facts.stmts {
		call, ok := stmt.Cmd.(*syntax.CallExpr)
		if ok && len(call.Args) == 1 && quiet(stmt) && silent == 0 {
			if name, _ := literal(call.Args[0]); name == "exec" {
				silent = max(1, stmt.Pos().Offset())
			}
		}
		here := stmt.Pos().Offset()
		if !stmt.Background || waits > here || silent > 0 && silent < here || s.quietAround(stmt) || s.facts.above[stmt].substituted {
			continue
		}
		all = append(all, on(stmt, Warning, "a background child holds stdout or stderr, and the run does not end before it does",
			"send both away: cmd >/dev/null 2>&1 &, or start it with systemd-run"))
	}
	return all
}

// quietAround tells whether a statement, all that it runs, or a block around it has its streams sent away.
func (s *source) quietAround(stmt *syntax.Stmt) bool {
	for at := stmt; at != nil; at = s.facts.above[at].parent {
		if quiet(at) || commandOf(at).name == "systemd-run" {
			return true
		}
	}
	return quietInside(stmt)
}

// quietInside tells whether the last command of a list, pipeline or block sends its streams away.
func quietInside(stmt *syntax.Stmt) bool {
	var inner []*syntax.Stmt
	switch c := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		inner = []*syntax.Stmt{c.X, c.Y}
	case *syntax.Block:
		inner = c.Stmts
	case *syntax.Subshell:
		inner = c.Stmts
	default:
		return false
	}
	return len(inner) > 0 && !slices.ContainsFunc(inner, func(s *syntax.Stmt) bool { return !quiet(s) && !quietInside(s) })
}

// quiet tells whether stdout and stderr of a statement both go elsewhere.
func quiet(stmt *syntax.Stmt) bool {
	out, err := false, false
	for _, r := range stmt.Redirs {
		fd := "1"
		if r.N != nil {
			fd = r.N.Value
		}
		to, _ := literal(r.Word)
		switch {
		case r.Op == syntax.RdrAll || r.Op == syntax.AppAll:
			out, err = true, true
		case r.Op == syntax.DplOut && r.N == nil && to != "" && strings.Trim(to, "0123456789-") != "":
			out, err = true, true // >&file
		case r.Op == syntax.DplOut && to == "-", isOutput(r):
			out, err = out || fd == "1", err || fd == "2"
		case r.Op == syntax.DplOut && fd == "2" && to == "1":
			err = out
		case r.Op == syntax.DplOut && fd == "1" && to == "2":
			out = err
		}
	}
	return out && err
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
