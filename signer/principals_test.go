package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestPrincipalsAreNamesAndPrefixesOnly(t *testing.T) {
	tests := map[string]struct {
		signer   trustpolicy.Signer
		upstream bool
		want     string
	}{
		"everything":           {trustpolicy.Signer{}, false, "install@*,join@*,leave@*,uninstall@*,kpssh"},
		"a scope":              {trustpolicy.Signer{Profiles: []string{"tls-*", "a.b"}, Phases: []script.Phase{"join"}}, false, "join@tls-*,join@a.b"},
		"targets":              {trustpolicy.Signer{Targets: []string{"class a"}}, false, "install@*,join@*,leave@*,uninstall@*"},
		"for upstream's shim":  {trustpolicy.Signer{Profiles: []string{"tls-*"}, Phases: []script.Phase{"join"}}, true, "join@tls-*,kpssh"},
		"a comma":              {trustpolicy.Signer{Profiles: []string{"a,kpssh"}}, false, ""},
		"a space":              {trustpolicy.Signer{Profiles: []string{"a b"}}, false, ""},
		"a quote":              {trustpolicy.Signer{Profiles: []string{`a"`}}, false, ""},
		"a question mark":      {trustpolicy.Signer{Profiles: []string{"a?"}}, false, ""},
		"a negation":           {trustpolicy.Signer{Profiles: []string{"!a"}}, false, ""},
		"a line break":         {trustpolicy.Signer{Profiles: []string{"a\nb"}}, false, ""},
		"nothing":              {trustpolicy.Signer{Profiles: []string{""}}, false, ""},
		"a phase with a comma": {trustpolicy.Signer{Phases: []script.Phase{"join,kpssh"}}, false, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := principalsOf(tt.signer, tt.upstream)
			if diff := cmp.Diff(tt.want, strings.Join(got, ",")); diff != "" {
				t.Errorf("principals:\n%s", diff)
			}
			if tt.want == "" && decision.From(err).Reason != decision.PolicyMalformed {
				t.Errorf("error %v", err)
			}
			if line, lineErr := signerLine(tt.signer, tt.upstream); (lineErr == nil) != (err == nil) || err != nil && line != "" {
				t.Errorf("line %q, %v", line, lineErr)
			}
		})
	}
}

func TestNoMoreSignaturesThanReadersTake(t *testing.T) {
	w := newWorld(t)
	text := []byte("text\n")
	var have []string
	for range quorum.MaxSignatures {
		have = append(have, testkit.Sign(t, testkit.NewSigner(t, "ed25519"), "test", text))
	}
	c := &cli{rand: rand.Reader, now: testkit.Now}
	if all, at, err := c.addSignature("test", text, have[1:], w.alice); err != nil || at != quorum.MaxSignatures-1 || len(all) != quorum.MaxSignatures {
		t.Errorf("the last that fits: %d of %d, %v", at, len(all), err)
	}
	if _, _, err := c.addSignature("test", text, have, w.alice); err == nil || decision.From(err).Reason != decision.SignatureMalformed {
		t.Errorf("one more: %v", err)
	}
	own := testkit.Sign(t, w.alice, "test", text)
	if all, at, err := c.addSignature("test", text, append(have[:15:15], own), w.alice); err != nil || at != 15 || len(all) != 16 {
		t.Errorf("one's own again: %d of %d, %v", at, len(all), err)
	}
}
