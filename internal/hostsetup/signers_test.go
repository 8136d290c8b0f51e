package hostsetup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
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

// What hosts with the other shim do not hold is told as it is rendered, and not where hosts hold it.
func TestThresholdsThatUpstreamsShimDoesNotHoldAreNamed(t *testing.T) {
	w := newWorld(t)
	p := w.policy(t)
	p.Thresholds[script.Join] = 2
	for upstream, want := range map[bool]string{true: "warning: join needs 2 signers: karpenter-provider-ssh's shim is content with one", false: ""} {
		_, notes, err := AllowedSigners(p, testkit.Now(), Place{Class: "small", Cluster: "prod-1", ForUpstreamShim: upstream})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, n := range notes {
			if n.Level == "warning" {
				said += n.Level + ": " + n.Text
			}
		}
		if said != want {
			t.Errorf("for upstream's shim %v: %q", upstream, said)
		}
	}
}
