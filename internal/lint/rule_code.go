package lint

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// evalUsed finds eval, and shells that are given a text with a parameter in it.
func evalUsed(s *source) []hit {
	var all []hit
	values := s.values()
	for _, c := range s.facts.commands {
		var code []*syntax.Word
		isEval := c.name == "eval"
		if isEval {
			code = c.args
		} else if isShell(c.name) && c.has('c', "") {
			code = c.operands()
			code = code[:min(1, len(code))]
		}
		switch {
		case slices.ContainsFunc(code, func(w *syntax.Word) bool { return values.in(w) }):
			all = append(all, on(c.call, Error, "the value of a parameter runs as code", "pass it as an argument, or in the environment, and quote it where it is used"))
		case isEval:
			all = append(all, on(c.call, Warning, "eval runs text as code", "call the command directly; keep words in an array"))
		}
	}
	return all
}

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}, name)
}

func isFetcher(name string) bool {
	return slices.Contains([]string{"curl", "wget", "fetch", "aria2c"}, name)
}

// pipeToShell finds downloads that run as code: their bytes are not the signed ones.
func pipeToShell(s *source) []hit {
	const message, hint = "what is downloaded here runs as root, and nobody signed it", "put the code into the script, or download to a file and compare its sha256 before running it"
	var all []hit
	fetchers := s.fetchers()
	for _, c := range s.facts.commands {
		if runsDownload(c, fetchers) {
			all = append(all, on(c.stmt, Error, message, hint))
		}
	}
	for _, stmt := range s.facts.stmts {
		pipe, ok := stmt.Cmd.(*syntax.BinaryCmd)
		if ok && (pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll) && readsCode(commandOf(pipe.Y)) && fetchers.in(pipe.X) {
			all = append(all, on(pipe, Error, message, hint))
		}
	}
	return all
}

// readsCode tells the commands that run what comes in on stdin.
func readsCode(c command) bool {
	first := ""
	if words := c.operands(); len(words) > 0 {
		first, _ = prefix(words[0])
		if first == "" {
			first = "file"
		}
	}
	stdin := first == "" || first == "-" || first == "/dev/stdin"
	switch {
	case isShell(c.name):
		return !c.has('c', "") && (stdin || c.has('s', ""))
	case c.name == "source" || c.name == ".":
		return first == "/dev/stdin" || first == "-"
	case strings.HasPrefix(c.name, "python"):
		return !c.has('c', "") && !c.has('m', "") && stdin
	case c.name == "perl" || c.name == "ruby" || c.name == "node" || c.name == "php":
		return stdin && !c.has('e', "") && !c.has('n', "") && !c.has('p', "") && !c.has('r', "")
	default:
		return false
	}
}

// runsDownload tells commands that take a download as code in an argument or by redirection:
// bash <(curl …), source <(curl …), sh -c "$(curl …)", eval "$(curl …)", bash <<< "$(curl …)".
func runsDownload(c command, fetchers spots) bool {
	loads := isShell(c.name) || c.name == "source" || c.name == "." || c.name == "eval"
	if !loads {
		return false
	}
	for i, w := range c.args {
		if (i == 0 || c.has('c', "") || c.name == "eval" || startsFlag(c.args[i-1])) && fetchers.in(w) {
			return true
		}
	}
	if c.has('c', "") {
		return false
	}
	return slices.ContainsFunc(c.stmt.Redirs, func(r *syntax.Redirect) bool {
		return !isOutput(r) && r.Op != syntax.DplOut && (fetchers.in(r.Word) || r.Hdoc != nil && fetchers.in(r.Hdoc))
	})
}

func startsFlag(w *syntax.Word) bool {
	text, _ := prefix(w)
	return strings.HasPrefix(text, "-")
}

// spots are places in a script, in order.
type spots []uint

// in tells whether one of them lies within a node.
func (p spots) in(n syntax.Node) bool {
	start, end := n.Pos().Offset(), n.End().Offset()
	i, _ := slices.BinarySearch(p, start)
	return i < len(p) && p[i] < end
}

// fetchers are the places where downloads run.
func (s *source) fetchers() spots {
	var all spots
	for _, c := range s.facts.commands {
		if isFetcher(c.name) {
			all = append(all, c.call.Pos().Offset())
		}
	}
	slices.Sort(all)
	return all
}

// values are the places where the value of a KPSSH_ parameter is taken.
func (s *source) values() spots {
	var all spots
	for _, u := range s.facts.uses {
		if isParam(u.name) && u.shows() {
			all = append(all, u.exp.Pos().Offset())
		}
	}
	slices.Sort(all)
	return all
}

// uncheckedDownload finds files that are downloaded in a script that compares no digest and checks no signature.
func uncheckedDownload(s *source) []hit {
	if slices.ContainsFunc(s.facts.commands, checks) {
		return nil
	}
	var all []hit
	for _, c := range s.facts.commands {
		if isFetcher(c.name) && savesFile(c) {
			all = append(all, on(c.call, Warning, "what is downloaded here is used unchecked: the script compares no digest and no signature",
				"name the version, and its digest: echo \"HEX  FILE\" | sha256sum -c"))
		}
	}
	return all
}

// checks tells the commands that compare a digest or check a signature.
func checks(c command) bool {
	if slices.Contains([]string{"sha256sum", "sha384sum", "sha512sum", "b2sum", "shasum", "gpgv", "cosign", "minisign", "signify"}, c.name) {
		return true
	}
	flags := c.flags()
	switch c.name {
	case "gpg":
		return slices.Contains(flags, "--verify")
	case "ssh-keygen":
		return slices.Contains(flags, "-Y")
	case "openssl":
		return slices.ContainsFunc(c.args, func(w *syntax.Word) bool {
			sub, _ := literal(w)
			return sub == "dgst" || sub == "verify" || sub == "cms"
		})
	default:
		return false
	}
}

// savesFile tells whether a download goes to a file.
func savesFile(c command) bool {
	if slices.ContainsFunc(c.stmt.Redirs, func(r *syntax.Redirect) bool { return isOutput(r) && !isDevice(r.Word) }) {
		return true
	}
	for i, w := range c.args {
		text, _ := prefix(w)
		if text == "--remote-name" || c.name == "curl" && bundled(text, "O") != "" {
			return true
		}
		value, named := strings.CutPrefix(text, "--output=")
		if !named {
			value, named = strings.CutPrefix(text, "--output-document=")
		}
		if !named && (text == "--output" || text == "--output-document" || bundled(text, outputLetter(c.name)) != "") {
			_, value, _ = strings.Cut(text, outputLetter(c.name))
			if named = true; (value == "" || strings.HasPrefix(text, "--")) && i+1 < len(c.args) {
				value, _ = literal(c.args[i+1])
			}
		}
		if named {
			return value != "-" && !strings.HasPrefix(value, "/dev/")
		}
	}
	return c.name == "wget" || c.name == "aria2c" // they save to a file unless told otherwise
}

// bundled gives a bundle of one-letter flags from a letter on, or "". Flags of curl that take a value end a bundle.
func bundled(text, letter string) string {
	if !strings.HasPrefix(text, "-") || strings.HasPrefix(text, "--") {
		return ""
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i:i+1] == letter:
			return text[i:]
		case strings.ContainsRune("XHduAebcEFTUmrxyzKC", rune(text[i])):
			return ""
		}
	}
	return ""
}

func outputLetter(fetcher string) string {
	if fetcher == "wget" {
		return "O"
	}
	return "o"
}
