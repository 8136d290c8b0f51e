package lint

import (
	"bytes"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// undeclaredParameter finds names that will never have a value. Without a warrant the names of node
// class vars and secrets are free.
func undeclaredParameter(s *source) []hit {
	var all []hit
	seen := map[string]bool{}
	for _, u := range s.facts.uses {
		if !isParam(u.name) || isBuiltIn(u.name) || s.declared(u.name) || seen[u.name] || u.exp.Names != 0 {
			continue
		}
		free := s.warrant == nil && (strings.HasPrefix(u.name, varPrefix) || strings.HasPrefix(u.name, secretPrefix))
		if free || s.facts.assigned[u.name] {
			continue
		}
		seen[u.name] = true
		if s.warrant == nil {
			all = append(all, on(u.exp, Warning, u.name+" is no name that karpenter-provider-ssh sends", "node class vars are KPSSH_VAR_…, secrets KPSSH_SECRET_…"))
			continue
		}
		all = append(all, on(u.exp, Error, u.name+" is not declared in the warrant: the host refuses a run that sends it", "#warrant: param "+u.name+" optional type text"))
	}
	return all
}

// unusedParameter finds declared parameters that the text outside comments does not name. What is always
// sent is declared for its matcher, used or not.
func unusedParameter(s *source) []hit {
	if s.warrant == nil || s.usesAll() {
		return nil
	}
	code := s.withoutComments()
	var all []hit
	for _, p := range s.warrant.Params {
		if isBuiltIn(p.Name) || names(code, p.Name) {
			continue
		}
		level, why := Note, "whoever sets it is not heard"
		if p.Secret {
			level, why = Warning, "a secret is handed to the host for nothing"
		}
		all = append(all, s.onLine("#warrant: param "+p.Name+" ", level, "the script does not use "+p.Name+": "+why, "leave the line out"))
	}
	return all
}

// usesAll tells whether the script looks at parameters by a part of their name.
func (s *source) usesAll() bool {
	return slices.ContainsFunc(s.facts.uses, func(u use) bool {
		return u.exp.Names != 0 || u.exp.Excl
	}) || slices.ContainsFunc(s.facts.commands, func(c command) bool {
		return c.name == "env" || c.name == "printenv" || c.name == "compgen"
	})
}

// withoutComments blanks the comments out, the warrant among them.
func (s *source) withoutComments() []byte {
	code := bytes.Clone(s.text)
	for _, c := range s.facts.comments {
		start, end := at(&c)
		for i := start; i < min(end, len(code)); i++ {
			code[i] = ' '
		}
	}
	return code
}

// names tells whether a text holds a name that is not part of a longer one.
func names(text []byte, name string) bool {
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(name))
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !nameByte(text[start-1])) && (end == len(text) || !nameByte(text[end])) {
			return true
		}
		from = end
	}
}

func nameByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// absentParameter finds parameters that are empty or unset in a phase that cannot do without.
func absentParameter(s *source) []hit {
	all := s.requiredButAbsent()
	seen := map[string]bool{}
	for _, u := range s.facts.uses {
		state := s.given(u.name)
		if state == given || seen[u.name] || s.facts.assigned[u.name] {
			continue
		}
		unset, empty := u.demands()
		const hint = "keep what the phase needs in a file at join, or give a default: ${NAME:-}"
		switch {
		case empty || unset && state == absent:
			all = append(all, on(u.exp, Error, u.name+" is demanded, and "+string(s.phase)+" is not given it: the phase always fails", hint))
		case defaults(u.exp) || !u.shows() || isTested(u):
			continue
		case state == absent && !unset:
			all = append(all, on(u.exp, Warning, u.name+" is not given to "+string(s.phase)+": under set -u the phase fails here", hint))
		default:
			all = append(all, on(u.exp, Warning, u.name+" is always empty in "+string(s.phase), hint))
		}
		seen[u.name] = true
	}
	return all
}

// requiredButAbsent finds what the warrant requires and the phase never gets.
func (s *source) requiredButAbsent() []hit {
	if s.warrant == nil {
		return nil
	}
	var all []hit
	for _, p := range s.warrant.Params {
		if p.Required && s.given(p.Name) != given {
			all = append(all, s.onLine("#warrant: param "+p.Name+" ", Error,
				p.Name+" is required, and "+string(s.phase)+" is not given it: every run is refused", "declare it optional, or leave the line out"))
		}
	}
	return all
}

// sent says what a phase is given of a parameter.
type sent int

const (
	given  sent = iota // a value, as far as one can tell here
	empty              // always sent, always empty
	absent             // never sent
)

// given follows docs/spec/lint.md: karpenter-provider-ssh runs leave with the two addresses alone and never
// runs uninstall; a HostRun gives both the addresses and vars. The token is made for join.
func (s *source) given(name string) sent {
	switch {
	case !isParam(name) || slices.Contains(addresses(), name):
		return given
	case s.phase == script.Install && name == token:
		return empty
	case s.phase != script.Leave && s.phase != script.Uninstall:
		return given
	case isBuiltIn(name):
		return empty
	case strings.HasPrefix(name, varPrefix) && s.phase == script.Uninstall:
		return given
	case strings.HasPrefix(name, varPrefix), strings.HasPrefix(name, secretPrefix):
		return absent
	default:
		return given
	}
}

// isTested tells expansions that only ask whether there is a value.
func isTested(u use) bool {
	name := commandOf(u.stmt).name
	_, double := u.stmt.Cmd.(*syntax.TestClause)
	return double || name == "[" || name == "test"
}

// clusterNotPinned says where nothing in the script fixes the cluster that a host joins.
func clusterNotPinned(s *source) []hit {
	if s.phase != script.Install && s.phase != script.Join {
		return nil
	}
	if s.warrant == nil {
		for _, u := range s.facts.uses {
			if u.name == endpoint || u.name == ca {
				return []hit{on(u.exp, Note, "whoever runs the controller chooses the cluster that the host joins: the script has no warrant to pin endpoint and CA",
					"hostwarrant sign with a warrant that pins them, or pin them on each host in /etc/kpssh/cluster")}
			}
		}
		return nil
	}
	var loose []string
	for _, name := range []string{endpoint, ca} {
		if !slices.ContainsFunc(s.warrant.Params, func(p param) bool { return p.Name == name && pins(p) }) {
			loose = append(loose, name)
		}
	}
	if len(loose) == 0 {
		return nil
	}
	return []hit{s.onLine("#warrant:", Note, "the warrant does not pin "+strings.Join(loose, " and ")+": each host has to, or it refuses the run",
		"#warrant: param "+loose[0]+" optional "+map[string]string{endpoint: "enum URL", ca: "sha256 HEX"}[loose[0]]+", or /etc/kpssh/cluster on each host")}
}
