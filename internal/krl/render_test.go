package krl_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestRenderIsWhatKeygenWrites(t *testing.T) {
	a, b, c := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "sk-ed25519")
	for name, fingerprints := range map[string][]string{
		"nobody":      nil,
		"one":         {a.Fingerprint},
		"two":         {a.Fingerprint, b.Fingerprint},
		"two, turned": {b.Fingerprint, a.Fingerprint},
		"one, twice":  {a.Fingerprint, a.Fingerprint},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ""
			for _, f := range fingerprints {
				spec += "hash: " + f + "\n"
			}
			theirs := keygenWrites(t, "", spec)
			date := parse(t, theirs).Summary().Date
			ours, err := krl.Render(fingerprints, 9, time.Unix(int64(date), 0))
			if err != nil || !bytes.Equal(ours, theirs) {
				t.Errorf("we write\n%x, ssh-keygen writes\n%x, %v", ours, theirs, err)
			}
			compare(t, ours, a.PublicKey(), b.PublicKey(), c.PublicKey())
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	good := testkit.NewSigner(t, "ed25519").Fingerprint
	for name, f := range map[string]string{
		"nothing":        "",
		"no prefix":      strings.TrimPrefix(good, "SHA256:"),
		"another hash":   "MD5:" + strings.TrimPrefix(good, "SHA256:"),
		"a small letter": strings.ToLower(good[:6]) + good[6:],
		"cut short":      good[:len(good)-1],
		"longer":         good + "A",
		"padded":         good + "=",
		"a line break":   good + "\n",
		"a break inside": good[:20] + "\n" + good[20:],
		"a public key":   testkit.NewSigner(t, "ed25519").Line,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := krl.Render([]string{good, f}, 1, testkit.Now())
			wantReason(t, err, decision.Malformed)
		})
	}
}

func TestRenderIsBounded(t *testing.T) {
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, "SHA256:"+fmt.Sprintf("%042d", i)+"A")
		}
		return all
	}
	list, err := krl.Render(many(29000), 1, testkit.Now())
	if err != nil {
		t.Fatal(err)
	}
	parse(t, list)
	_, err = krl.Render(many(29200), 1, testkit.Now())
	wantReason(t, err, decision.TooLarge)
}
