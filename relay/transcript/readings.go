package transcript

import "bytes"

// How bash, and how dash, write a single quote between single quotes.
const (
	inSingleQuotes = `'\''`
	inDashsQuotes  = `'"'"'`
)

const longestSpelling = len(inDashsQuotes)

// spelling is the length of the longest spelling of a byte that a reading knows.
func spelling(c byte) int {
	switch {
	case c == '\'':
		return longestSpelling
	case c < ' ' || c > '~':
		return len(`\303`)
	default:
		return len(`\a`)
	}
}

// beginsSpelling: the spelling of a byte that has more to come.
func beginsSpelling(b []byte) bool {
	for _, quote := range []string{inSingleQuotes, inDashsQuotes} {
		if len(b) < len(quote) && bytes.HasPrefix([]byte(quote), b) {
			return true
		}
	}
	return b[0] == '\\' && len(b) < len(`\303`) && len(bytes.Trim(b[1:], "01234567")) == 0
}

// reading reads one byte that a shell has printed, and says how many bytes it is printed as.
type reading func(b []byte) (value byte, length int)

// readings are the ways in which shells print a value when they trace commands (set -x) or are told to
// quote (printf %q, declare -p): as it is, between single quotes, between $' and ', and with backslashes.
func readings() []reading { return []reading{asItIs, singleQuoted, dollarQuoted, backslashed} }

// read gives what a text says, and where in it each byte stands; behind the last of these its length.
func (r reading) read(text []byte) (value []byte, at []int) {
	value, at = make([]byte, 0, len(text)), make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		c, n := r(text[i:])
		value, at = append(value, c), append(at, i)
		i += n
	}
	return value, append(at, len(text))
}

func asItIs(b []byte) (byte, int) { return b[0], 1 }

// singleQuoted: a single quote ends the quotes, stands by itself, and begins them again; in bash, and in dash.
func singleQuoted(b []byte) (byte, int) {
	for _, quote := range []string{inSingleQuotes, inDashsQuotes} {
		if bytes.HasPrefix(b, []byte(quote)) {
			return '\'', len(quote)
		}
	}
	return b[0], 1
}

// dollarQuoted: what the locale cannot print has three octal digits or a letter.
func dollarQuoted(b []byte) (byte, int) {
	if b[0] != '\\' || len(b) < 2 {
		return b[0], 1
	}
	if c, ok := octal(b[1:]); ok {
		return c, len(`\303`)
	}
	if i := bytes.IndexByte([]byte(`abeEfnrtv\'"?`), b[1]); i >= 0 {
		return "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[i], len(`\a`)
	}
	return b[0], 1
}

// octal reads the three digits of a byte.
func octal(b []byte) (byte, bool) {
	if len(b) < 3 || b[0] > '3' {
		return 0, false
	}
	var c byte
	for _, digit := range b[:3] {
		if digit < '0' || digit > '7' {
			return 0, false
		}
		c = c<<3 | (digit - '0')
	}
	return c, true
}

// backslashed: each byte, or only those that mean something to the shell.
func backslashed(b []byte) (byte, int) {
	if b[0] == '\\' && len(b) > 1 {
		return b[1], len(`\a`)
	}
	return b[0], 1
}
