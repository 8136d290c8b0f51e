package allowedsigners_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const (
	seedVariable  = "HOSTWARRANT_SEED"
	casesVariable = "HOSTWARRANT_CASES"
)

// TestDifferential puts generated verifications to our code and to ssh-keygen. We never accept what
// it refuses. Where it accepts what we refuse, our reason must be of a class that docs/divergences.md
// lists, and the case must have been made odd in just that way: a refusal that nobody asked for fails.
func TestDifferential(t *testing.T) {
	testkit.Tool(t, "ssh-keygen")
	seed, count := rand.Uint64(), 5200
	if testing.Short() {
		count = 120
	}
	seed, count = setting(t, seedVariable, seed), int(setting(t, casesVariable, uint64(count)))
	t.Logf("%d cases from seed %d; again with %s=%d", count, seed, seedVariable, seed)

	maker := newMaker(t)
	var results tally
	var wait sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wait.Go(func() {
			for n := range next {
				results.add(t, n, maker.make(rand.New(rand.NewPCG(seed, uint64(n)))))
			}
		})
	}
	for n := range count {
		next <- n
	}
	close(next)
	wait.Wait()
	results.report(t, count)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// tally counts what came of the cases.
type tally struct {
	sync.Mutex
	both, neither int
	diverged      map[string]int
	odd           map[string]int // how many cases were made odd in each way
}

func (r *tally) add(t *testing.T, n int, c oddCase) {
	stage, err := c.stage()
	theirs := c.keygen(t)
	r.Lock()
	defer r.Unlock()
	if r.diverged == nil {
		r.diverged, r.odd = map[string]int{}, map[string]int{}
	}
	for name := range c.odd {
		r.odd[name]++
	}
	switch {
	case err == nil && theirs:
		r.both++
	case err != nil && !theirs:
		r.neither++
	case err == nil:
		t.Errorf("case %d: we accept what ssh-keygen refuses\n%s", n, c.describe())
	default:
		name := class(stage, err)
		r.diverged[name]++
		if name == "" || !c.odd[name] && !c.odd[anything] {
			t.Errorf("case %d: ssh-keygen accepts and we refuse: class %q, %s: %v\n%s", n, name, stage, err, c.describe())
		}
	}
}

func (r *tally) report(t *testing.T, count int) {
	diverged := 0
	for _, name := range slices.Sorted(maps.Keys(r.odd)) {
		diverged += r.diverged[name]
		t.Logf("%-28s %5d cases made so, %5d refused by us alone", name, r.odd[name], r.diverged[name])
	}
	t.Logf("%d accepted by both, %d refused by both, %d by us alone", r.both, r.neither, diverged)
	if r.both*5 < count {
		t.Errorf("only %d of %d cases are accepted by both: the cases say little", r.both, count)
	}
}

func (c oddCase) describe() string {
	return fmt.Sprintf("made odd by %q\n-I %q -n %q at %s\nallowed_signers:\n%s\nrevoked: %q\nsignature:\n%s",
		slices.Sorted(maps.Keys(c.odd)), c.identity, c.namespace, c.now.UTC(), c.list, c.revoked, c.signature)
}

// anything is for cases with bytes changed at random: they may be of any class.
const anything = "random-bytes"

// classes are the ways in which we are stricter than ssh-keygen. Each has its row in docs/divergences.md.
func classes() []struct{ name, stage, words string } {
	return []struct{ name, stage, words string }{
		{"armor", atSignature, "armor is not canonical"},
		{"armor", atSignature, "does not begin with the line"},
		{"armor", atSignature, "has no line"},
		{"armor", atSignature, "is not base64"},
		{"armor", atSignature, "signatures where one is wanted"},
		{"version", atSignature, "signature has version"},
		{"reserved", atSignature, "reserved field"},
		{"value-padding", atSignature, "signature value is not in the canonical form"},
		{"rsa-size", atSignature, "RSA key of"},
		{"certificate-encoding", atSignature, "certificate of type"},
		{"key-encoding", atSignature, "public key of type"},
		{"namespace-nul", atVerify, "signature is for namespace"},
		{"untouched", atVerify, "was not touched"},
		{"ed25519-s", atVerify, "does not match these bytes"},
		{"certificate-options", atVerify, "critical options"},
		{"certificate-end", atVerify, "has no end"},
		{"certificate-authority", atVerify, "RSA key of"},
		{"certificate-authority", atVerify, "signature algorithm"},
		{"certificate-authority", atVerify, "is not signed by its authority"},
		{"list-time", atList, "is not a time of UTC"},
		{"list-key", atList, "may not sign"},
		{"list-line", atList, ""},
		{"revoked-line", atRevoked, "line"},
		{"revoked-line", atRevoked, "public key"},
		{"krl-header", atRevoked, "KRL has format"},
		{"krl-section", atRevoked, "KRL"},
	}
}

func class(stage string, err *decision.Error) string {
	for _, c := range classes() {
		if c.stage == stage && strings.Contains(err.What, c.words) {
			return c.name
		}
	}
	return ""
}

func TestEachClassIsListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "divergences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range classes() {
		if !strings.Contains(string(page), "| `"+c.name+"` |") {
			t.Errorf("docs/divergences.md has no row `%s`", c.name)
		}
	}
}
