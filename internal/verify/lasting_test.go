package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func deleting(o tree) tree {
	return set(set(o, "metadata", "deletionTimestamp", "2026-11-30T11:00:00Z"), "metadata", "finalizers", []string{"example.com/hold"})
}

// Whoever holds a finalizer of an object under deletion ends what is written there without being
// judged: the version would be gone before the ledger has seen it, and the one before could come back.
func TestAVersionInAnObjectUnderDeletionMustBeRemembered(t *testing.T) {
	c := newCourt(t)
	four, five := c.serial(4), c.serial(5)
	old, next := profileTree(four), profileTree(five)
	labelled := set(deleting(old), "metadata", "labels", tree{"a": "b"})
	holds := func(serial int64, digest string) marks {
		return marks{of: map[string]ledger.Mark{"tls": {Serial: serial, Digest: digest}}}
	}
	for name, tt := range map[string]struct {
		known   verify.Ledger
		old     tree
		o       tree
		outcome verify.Outcome
		reason  decision.Reason
	}{
		"the next version":                     {holds(4, four.Digest()), deleting(old), deleting(next), deny, decision.LedgerPending},
		"of which nothing is remembered":       {marks{}, deleting(old), deleting(next), deny, decision.LedgerPending},
		"not under deletion":                   {holds(4, four.Digest()), old, next, allow, decision.Verified},
		"that is remembered":                   {holds(5, five.Digest()), deleting(profileTree(c.author.profile("tls"))), deleting(next), allow, decision.Verified},
		"the same content":                     {holds(3, four.Digest()), deleting(old), labelled, verify.OutcomeExempt, ""},
		"an older one":                         {holds(5, five.Digest()), deleting(next), deleting(old), deny, decision.SerialRollback},
		"without a serial":                     {marks{}, deleting(set(old, "spec", "signatures", nil)), deleting(profileTree(c.author.profile("tls"))), allow, decision.Verified},
		"that is not signed, is its own fault": {marks{}, deleting(old), deleting(set(next, "spec", "signatures", nil)), deny, decision.Unsigned},
		"offline nobody keeps a ledger":        {nil, deleting(old), deleting(next), allow, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.Ledger = tt.known
			a := c.update(tt.old, tt.o)
			wantAnswer(t, a, tt.outcome, tt.reason)
			if tt.reason == decision.LedgerPending && (a.Decision.Where != "metadata.deletionTimestamp" || !strings.Contains(a.Decision.Message(), "create it anew")) {
				t.Errorf("got %s", a.Decision.Message())
			}
		})
	}
	c.warn()
	c.s.Ledger = marks{}
	wantAnswer(t, c.update(deleting(old), deleting(next)), warn, decision.LedgerPending)
}

// A waiver for other content must not be the way around the same rule.
func TestAnExceptionReplacesNoVersionThatIsNotRemembered(t *testing.T) {
	c := newCourt(t)
	five := c.serial(5)
	waived := set(profileTree(five), "spec", "signatures", nil)
	digest, err := object.ContentDigest(encode(t, waived))
	if err != nil {
		t.Fatal(err)
	}
	c.with(fmt.Sprintf("waivers: [{kind: SSHJoinProfile, name: tls, digest: %q, expires: \"2026-12-10T00:00:00Z\", reason: the vendor mends it}]\n", digest))
	remembered := marks{of: map[string]ledger.Mark{"tls": {Serial: 5, Digest: five.Digest()}}}
	foreign := author{testkit.NewSigner(t, "ed25519"), t, true}
	for name, tt := range map[string]struct {
		known  verify.Ledger
		old    tree
		reason decision.Reason
	}{
		"not remembered":             {marks{}, profileTree(five), decision.LedgerPending},
		"an older one is remembered": {marks{of: map[string]ledger.Mark{"tls": {Serial: 4}}}, profileTree(five), decision.LedgerPending},
		"remembered":                 {remembered, profileTree(five), decision.Waived},
		"signed by nobody we know":   {marks{}, profileTree(newVersion().signed(foreign)), decision.Waived},
		"without a serial":           {marks{}, profileTree(c.author.profile("tls")), decision.Waived},
		"offline":                    {nil, profileTree(five), decision.Waived},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.Ledger = tt.known
			outcome := waive
			if tt.reason == decision.LedgerPending {
				outcome = deny
			}
			wantAnswer(t, c.update(tt.old, waived), outcome, tt.reason)
		})
	}
	c.s.Ledger = marks{}
	wantAnswer(t, c.create(waived), waive, decision.Waived)
}
