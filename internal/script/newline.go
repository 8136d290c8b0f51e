package script

import "bytes"

// NewlineChange finds out whether got differs from the signed bytes only by
// line ends: it offers got with the usual damage undone to matches, which says
// whether a signature covers that. It returns what happened, or "".
//
// It only words a refusal: damaged bytes are refused either way.
func NewlineChange(got []byte, matches func([]byte) bool) string {
	lf, cr := []byte("\n"), []byte("\r\n")
	plain := bytes.ReplaceAll(got, cr, lf)
	trimmed := bytes.TrimRight(plain, "\n")
	withLF := append(bytes.Clone(trimmed), '\n')

	undone := []struct {
		bytes []byte
		what  string
	}{
		{append(bytes.Clone(got), '\n'), "the final newline was lost"},
		{bytes.TrimSuffix(got, lf), "a final newline was added"},
		{bytes.TrimRight(got, "\n"), "final newlines were added"},
		{plain, "line ends became CRLF"},
		{trimmed, "line ends became CRLF and a final newline was added"},
		{withLF, "line ends or final newlines were changed"},
		{bytes.ReplaceAll(plain, lf, cr), "CRLF line ends became LF"},
	}
	for _, u := range undone {
		if !bytes.Equal(u.bytes, got) && matches(u.bytes) {
			return u.what
		}
	}
	return ""
}
