package warrant

import (
	"slices"
	"strings"
)

// Param declares one parameter that a script takes.
type Param struct {
	Name     string
	Required bool
	Secret   bool // its value is never shown or stored
	Matcher  Matcher
}

// Matcher is what the values of a parameter must be.
type Matcher struct {
	Kind  string // type, enum, sha256 or re
	Value string // the words after it: a type, the values of an enum, a digest, a pattern
}

// The kinds of Matcher.
const (
	MatchType   = "type"
	MatchEnum   = "enum"
	MatchSHA256 = "sha256"
	MatchRE     = "re"
)

// maxEnum bounds an enum: a shell compares each value with all before it.
const maxEnum = 64

const (
	namePattern = `KPSSH_[A-Za-z0-9_]+`
	hexPattern  = `[0-9a-f]{64}`
)

// String gives the words that stand after "param ".
func (p Param) String() string {
	words := p.Name + " optional "
	if p.Required {
		words = p.Name + " required "
	}
	if p.Secret {
		words += "secret "
	}
	return words + p.Matcher.String()
}

// String gives the words as they stand in the warrant.
func (m Matcher) String() string { return m.Kind + " " + m.Value }

// ParseParam reads the words that stand after "param ".
func ParseParam(words string) (Param, error) {
	p, err := parseParam(words)
	if err != nil {
		return Param{}, err
	}
	return p, nil
}

func parseParam(words string) (Param, *wordsError) {
	name, rest, _ := strings.Cut(words, " ")
	p := Param{Name: name}
	// check: WarrantMalformed: PATH, BASH_ENV and all else that steers the shell
	if !nameForm.MatchString(name) {
		return Param{}, malformedWords("parameter name %.80q is not KPSSH_[A-Za-z0-9_]+", name)
	}
	need, rest, _ := strings.Cut(rest, " ")
	p.Required = need == "required"
	// check: WarrantMalformed: a parameter that one reader takes for required and another for optional
	if !p.Required && need != "optional" {
		return Param{}, malformedWords("parameter %.80s: %.20q is neither required nor optional", name, need)
	}
	if after, ok := strings.CutPrefix(rest, "secret "); ok {
		p.Secret, rest = true, after
	}
	kind, value, _ := strings.Cut(rest, " ")
	p.Matcher = Matcher{Kind: kind, Value: value}
	if err := p.Matcher.check(); err != nil {
		return Param{}, malformedWords("parameter %.80s: %s", name, err.What)
	}
	return p, nil
}

func (m Matcher) check() *wordsError {
	switch m.Kind {
	case MatchType:
		// check: WarrantMalformed: a type that another reader does not check
		if !slices.Contains(Types(), m.Value) {
			return malformedWords("type %.40q is none of %s", m.Value, strings.Join(Types(), " "))
		}
	case MatchEnum:
		return checkEnum(m.Value)
	case MatchSHA256:
		// check: WarrantMalformed: a digest that no value has, or one in a second spelling
		if !digestForm.MatchString(m.Value) {
			return malformedWords("sha256 %.80q is not 64 lower-case hex digits", m.Value)
		}
	case MatchRE:
		return checkPattern(m.Value)
	default:
		return malformedWords("%.40q is not type, enum, sha256 or re", m.Kind)
	}
	return nil
}

func checkEnum(words string) *wordsError {
	values := strings.Split(words, " ")
	// check: WarrantMalformed: a list that takes minutes to compare
	if len(values) > maxEnum {
		return malformedWords("enum has %d values, at most %d", len(values), maxEnum)
	}
	for i, v := range values {
		// check: WarrantMalformed: a value that is nothing, and so matches what was left out
		if !enumWordForm.MatchString(v) {
			return malformedWords("enum has an empty value, or one beyond printable ASCII")
		}
		// check: WarrantMalformed: a second spelling of the same list
		if slices.Contains(values[:i], v) {
			return malformedWords("enum has %.80q twice", v)
		}
	}
	return nil
}
