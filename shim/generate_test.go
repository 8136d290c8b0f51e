package shim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
	warrants "github.com/hostwarrant/hostwarrant/internal/warrant/corpus"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// source makes inputs for readers from one seed. Most are good ones, changed a little:
// what two readers disagree on lies close to what both take.
type source struct {
	*rand.Rand
	good, bad          [][]byte // scripts of internal/warrant/testdata/cases.txt
	statements, nearly [][]byte // of testkit.StatementCases
}

func newSource(t *testing.T, seed uint64) *source {
	t.Helper()
	s := &source{Rand: rand.New(rand.NewPCG(seed, 0))}
	for _, c := range warrantCases(t) {
		switch {
		case len(c.Script) > 2000:
		case c.Verdict == warrants.Refused:
			s.bad = append(s.bad, c.Script)
		default:
			s.good = append(s.good, c.Script)
		}
	}
	cases := testkit.StatementCases(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		switch text := []byte(cases[name].Text); {
		case len(text) > 5000:
		case cases[name].Valid:
			s.statements = append(s.statements, text)
		default:
			s.nearly = append(s.nearly, text)
		}
	}
	return s
}

func (s *source) pick(of ...string) string { return of[s.IntN(len(of))] }

// some joins up to n pieces.
func (s *source) some(n int, piece func() string) string {
	var b strings.Builder
	for range s.IntN(n + 1) {
		b.WriteString(piece())
	}
	return b.String()
}

// payload leaves a file where the readers run if any shell executes it or writes to it.
func (s *source) payload() string {
	return s.pick("$(>x)", "`>x`", ";>x;", ">x", "|tee x", "${x:=$(>x)}", "'$(>x)'", "\";>x;\"", "$((x=$(>x)))", "\n>x\n", "&&>x", "x;w x", "\nw x\n", "/e;w x", "a[$(>x)]")
}

