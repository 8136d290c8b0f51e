package fragment_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// cases runs a test on many cases of chance. HOSTWARRANT_SEED repeats a run, HOSTWARRANT_CASES
// sets how many documents are hashed; a case that signs counts for more, and there are fewer.
func cases(t *testing.T, weight int, try func(t *testing.T, m maker)) {
	t.Helper()
	setting := func(name string, otherwise uint64) uint64 {
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
	seed, count := setting("HOSTWARRANT_SEED", rand.Uint64()), int(setting("HOSTWARRANT_CASES", 20000))/weight
	t.Logf("%d cases; again with HOSTWARRANT_SEED=%d", count, seed)
	for n := range count {
		if try(t, maker{rand.New(rand.NewPCG(seed, uint64(n)))}); t.Failed() {
			t.Fatalf("case %d", n)
		}
	}
}

// The canonical hash and a second implementation of it agree on any document, and on what is none.
func TestHashAgreesWithTheSecondImplementation(t *testing.T) {
	hashed, refused := 0, 0
	cases(t, 1, func(t *testing.T, m maker) {
		document := m.document(1 + m.IntN(4))
		for range m.IntN(3) / 2 {
			document = m.harm(document)
		}
		want := ""
		if tree, err := readJSON(document); err == nil {
			want, err = oracleHash(tree, "")
			if err != nil {
				want = ""
			}
		}
		got, err := fragment.Digest([]byte(document))
		if got != want && (err == nil || want != "") {
			t.Errorf("%q: %s (%v), the second implementation %s", document, got, err, want)
		}
		if want == "" {
			refused++
			testkit.WantReason(t, err, decision.Malformed)
		} else {
			hashed++
		}
	})
	if hashed < refused || refused == 0 {
		t.Errorf("%d documents with a hash, %d without: the cases are lopsided", hashed, refused)
	}
}

// What we sign, a second implementation verifies: with the same content, digest and signer.
func TestSignedObjectsVerifyWithTheSecondImplementation(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	cases(t, 40, func(t *testing.T, m maker) {
		carrier := m.carrier()
		tree, err := readJSON(carrier)
		if err != nil {
			t.Fatalf("%s: %v", carrier, err)
		}
		o, err := fragment.Parse([]byte(carrier))
		if err != nil {
			t.Fatalf("%s: %v", carrier, err)
		}
		content, err := fragment.Content(o)
		want, oracleErr := oracleOf(tree)
		if err != nil || oracleErr != nil || string(content) != want {
			t.Fatalf("%s:\nours  %s (%v)\ntheirs %s (%v)", carrier, content, err, want, oracleErr)
		}
		signed := signer.Sign(t, carrier, m.IntN(2) == 0)
		if !agree(t, signed) {
			t.Errorf("neither verifies: %s", signed)
		}
	})
}

// oracleOf is the content of a carrier by the second implementation.
func oracleOf(tree any) (string, error) {
	o := as[record](tree)
	spec, _ := o.get("spec")
	metadata := o.of("metadata")
	kind, _ := o.get("kind")
	name, _ := metadata.get("name")
	return oracleContent(as[string](kind), as[string](name), metadata.of("labels"), spec)
}

// agree reports whether both implementations verify an object; where they differ the test fails.
func agree(t *testing.T, signed []byte) bool {
	t.Helper()
	var f *fragment.Fragment
	o, err := fragment.Parse(signed)
	if err == nil {
		f, err = fragment.Verify(o)
	}
	digest, signer, oracleErr := oracleVerify(signed)
	if (err == nil) != (oracleErr == nil) {
		t.Errorf("ours: %v, the second implementation: %v\n%s", err, oracleErr, signed)
	}
	if err == nil && oracleErr == nil && (f.Digest != digest || f.Signer != signer) {
		t.Errorf("%s %s, the second implementation %s %s", f.Digest, f.Signer, digest, signer)
	}
	return err == nil && oracleErr == nil
}

// Content that was changed and signed so is taken by both implementations, or by neither.
func TestChangedContentIsReadAsTheSecondImplementationReadsIt(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	taken, refused := 0, 0
	cases(t, 20, func(t *testing.T, m maker) {
		carrier := m.carrier()
		o, err := fragment.Parse([]byte(carrier))
		if err != nil {
			t.Fatal(err)
		}
		content, err := fragment.Content(o)
		if err != nil {
			t.Fatal(err)
		}
		changed := string(content)
		for range 8 {
			if _, err := fragment.Digest([]byte(changed)); err == nil && changed != string(content) {
				break
			}
			changed = m.change(string(content))
		}
		if _, err := fragment.Digest([]byte(changed)); err != nil {
			return // cannot be signed
		}
		if agree(t, testkit.Annotate(t, []byte(carrier), signer.Annotations(t, []byte(changed), true))) {
			taken++
			return
		}
		refused++
	})
	t.Logf("%d taken, %d refused", taken, refused)
	if taken < 20 || refused < 20 {
		t.Errorf("%d taken, %d refused: the cases are lopsided", taken, refused)
	}
}

// change puts another value, spelling or field somewhere into content.
func (m maker) change(content string) string {
	var at []int // behind a colon, a comma or a bracket
	for i := range len(content) {
		if strings.IndexByte(":,[{", content[i]) >= 0 {
			at = append(at, i+1)
		}
	}
	i := at[m.IntN(len(at))]
	head, tail := content[:i], content[i:]
	replace := func(old, new string) string {
		if rest, ok := strings.CutPrefix(tail, old); ok {
			return head + new + rest
		}
		return content
	}
	switch m.IntN(10) {
	case 0:
		return m.harm(content)
	case 1:
		return head + pick(m, `"args":["x"],`, `"x":null,`, `"spec":{},`, `"Execs":null,`, `"labels":null,`, `"name":"n",`) + tail
	case 2:
		return replace("null", pick(m, `"null"`, "[]", "{}", `""`, "0"))
	case 3:
		return replace("[]", pick(m, "{}", `""`, "null", "[null]"))
	case 4:
		return replace("{}", pick(m, "[]", `""`, "null"))
	case 5:
		return replace("0", pick(m, "-0", "0.0", "0e1", "1", `""`))
	case 6:
		return replace(`"a"`, pick(m, `"\u0061"`, `"b"`, "null", `["a"]`))
	case 7:
		return head + pick(m, " ", "\n") + tail
	case 8:
		return replace(`"`, `"\u0061`)
	default:
		return content
	}
}

// FuzzDigest holds any document against the second implementation.
func FuzzDigest(f *testing.F) {
	f.Add([]byte(`{"a":null,"b":[1,"x"],"c":{},"status":{"conditions":1}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		tree, err := readJSON(string(document))
		want := ""
		if err == nil {
			want, err = oracleHash(tree, "")
		}
		got, ourErr := fragment.Digest(document)
		if (err == nil) != (ourErr == nil) || err == nil && got != want {
			t.Errorf("%s (%v), the second implementation %s (%v)", got, ourErr, want, err)
		}
	})
}

// FuzzContent holds any content, signed as it is, against the second implementation.
func FuzzContent(f *testing.F) {
	signer := testkit.NewFragmentSigner(f)
	const carrier = `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"n"},"spec":{}}`
	o, err := fragment.Parse([]byte(carrier))
	if err != nil {
		f.Fatal(err)
	}
	content, err := fragment.Content(o)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := fragment.Digest(content); err != nil {
			return
		}
		agree(t, testkit.Annotate(t, []byte(carrier), signer.Annotations(t, content, true)))
	})
}
