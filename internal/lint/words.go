package lint

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal gives the text of a word that holds no expansion, and whether it is one.
func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	text, whole := prefix(w)
	return text, whole
}

// prefix gives the literal text at the start of a word, and whether that is all of it.
func prefix(w *syntax.Word) (text string, whole bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		if !literalPart(&b, part) {
			return b.String(), false
		}
	}
	return b.String(), true
}

func literalPart(b *strings.Builder, part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		b.WriteString(unescape(p.Value))
	case *syntax.SglQuoted:
		b.WriteString(p.Value)
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if !literalPart(b, inner) {
				return false
			}
		}
	default:
		return false
	}
	return true
}

// unescape takes the backslashes of an unquoted literal away.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// command is a simple command as it will run: what stands before the real one (sudo, env, …) is taken off.
type command struct {
	name     string // the last element of its path; "" where it is not literal
	args     []*syntax.Word
	call     *syntax.CallExpr
	stmt     *syntax.Stmt
	wrappers []string
}

// commandOf gives the simple command of a statement, or one without a name.
func commandOf(stmt *syntax.Stmt) command {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return command{stmt: stmt}
	}
	c := command{call: call, stmt: stmt}
	words := call.Args
	for len(words) > 0 {
		name, ok := literal(words[0])
		if !ok {
			return command{call: call, stmt: stmt, wrappers: c.wrappers}
		}
		c.name, c.args = path.Base(name), words[1:]
		rest, wrapped := unwrap(c.name, words[1:])
		if !wrapped {
			return c
		}
		c.wrappers, words = append(c.wrappers, c.name), rest
	}
	return c
}

// unwrap gives the words behind a command that runs another one: sudo -u x CMD, env A=b CMD.
func unwrap(name string, words []*syntax.Word) ([]*syntax.Word, bool) {
	withValue, known := map[string]string{
		"sudo": "ugpCDhrT", "env": "uCS", "nohup": "", "exec": "a", "command": "", "builtin": "", "nice": "n",
		"ionice": "cnp", "setsid": "", "stdbuf": "ioe", "timeout": "ks", "time": "fo", "busybox": "", "doas": "uC", "chroot": "",
	}[name]
	if !known {
		return nil, false
	}
	for len(words) > 0 {
		text, _ := prefix(words[0])
		option := strings.HasPrefix(text, "-") && len(text) > 1
		if !option && !(name == "env" && strings.Contains(text, "=")) {
			break
		}
		words = words[1:]
		if option && len(text) == 2 && strings.ContainsRune(withValue, rune(text[1])) && len(words) > 0 {
			words = words[1:]
		}
	}
	if (name == "timeout" || name == "chroot") && len(words) > 0 {
		words = words[1:]
	}
	return words, len(words) > 0
}

// flags gives the literal arguments of a command that start with a dash, up to --.
func (c command) flags() []string {
	var all []string
	for _, w := range c.args {
		text, _ := prefix(w)
		if text == "--" {
			break
		}
		if strings.HasPrefix(text, "-") {
			all = append(all, text)
		}
	}
	return all
}

// has tells whether a command has a one-letter flag, alone or in a bundle, or a long one.
func (c command) has(letter byte, long string) bool {
	for _, f := range c.flags() {
		if long != "" && (f == "--"+long || strings.HasPrefix(f, "--"+long+"=")) {
			return true
		}
		if !strings.HasPrefix(f, "--") && letter != 0 && strings.IndexByte(f, letter) > 0 {
			return true
		}
	}
	return false
}

// operands gives the arguments of a command that are no flags.
func (c command) operands() []*syntax.Word {
	var all []*syntax.Word
	for i, w := range c.args {
		text, _ := prefix(w)
		if text == "--" {
			return append(all, c.args[i+1:]...)
		}
		if !strings.HasPrefix(text, "-") || text == "-" {
			all = append(all, w)
		}
	}
	return all
}

// isOutput tells the redirections that open a file for writing.
func isOutput(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
		return true
	default:
		return false
	}
}

// of gives the text of a node, to compare words that hold expansions.
func (s *source) of(n syntax.Node) string {
	start, end := at(n)
	if start > end || end > len(s.text) {
		return ""
	}
	return string(s.text[start:end])
}

// within tells whether a path is a directory or lies below it.
func within(file, dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") }