// word is what a reader may stumble over.
func (s *source) word() string {
	switch s.IntN(4) {
	case 0:
		return s.payload()
	case 1:
		return s.pick("0", "1", "00", "-1", "+1", "08", "0x10", "999999999999999", "1000000000000000", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e3", "7200", "7201", "255", "256")
	case 2:
		return s.pick(" ", "  ", "\t", "\r", "\n", "\n\n", "\x00", "\v", "\x7f", "\x80", "\xff", "é", "\u00a0", "\ufeff", "\u2028", "\r\n", "\x1b[0m")
	default:
		return s.pick("*", "?", "[a-z]", "[!a]", "~", "~root", "$IFS", "$0", "$@", "\\", "\\n", "\\0", "%s", "%n", "-n", "-e", "--", "-", "=", "{{", "{", "}", "#", "#!", ":", ",", "/", ".", "..", "_", "'", "\"", "(", ")", "|", "&", ";", "<", "!")
	}
}

// change makes one change to any text.
func (s *source) change(text []byte) []byte {
	at := s.IntN(len(text) + 1)
	until := min(len(text), at+s.IntN(1+s.IntN(12)))
	switch s.IntN(8) {
	case 0:
		return slices.Delete(bytes.Clone(text), at, until)
	case 1:
		return slices.Insert(bytes.Clone(text), at, bytes.Clone(text[at:until])...)
	case 2, 3:
		return slices.Concat(text[:at], []byte(s.word()), text[until:])
	case 4:
		if at == len(text) {
			return append(bytes.Clone(text), byte(s.IntN(256)))
		}
		changed := bytes.Clone(text)
		changed[at] ^= 1 << s.IntN(8)
		return changed
	default:
		return s.changeLines(text)
	}
}

func (s *source) changeLines(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	i, j := s.IntN(len(lines)), s.IntN(len(lines))
	switch s.IntN(5) {
	case 0:
		lines = slices.Delete(lines, i, i+1)
	case 1:
		lines = slices.Insert(lines, i, lines[j])
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		words := strings.Split(string(lines[i]), " ")
		words[s.IntN(len(words))] = s.word()
		lines[i] = []byte(strings.Join(words, " "))
	default:
		lines = slices.Insert(lines, i, []byte(s.word()+"\n"))
	}
	return bytes.Join(lines, nil)
}

// changed makes up to n changes, and as often none.
func (s *source) changed(text []byte, n int) []byte {
	for range max(s.IntN(2*n)-n+1, 0) {
		text = s.change(text)
	}
	return text
}

// noise is no input that anybody would write.
func (s *source) noise() []byte {
	text := make([]byte, s.IntN(300))
	for i := range text {
		text[i] = byte(s.IntN(256))
	}
	return text
}

// --- warrants

func (s *source) warrant() []byte {
	switch s.IntN(10) {
	case 0:
		return s.noise()
	case 1, 2, 3, 4:
		return s.changed([]byte(s.madeUp()), 1)
	case 5:
		return s.changed(s.bad[s.IntN(len(s.bad))], 2)
	default:
		return s.changed(s.good[s.IntN(len(s.good))], 3)
	}
}

// block is an input of warrant in which there is a warrant line and no NUL.
func (s *source) block() []byte {
	for {
		if text := s.warrant(); script.HasWarrantLine(text) && !bytes.Contains(text, []byte("\x00")) {
			return text
		}
	}
}

// madeUp is a script with a warrant that keeps to the grammar, or nearly.
func (s *source) madeUp() string {
	lines := []string{"v1", "profile " + s.name(), "phase " + s.phase(), "serial " + s.number()}
	if s.IntN(2) == 0 {
		lines = append(lines, "not-before "+s.number())
	}
	lines = append(lines, "not-after "+s.pick("never", s.number(), "2000000000", "999999999999999"))
	for _, key := range []string{"leave-sha256 ", "uninstall-sha256 "} {
		if s.IntN(3) == 0 {
			lines = append(lines, key+s.hex(64))
		}
	}
	for range max(1, s.IntN(5)-1) {
		lines = append(lines, "target "+s.target())
	}
	for range s.IntN(4) {
		lines = append(lines, "param KPSSH_"+s.pick("VAR_"+s.of("abc", 3), "CLUSTER_ENDPOINT", "_", "9")+" "+s.pick("required", "optional")+" "+s.pick("", "secret ")+s.matcher())
	}
	if s.IntN(3) == 0 {
		lines = append(lines, "timeout "+s.pick("1", "7200", "300", s.number()))
	}
	lines = append(lines, "end")
	return s.pick("", "#!/bin/bash\n") + "#warrant: " + strings.Join(lines, "\n#warrant: ") + "\n" + s.pick("", "echo a\n", "echo a", "#warrant:\n", "#!/bin/sh\n")
}

func (s *source) phase() string { return s.pick("install", "join", "leave", "uninstall") }

func (s *source) number() string {
	if s.IntN(40) == 0 {
		return s.word()
	}
	return fmt.Sprint(s.Int64N([]int64{10, 1000, 2000000000, 1000000000000000}[s.IntN(4)]))
}

func (s *source) hex(n int) string {
	if s.IntN(40) == 0 {
		n = max(n+s.IntN(3)-1, 0)
	}
	return s.of("0123456789abcdef", n)
}

func (s *source) of(alphabet string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[s.IntN(len(alphabet))]
	}
	return string(text)
}

func (s *source) name() string {
	switch s.IntN(8) {
	case 0:
		return s.of("abcdefghijklmnopqrstuvwxyz0123456789.-", 1+s.IntN(12))
	case 1:
		return s.of("a", 250+s.IntN(6))
	default:
		return s.pick("tls-bootstrap", "a", "a.b", "x-1", "tls-bootstrap.example")
	}
}

func (s *source) fingerprint() string {
	return "SHA256:" + s.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 42) + s.of("AEIMQUYcgkosw048AEIMQUYcgkosw048B"[s.IntN(2)*16:], 1)
}

func (s *source) target() string {
	return s.pick("any", "class a", "class "+s.of("aZ9._-", 1+s.IntN(5)), "class "+s.of("a", 62+s.IntN(3)), "host "+s.fingerprint(), "cluster c", "cluster "+s.of("a0-", 1+s.IntN(5)), "cluster "+s.of("a", 62+s.IntN(3)))
}

