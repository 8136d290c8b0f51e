package warrant

import (
	"strconv"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// take reads the value of one line into the warrant.
func (p *parser) take(key, value string) *wordsError {
	w := p.w
	switch key {
	case "profile":
		return w.takeProfile(value)
	case "phase":
		w.Phase = script.Phase(value)
		// check: WarrantMalformed: a phase that nobody runs
		if !w.Phase.Known() {
			return malformedWords("phase %.40q is not install, join, leave or uninstall", value)
		}
		return nil
	case "serial":
		return number(value, &w.Serial)
	case "not-before":
		w.HasNotBefore = true
		return number(value, &w.NotBefore)
	case "not-after":
		return w.takeNotAfter(value)
	case "leave-sha256":
		return w.takeDigest(key, value, &w.LeaveSHA256)
	case "uninstall-sha256":
		return w.takeDigest(key, value, &w.UninstallSHA256)
	case "target":
		return w.takeTarget(value)
	case "param":
		return w.takeParam(value)
	case "timeout":
		return w.takeTimeout(value)
	}
	// check: WarrantMalformed: words after v1 or end, which another reader takes for more
	if value != "" {
		return malformedWords("%s takes no value", key)
	}
	return nil
}

// number reads 0|[1-9][0-9]{0,14}: no sign, no leading zero, and small enough for
// every shell.
func number(text string, n *int64) *wordsError {
	// check: WarrantMalformed: octal, signs, and numbers that a shell's test takes for an error, and so for false
	if !numberForm.MatchString(text) {
		return malformedWords("%.40q is not a number: 0, or up to 15 digits that do not start with 0", text)
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return malformedWords("%.40q is not a number", text)
	}
	*n = v
	return nil
}

// takeProfile: metadata.name is a DNS-1123 subdomain (the API server's rule).
func (w *Warrant) takeProfile(name string) *wordsError {
	// check: WarrantMalformed: a name that no object has, or one that is a pattern in allowed_signers
	if len(name) > maxProfile || !profileForm.MatchString(name) {
		return malformedWords("profile %.80q is not a DNS-1123 subdomain of up to %d characters", name, maxProfile)
	}
	w.Profile = name
	return nil
}

func (w *Warrant) joins() bool { return w.Phase == script.Install || w.Phase == script.Join }

func (w *Warrant) takeNotAfter(value string) *wordsError {
	if value == "never" {
		// check: WarrantMalformed: a warrant to join that a stolen key can use for ever
		if w.joins() {
			return malformedWords("not-after never is for leave and uninstall only")
		}
		w.Never = true
		return nil
	}
	if err := number(value, &w.NotAfter); err != nil {
		return err
	}
	// check: WarrantMalformed: a warrant that is never in force
	if w.HasNotBefore && w.NotBefore >= w.NotAfter {
		return malformedWords("not-after %d is not later than not-before %d", w.NotAfter, w.NotBefore)
	}
	return nil
}

func (w *Warrant) takeDigest(key, value string, digest *string) *wordsError {
	// check: WarrantMalformed: a script that vouches for its successor in its own phase
	if !w.joins() {
		return malformedWords("%s is for install and join only", key)
	}
	// check: WarrantMalformed: a digest that no script has, or one in a second spelling
	if !digestForm.MatchString(value) {
		return malformedWords("%s %.80q is not 64 lower-case hex digits", key, value)
	}
	*digest = value
	return nil
}

func (w *Warrant) takeTarget(words string) *wordsError {
	t, err := parseTarget(words)
	if err != nil {
		return err
	}
	for _, other := range w.Targets {
		// check: WarrantMalformed: a second spelling of the same targets
		if other == t {
			return malformedWords("target %.80q is given twice", words)
		}
		// check: WarrantMalformed: "any" beside a narrower target, which readers may weigh in two ways
		if other.Kind == TargetAny || t.Kind == TargetAny {
			return malformedWords("target any stands alone")
		}
	}
	w.Targets = append(w.Targets, t)
	return nil
}

func (w *Warrant) takeParam(words string) *wordsError {
	p, err := parseParam(words)
	if err != nil {
		return err
	}
	for _, other := range w.Params {
		// check: WarrantMalformed: a second, laxer rule for the same parameter
		if other.Name == p.Name {
			return malformedWords("parameter %.80s is declared twice", p.Name)
		}
	}
	w.Params = append(w.Params, p)
	return nil
}

func (w *Warrant) takeTimeout(value string) *wordsError {
	var n int64
	if err := number(value, &n); err != nil {
		return err
	}
	// check: WarrantMalformed: a script that ends at once, or holds the host for days
	if n < 1 || n > MaxTimeout {
		return malformedWords("timeout %d is not from 1 to %d seconds", n, MaxTimeout)
	}
	w.Timeout = int(n)
	return nil
}
