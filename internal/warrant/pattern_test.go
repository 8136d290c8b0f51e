package warrant_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// patterns makes patterns of the subset, and values near what they match.
type patterns struct{ *rand.Rand }

const (
	literals = " !\"#%&',-/0123456789:;<=>@ABCXYZ_`abcxyz~"
	members  = " !\"#$%&'()*+,./;<=>?@_`{|}~01289ABYZabyz"
	printing = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
	alnum    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func (p patterns) one(of string) string { return string(of[p.IntN(len(of))]) }

// atom returns an atom and the bytes it matches.
func (p patterns) atom() (re, matches string) {
	switch p.IntN(4) {
	case 0:
		return ".", printing
	case 1:
		c := p.one(literals)
		return c, c
	}
	for range 1 + p.IntN(4) {
		if p.IntN(2) == 0 {
			c := p.one(members)
			re += c
			matches += c
			continue
		}
		from := p.IntN(len(alnum))
		to := from + p.IntN(len(alnum)-from)
		re += alnum[from:from+1] + "-" + alnum[to:to+1]
		for c := alnum[from]; c <= alnum[to]; c++ {
			matches += string(c)
		}
	}
	return "[" + re + "]", matches
}

func (p patterns) quantifier() (re string, least, most int) {
	switch p.IntN(8) {
	case 0:
		return "?", 0, 1
	case 1:
		return "*", 0, 5
	case 2:
		return "+", 1, 5
	case 3:
		n := p.IntN(4)
		return fmt.Sprintf("{%d}", n), n, n
	case 4:
		n := p.IntN(4)
		m := n + p.IntN(12)
		return fmt.Sprintf("{%d,%d}", n, m), n, m
	}
	return "", 1, 1
}

// piece is an atom with its quantifier.
type piece struct {
	matches     string
	least, most int
}

func (p patterns) pattern() (re string, pieces []piece) {
	for range 1 + p.IntN(5) {
		a, matches := p.atom()
		q, least, most := p.quantifier()
		re += a + q
		pieces = append(pieces, piece{matches, least, most})
	}
	return re, pieces
}

// value returns one that the pattern matches.
func (p patterns) value(pieces []piece) (value string) {
	for _, piece := range pieces {
		for range piece.least + p.IntN(piece.most-piece.least+1) {
			value += p.one(piece.matches)
		}
	}
	return value
}

// near changes a value in one place.
func (p patterns) near(value string) string {
	at := p.IntN(len(value) + 1)
	switch p.IntN(4) {
	case 0:
		return value[:at] + p.one(printing) + value[at:]
	case 1:
		return value[:at]
	case 2:
		if at < len(value) {
			return value[:at] + p.one(printing) + value[at+1:]
		}
	}
	return value
}

// matching asks grep which values an ERE matches in full.
func matching(t *testing.T, ere string, values []string) []bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Tool(t, "grep"), "-aEnx", "-e", ere)
	cmd.Env = []string{"LC_ALL=C"}
	cmd.Stdin = strings.NewReader(strings.Join(values, "\n") + "\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // nothing matches
	}
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("grep -E %q: %v %s", ere, err, stderr.Bytes())
	}
	matched := make([]bool, len(values))
	for line := range strings.Lines(string(out)) {
		number, _, _ := strings.Cut(line, ":")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("grep printed %q", line)
		}
		matched[n-1] = true
	}
	return matched
}

// TestPatternsMeanTheSameToGrep: R is read by RE2 in the cluster and by grep on the
// host.
func TestPatternsMeanTheSameToGrep(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := patterns{rand.New(rand.NewPCG(seed, 0))}
	pairs, matched := 0, 0
	for pairs < 2500 {
		re, pieces := p.pattern()
		m := warrant.Matcher{Kind: "re", Value: re}
		if w := with(m); w.Check() != nil { // two spaces together, {{ or a space at an end
			continue
		}
		var values []string
		for range 40 {
			values = append(values, p.near(p.near(p.value(pieces))))
		}
		for i, byGrep := range matching(t, re, values) {
			if values[i] == "" {
				continue
			}
			pairs++
			if byGrep {
				matched++
			}
			if m.Accepts(values[i]) != byGrep {
				t.Errorf("pattern %q, value %q: grep says %v", re, values[i], byGrep)
			}
		}
	}
	t.Logf("%d pairs, %d of them match", pairs, matched)
	if pairs < 2000 || matched < pairs/10 || matched > pairs*9/10 {
		t.Errorf("%d pairs and %d matches are no test", pairs, matched)
	}
}

func with(m warrant.Matcher) *warrant.Warrant {
	w := example()
	w.Params = []warrant.Param{{Name: "KPSSH_A", Matcher: m}}
	return w
}

// TestTypesMeanTheSameToGrep: the EREs of types, likewise.
func TestTypesMeanTheSameToGrep(t *testing.T) {
	p := patterns{rand.New(rand.NewPCG(1, 2))}
	for name, examples := range values() {
		ere, most := warrant.TypeRule(name)
		var list []string
		for _, v := range append(examples.good, examples.bad...) {
			if v == "" || len(v) > most || strings.ContainsAny(v, "\n\r\x00") {
				continue
			}
			list = append(list, v)
			for range 5 {
				if n := p.near(v); n != "" {
					list = append(list, n)
				}
			}
		}
		m := warrant.Matcher{Kind: "type", Value: name}
		for i, byGrep := range matching(t, ere, list) {
			if len(list[i]) <= most && m.Accepts(list[i]) != byGrep {
				t.Errorf("type %s, value %.80q: grep says %v", name, list[i], byGrep)
			}
		}
	}
}

// TestIPIsWhatNetipReads, but for zones and IPv4 inside of IPv6.
func TestIPIsWhatNetipReads(t *testing.T) {
	p := patterns{rand.New(rand.NewPCG(3, 4))}
	m := warrant.Matcher{Kind: "type", Value: "ip"}
	good := 0
	for range 5000 {
		value := ""
		for range 1 + p.IntN(12) {
			value += []string{":", ":", "::", "0", "1", "ab", "ffff", ".", "25", "255", "256"}[p.IntN(11)]
		}
		_, err := netip.ParseAddr(value)
		want := err == nil && !(strings.Contains(value, ":") && strings.Contains(value, "."))
		if want {
			good++
		}
		if m.Accepts(value) != want {
			t.Errorf("%q: netip says %v", value, err)
		}
	}
	if good < 20 {
		t.Errorf("only %d addresses", good)
	}
}