func (s *source) matcher() string {
	switch s.IntN(6) {
	case 0:
		return "type " + s.pick("dns1123", "ip", "hostport", "url", "b64", "hex", "int", "bool", "labels", "taints", "text", "texts", "")
	case 1:
		return "sha256 " + s.hex(64)
	case 2:
		return "enum" + s.some(4, func() string { return " " + s.pick("a", "b", "a*", "$x", "[", "=", s.of("!~ab", 2)) })
	case 3:
		return "enum" + s.some(70, func() string { return " " + s.of("ab", 1+s.IntN(9)) })
	default:
		return "re " + s.pattern()
	}
}

func (s *source) pattern() string {
	if s.IntN(12) == 0 {
		return s.of("a.", 253+s.IntN(5))
	}
	return s.some(6, func() string {
		return s.pick("a", "0", ".", "-", "[a-z]", "[0-9a]", "[", "]", "[]", "[z-a]", "[Z-a]", "[A-z]", "[9-A]", "[a-]", "[-a]", "[a-c-e]", "[{,}]", "[.]", "[ ]", "[a:]", "[:a]", "[[]", "[^a]", "[!a]", "[]a]", "[+--]",
			"?", "*", "+", "{2}", "{2,3}", "{3,2}", "{10,9}", "{,1}", "{1,}", "{0}", "{0,0}", "{00}", "{01}", "{255}", "{256}", "{200,255}", "{257}", "}", "{", ":", "(", "|", "^", "$", `\`, " ", "=", ",", "/", "~", "é")
	})
}

// --- envelopes

func (s *source) envelope() []byte {
	if s.IntN(12) == 0 {
		return s.noise()
	}
	phase := s.envelopePhase()
	lines := []string{"kpssh-envelope: 1", "phase: " + phase}
	if s.IntN(2) == 0 || phase == "outcome" {
		lines = append(lines, "run-id: "+s.hex(32))
	}
	runs, statement := slices.Contains([]string{"install", "join", "leave", "uninstall"}, phase), phase == "statement"
	for _, name := range []string{"params", "sig", "script"} {
		if runs != (s.IntN(30) == 0) {
			lines = append(lines, name+"-b64: "+s.base64())
		}
	}
	for _, name := range []string{"statement", "statement-sig"} {
		if statement != (s.IntN(30) == 0) {
			lines = append(lines, name+"-b64: "+s.base64())
		}
	}
	if s.IntN(15) == 0 {
		lines = append(lines, s.pick("", " ", "x", "phase: leave", "timed out", "late", "unknown", "version", "grep failed", "params", "Phase: join", "phase:join", "phase:  join", "run-id: "+s.hex(32), "#", "--", "kpssh-envelope: 2", "script-b64:", "script-b64: ", "sig-b64: ="))
	}
	if s.IntN(3) == 0 {
		s.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	}
	text := strings.Join(lines, "\n") + s.pick("\n", "\n", "")
	if s.IntN(12) == 0 {
		text += s.pick("\n", "\n\n", "\r", "\r\n", "\x00", " ")
	}
	return s.changed([]byte(text), 2)
}

func (s *source) envelopePhase() string {
	if s.IntN(10) == 0 {
		return s.pick("Join", "joi", "", "join ", "a.b", "-", "_", "..", s.of("a", 63+s.IntN(3)), s.word())
	}
	return s.pick("install", "join", "join", "leave", "leave", "uninstall", "probe", "prove", "outcome", "statement", "statement")
}

func (s *source) base64() string {
	n := s.IntN(40)
	if s.IntN(40) == 0 {
		n = []int{16384, 65536, 262144, 1048576}[s.IntN(4)] + s.IntN(3) - 1
	}
	content := make([]byte, n)
	for i := range min(n, 64) {
		content[i] = byte(s.IntN(256))
	}
	text := base64.StdEncoding.EncodeToString(content)
	if s.IntN(40) == 0 {
		text = string(s.change([]byte(text)))
	}
	if s.IntN(30) == 0 {
		text = strings.TrimRight(text, "=") + s.pick("", "=", "==", "===", "B==", "B=", "AA=A")
	}
	return text
}

// --- parameters

func (s *source) params() []byte {
	if s.IntN(12) == 0 {
		return s.noise()
	}
	n := 6
	if s.IntN(60) == 0 {
		n = 600
	}
	text := s.some(n, func() string {
		name := "KPSSH_" + s.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", 1+s.IntN(4))
		return name + "=" + s.some(4, func() string {
			return s.pick("a", " ", "=", "value", "é", "\xff", s.payload(), "*", "\\", "'", "\"", "$", "-")
		}) + "\n"
	})
	return s.changed([]byte(text), 2)
}

// --- statements

func (s *source) statement() []byte {
	switch s.IntN(12) {
	case 0:
		return s.noise()
	case 1:
		return s.changed(s.nearly[s.IntN(len(s.nearly))], 1)
	case 2, 3, 4, 5, 6, 7:
		return s.changed([]byte(s.madeUpStatement()), 1)
	default:
		return s.changed(s.statements[s.IntN(len(s.statements))], 2)
	}
}

// madeUpStatement keeps to the grammar, or nearly.
func (s *source) madeUpStatement() string {
	kind := s.pick("roots", "signers", "revoke", "floor", "reset")
	lines := []string{"hostwarrant-statement: v1 " + kind, "serial " + s.pick("1", "999999999999999", s.number()), "issued " + s.number()}
	switch s.IntN(8) {
	case 0:
		lines = append(lines, "cluster "+s.pick("any", "prod", s.of("a0-", 1+s.IntN(5))))
		lines = append(lines, s.times(s.IntN(3), func() string { return "target " + s.target() })...)
	case 1:
		lines = append(lines, "target any")
	case 2, 3:
		lines = append(lines, "cluster prod", "target class "+s.of("aZ9._", 1+s.IntN(3)), "target host "+s.fingerprint())
	default:
		lines = append(lines, s.pick("cluster prod", "target class a", "target host "+s.fingerprint()))
	}
	switch kind {
	case "roots":
		lines = append(lines, "threshold "+s.pick("1", "1", s.of("0123456789", 1)))
		lines = append(lines, s.times(1+s.IntN(3), func() string { return "key " + s.key() })...)
	case "signers":
		lines = append(lines, "expires "+s.pick("999999999999999", "999999999999998", s.number()), "max-validity "+s.pick("1d", "90d", "999d", "3650d", s.pick("3651d", "0d", "090d", s.number()+"d")))
		for _, phase := range []string{"install", "join", "leave", "uninstall"} {
			lines = append(lines, "threshold "+phase+" "+s.of("12345678", 1))
		}
		lines = append(lines, s.times(1+s.IntN(2), func() string { return "signer " + s.signer() })...)
	case "revoke":
		lines = append(lines, s.sorted(s.times(1+s.IntN(3), func() string { return "revoke " + s.fingerprint() }))...)
	case "floor":
		lines = append(lines, s.sorted(s.times(1+s.IntN(3), func() string { return "floor " + s.profilePattern() + " " + s.number() }))...)
	default:
		lines = append(lines, "profile "+s.name(), "mark "+s.number())
		for _, phase := range []string{"install", "join", "leave", "uninstall"} {
			if s.IntN(2) == 0 {
				lines = append(lines, "sha256 "+phase+" "+s.hex(64))
			}
		}
	}
	return strings.Join(append(lines, "end"), "\n") + "\n"
}

func (s *source) times(n int, piece func() string) []string {
	var list []string
	for range n {
		list = append(list, piece())
	}
	return list
}

// sorted sorts, most often.
func (s *source) sorted(list []string) []string {
	if s.IntN(8) > 0 {
		slices.Sort(list)
	}
	return list
}

func (s *source) profilePattern() string {
	if s.IntN(6) == 0 {
		return s.pick("*", s.of("a.-*", 1+s.IntN(4)), s.of("a", 252+s.IntN(3))+s.pick("", "*"))
	}
	return s.of("abc", 1+s.IntN(3)) + s.pick("", "*", ".x", "-1")
}

func (s *source) signer() string {
	principals := strings.Join(s.times(1+s.IntN(3), func() string { return s.pick("kpssh", s.phase()+"@"+s.profilePattern()) }), ",")
	return principals + " " + s.pick("", "", "cert-authority,") + s.pick(`namespaces="kpssh"`, `namespaces="kpssh"`, `namespaces="kpssh"`, `namespaces="kpssh"`, s.pick(`namespaces="file"`, `namespaces=kpssh`, "")) + " " + s.key()
}

// key is a public key line of the statement cases, or nearly one.
func (s *source) key() string {
	text := s.statements[s.IntN(len(s.statements))]
	for _, mark := range []string{"\nkey ", "namespaces=\"kpssh\" "} {
		if _, rest, ok := bytes.Cut(text, []byte(mark)); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			if s.IntN(20) == 0 {
				line = s.change(line)
			}
			return string(line)
		}
	}
	return s.key()
}

// --- values

// values is a script that declares parameters, and parameters that are as declared, or nearly.
func (s *source) values() []byte {
	block := "#warrant: v1\n#warrant: profile a\n#warrant: phase " + s.phase() + "\n#warrant: serial 1\n#warrant: not-after 2000000000\n#warrant: target any\n"
	var params string
	names := []string{"KPSSH_A", "KPSSH_B", "KPSSH_A_", "KPSSH_CLUSTER_ENDPOINT", "KPSSH_CLUSTER_CA_B64", "KPSSH_NODE_NAME", "KPSSH_NODE_LABELS", "KPSSH_TAINTS", "KPSSH_HOST_ADDRESS", "KPSSH_PROVIDER_ID", "KPSSH_Z"}
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+s.IntN(3)] {
		matcher, value := s.matcherAndValue()
		declared := !slices.Contains([]string{"KPSSH_NODE_NAME", "KPSSH_NODE_LABELS", "KPSSH_TAINTS", "KPSSH_HOST_ADDRESS", "KPSSH_PROVIDER_ID"}, name) || s.IntN(2) == 0
		if strings.HasPrefix(name, "KPSSH_CLUSTER") {
			declared = s.IntN(3) == 0
		}
		if declared && s.IntN(30) > 0 {
			block += "#warrant: param " + name + " " + s.pick("required", "optional") + s.pick("", " secret") + " " + matcher + "\n"
		} else {
			value = s.valueOf(s.pick("dns1123", "labels", "taints", "address", "text", "url", "b64"))
		}
		if s.IntN(12) == 0 {
			value = strings.NewReplacer("\n", "", "\r", "").Replace(string(s.change([]byte(value))))
		}
		if s.IntN(15) > 0 {
			params += name + "=" + value + "\n"
		}
	}
	return []byte(block + "#warrant: end\n---\n" + params)
}

// matcherAndValue is a matcher with a value that it takes, or nearly.
func (s *source) matcherAndValue() (matcher, value string) {
	switch s.IntN(8) {
	case 0:
		words := s.times(1+s.IntN(4), func() string {
			return s.pick("a", "b", "required", "optional", "secret", "*", "a*", "$x", "\\", "enum", s.of("ab", 3))
		})
		slices.Sort(words)
		words = slices.Compact(words)
		return "enum " + strings.Join(words, " "), s.pick(words[s.IntN(len(words))], strings.Join(words, " "), "a", "")
	case 1:
		value := s.pick("", "x", s.of("ab ", 9))
		sum := sha256.Sum256([]byte(value))
		return "sha256 " + hex.EncodeToString(sum[:]), value
	case 2, 3, 4:
		pattern, value := s.patternAndValue()
		return "re " + pattern, value
	default:
		name := s.pick("dns1123", "ip", "hostport", "url", "b64", "hex", "int", "bool", "labels", "taints", "text")
		return "type " + name, s.valueOf(name)
	}
}

// patternAndValue makes both side by side.
func (s *source) patternAndValue() (pattern, value string) {
	for range 1 + s.IntN(5) {
		atom, one := s.atom()
		n := 1
		switch s.IntN(6) {
		case 0:
			atom, n = atom+"?", s.IntN(2)
		case 1:
			atom, n = atom+"*", s.IntN(4)
		case 2:
			atom, n = atom+"+", 1+s.IntN(3)
		case 3:
			n = s.IntN(4)
			atom += fmt.Sprintf("{%d,%d}", n, n+s.IntN(3))
		case 4:
			n = 1 + s.IntN(3)
			atom += fmt.Sprintf("{%d}", n)
		}
		for range n {
			value += one()
		}
		pattern += atom
	}
	if strings.Contains(pattern, "  ") || strings.HasSuffix(pattern, " ") {
		return s.patternAndValue()
	}
	return pattern, value
}

func (s *source) atom() (atom string, one func() string) {
	switch s.IntN(4) {
	case 0:
		return ".", func() string { return string(rune(0x20 + s.IntN(0x5f))) }
	case 1:
		set := s.pick("a-z", "0-9", "A-Z", "a-c0-9", ".", "*+?", "a,", "(){}|$", "Z-a", "0-z", "=:/", " a")
		return "[" + set + "]", func() string {
			if len(set) > 2 && set[1] == '-' {
				return string(rune(int(set[0]) + s.IntN(int(set[2])-int(set[0])+1)))
			}
			return string(set[s.IntN(len(set))])
		}
	default:
		literal := s.pick("a", "B", "0", "-", "=", ":", "/", ",", "~", "!", "#", "@", "%", "&", "'", "\"", ";", "<", ">", "_", "`", " ")
		return literal, func() string { return literal }
	}
}

// valueOf is a value of a type, or nearly.
func (s *source) valueOf(name string) string {
	label := func() string { return s.pick("a", "a-b", "0", "a1", s.of("ab-", 1+s.IntN(4))) }
	name1123 := func() string { return label() + s.some(2, func() string { return "." + label() }) }
	item := func() string {
		return s.pick("a", "A.b_c-d", "0", s.of("aA0._-", 1+s.IntN(4)), s.of("a", 62+s.IntN(3)), "")
	}
	key := func() string { return s.pick("", "", name1123()+"/") + item() }
	list := func(one func() string) string { return one() + s.some(2, func() string { return "," + one() }) }
	switch name {
	case "dns1123":
		return s.pick(name1123(), name1123(), s.of("a", 252+s.IntN(3)))
	case "address":
		return s.pick(name1123(), s.ip())
	case "ip":
		return s.ip()
	case "hostport":
		return s.pick(name1123(), "["+s.ip()+"]", s.ip()) + ":" + s.port()
	case "url":
		return s.pick("https://192.0.2.1:6443", s.pick("http", "https", "https", "ftp", "HTTP")+"://"+s.pick(name1123(), "["+s.ip()+"]", s.ip())+s.pick("", ":"+s.port())+s.pick("", "/", "/a?b=c", "/%20", "/#", "?a", "/a b"))
	case "b64":
		return s.pick(pinnedCA, s.base64(), s.base64())
	case "hex":
		return s.hex(s.IntN(9))
	case "int":
		return s.pick("0", "-0", "-1", "", "007", s.number(), "-"+s.number())
	case "bool":
		return s.pick("true", "false", "True", "1", "truefalse")
	case "labels":
		return list(func() string { return key() + "=" + item() })
	case "taints":
		return list(func() string {
			return key() + s.pick("", "="+item()) + ":" + s.pick("NoSchedule", "PreferNoSchedule", "NoExecute", "noexecute")
		})
	default:
		return s.pick("a b", s.of(" ~!a", 1+s.IntN(5)), s.of("a", 1023+s.IntN(3)), "é")
	}
}

func (s *source) ip() string {
	octet := func() string { return s.pick("0", "1", "10", "99", "199", "249", "255", "256", "01", "300") }
	if s.IntN(2) == 0 {
		return strings.Join(s.times(4-s.IntN(8)/7, octet), ".")
	}
	group := func() string { return s.pick("0", "f", "FFFF", "1a2b", "00ab", "12345", "g") }
	left := s.times(s.IntN(8), group)
	if s.IntN(6) == 0 {
		return strings.Join(s.times(7+s.IntN(3), group), ":")
	}
	return strings.Join(left, ":") + "::" + strings.Join(s.times(s.IntN(9-len(left)), group), ":")
}

func (s *source) port() string {
	return s.pick("1", "0", "443", "6443", "65535", "65536", "65530", "64999", "59999", "60000", "99999", "080", "")
}
