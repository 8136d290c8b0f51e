package allowedsigners

import (
	"slices"
	"strings"
	"time"
)

// options are what a line says beside its principals.
type options struct {
	authority  bool
	limited    bool // to namespaces
	namespaces patterns
	validAfter time.Time // zero: from ever
	// validBefore is the last second of the term, as ssh-keygen reads it.
	validBefore time.Time // zero: for ever
}

// cutOptions takes the options, which have commas between them and no blanks
// outside of quotes.
func cutOptions(line string) (options, string, error) {
	var o options
	seen := map[string]bool{}
	for rest := line; ; {
		end := strings.IndexAny(rest, `,="`+blanks)
		// check: Malformed: a line that ends here has no key
		if end < 0 {
			return o, "", malformed("line has no public key after %.40q", rest)
		}
		name := strings.ToLower(rest[:end])
		rest = rest[end:]
		// check: Malformed: of two limits one would be lost
		if seen[name] {
			return o, "", malformed("option %s stands twice", name)
		}
		seen[name] = true
		value, after, quoted, err := cutValue(rest)
		if err != nil {
			return o, "", err
		}
		if err := o.set(name, value, quoted); err != nil {
			return o, "", err
		}
		switch {
		case strings.HasPrefix(after, ","):
			rest = after[1:]
		case after != "" && strings.ContainsRune(blanks, rune(after[0])):
			return o, strings.TrimLeft(after, blanks), o.check()
		default:
			return o, "", malformed("something follows the value of option %s", name)
		}
	}
}

// cutValue takes ="VALUE" where it stands.
func cutValue(rest string) (value, after string, quoted bool, err error) {
	if !strings.HasPrefix(rest, "=") {
		return "", rest, false, nil
	}
	inside, opens := strings.CutPrefix(rest, `="`)
	value, after, closes := strings.Cut(inside, `"`)
	// check: Malformed: ssh-keygen refuses a value without quotes; a backslash would hide the quote that closes
	if !opens || !closes || strings.Contains(value, `\`) {
		return "", "", false, malformed("value of an option does not stand in quotes, or holds a backslash")
	}
	return value, after, true, nil
}

func (o *options) set(name, value string, quoted bool) (err error) {
	wantsValue := name != "cert-authority"
	// check: Malformed: ssh-keygen skips the line; to drop the option alone would drop a limit
	if !slices.Contains([]string{"cert-authority", "namespaces", "valid-after", "valid-before"}, name) {
		return malformed("unknown option %.40q", name).Try("known are cert-authority, namespaces, valid-after and valid-before")
	}
	// check: Malformed: a limit that is not a limit would be lost
	if quoted != wantsValue {
		return malformed("option %s has a value that it must not have, or lacks one", name)
	}
	switch name {
	case "cert-authority":
		o.authority = true
	case "namespaces":
		o.namespaces, err = parsePatterns(value)
		o.limited = true
	case "valid-after":
		o.validAfter, err = ParseTime(value)
	case "valid-before":
		o.validBefore, err = ParseTime(value)
	}
	return err
}

// check refuses a term that ends before it begins, as ssh-keygen does.
func (o *options) check() error {
	// check: Malformed: ssh-keygen refuses the line
	if !o.validAfter.IsZero() && !o.validBefore.IsZero() && !o.validBefore.After(o.validAfter) {
		return malformed("valid-before is not after valid-after")
	}
	return nil
}

// ParseTime reads YYYYMMDDZ, YYYYMMDDHHMMZ or YYYYMMDDHHMMSSZ. Without the Z the
// time would be local to whoever reads it.
func ParseTime(text string) (time.Time, error) {
	layout := map[int]string{9: "20060102Z", 13: "200601021504Z", 15: "20060102150405Z"}[len(text)]
	t, err := time.Parse(layout, text)
	// check: Malformed: the host's zone would decide, another day would be taken, or (OpenSSH 10.4, before 1970) the term would never end
	if layout == "" || err != nil || t.Unix() <= 0 {
		return time.Time{}, malformed("%.40q is not a time of UTC after the start of 1970", text).
			Try("write YYYYMMDDZ, YYYYMMDDHHMMZ or YYYYMMDDHHMMSSZ")
	}
	return t, nil
}
