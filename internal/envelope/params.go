package envelope

import (
	"bytes"
	"sort"
	"strings"
)

// paramPrefix keeps every parameter out of reach of names that change how a
// shell or a loader behaves (PATH, BASH_ENV, LD_PRELOAD).
const paramPrefix = "KPSSH_"

// maxParam bounds NAME=value: Linux takes 131072 bytes for one string of an
// environment, with the NUL that ends it (MAX_ARG_STRLEN, execve(2)).
const maxParam = 131071

// ValidParamName reports whether name is KPSSH_[A-Za-z0-9_]+, nothing before
// or after.
func ValidParamName(name string) bool {
	rest, ok := strings.CutPrefix(name, paramPrefix)
	if !ok || rest == "" {
		return false
	}
	for i := range len(rest) {
		c := rest[i]
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// EncodeParams writes the parameter block: NAME=value lines sorted by name. It
// refuses what the shim refuses with ExitParam.
func EncodeParams(params map[string]string) ([]byte, error) {
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	sort.Strings(names)
	var out bytes.Buffer
	for _, name := range names {
		if err := checkParam(name, params[name]); err != nil {
			return nil, err
		}
		out.WriteString(name + "=" + params[name] + "\n")
	}
	if out.Len() > MaxParams {
		return nil, malformed(fieldParams, "%d bytes, at most %d", out.Len(), MaxParams)
	}
	return out.Bytes(), nil
}

// DecodeParams reads a parameter block. Names may come in any order; a name
// that comes twice is refused, since two readers could keep different ones.
func DecodeParams(block []byte) (map[string]string, error) {
	if len(block) > MaxParams {
		return nil, malformed(fieldParams, "%d bytes, at most %d", len(block), MaxParams)
	}
	params := map[string]string{}
	if len(block) == 0 {
		return params, nil
	}
	text, ended := strings.CutSuffix(string(block), "\n")
	if !ended {
		return nil, badParam(fieldParams, "the last line does not end")
	}
	for _, line := range strings.Split(text, "\n") {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, badParam(fieldParams, "a line without =")
		}
		if err := checkParam(name, value); err != nil {
			return nil, err
		}
		if _, twice := params[name]; twice {
			return nil, badParam(name, "given twice")
		}
		params[name] = value
	}
	return params, nil
}

// checkParam names a good name as the field at fault; a bad one is foreign text
// and is quoted, shortened.
func checkParam(name, value string) error {
	// check: ParamInvalid: a name such as BASH_ENV or "KPSSH_x;id" that steers the shell which runs the script as root
	if !ValidParamName(name) {
		return badParam("", "parameter name %.80q is not KPSSH_[A-Za-z0-9_]+", name)
	}
	// check: ParamInvalid: a line feed that turns one value into a second parameter, or bytes that a shell drops
	if strings.ContainsAny(value, "\n\r\x00") {
		return badParam(name, "value holds a line feed, carriage return or NUL")
	}
	// check: ParamInvalid: a value that the host can start no program with
	if len(name)+len("=")+len(value) > maxParam {
		return badParam(name, "with its value takes more than %d bytes", maxParam)
	}
	return nil
}
