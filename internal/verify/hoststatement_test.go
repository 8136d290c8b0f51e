package verify_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const nobody = "SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"

// said is a HostStatement of the test's cluster, prod-1, that the given keys signed.
func said(t *testing.T, name string, kind statement.Kind, serial int, place, body string, by ...testkit.Signer) *object.HostStatement {
	t.Helper()
	text := fmt.Sprintf("hostwarrant-statement: v1 %s\nserial %d\nissued %d\n%s%send\n", kind, serial, testkit.Now().Add(-time.Hour).Unix(), place, body)
	h := &object.HostStatement{Meta: object.Meta{APIVersion: "hostwarrant.dev/v1alpha1", Kind: object.KindHostStatement, Name: name}, Statement: text}
	for _, key := range by {
		signature, err := sshsig.Sign(rand.Reader, key.Signer, statement.Namespace, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		h.Signatures = append(h.Signatures, string(signature))
	}
	return h
}

const here = "cluster prod-1\n"

func (c *court) revoke(name string, serial int, place string) *object.HostStatement {
	return said(c.t, name, statement.KindRevoke, serial, place, "revoke "+nobody+"\n", c.root)
}

func (c *court) link(name string, version int, next testkit.Signer, by ...testkit.Signer) *object.HostStatement {
	return said(c.t, name, statement.KindRoots, version, here, "threshold 1\nkey "+next.Line+"\n", by...)
}

func statementTree(h *object.HostStatement) tree {
	return tree{
		"apiVersion": object.GroupHostwarrant + "/v1alpha1", "kind": object.KindHostStatement, "metadata": tree{"name": h.Name},
		"spec": tree{"statement": h.Statement, "signatures": h.Signatures},
	}
}

// writes judges the creation of h, or its update where old is given.
func (c *court) writes(h, old *object.HostStatement) decision.Decision {
	c.t.Helper()
	r := verify.Request{Operation: verify.Create, Kind: object.KindHostStatement, Name: h.Name, Object: encode(c.t, statementTree(h))}
	if old != nil {
		r.Operation, r.Old = verify.Update, encode(c.t, statementTree(old))
	}
	return verify.Admission(c.s, r).Decision
}

func (c *court) deletes(h *object.HostStatement) decision.Decision {
	c.t.Helper()
	return verify.Admission(c.s, verify.Request{Operation: verify.Delete, Kind: object.KindHostStatement, Name: h.Name, Old: encode(c.t, statementTree(h))}).Decision
}

func statementCourt(t *testing.T) *court {
	t.Helper()
	c := newCourt(t)
	c.s.ClusterID = "prod-1"
	return c
}

func TestHostStatementIsTheRootsWordForThisCluster(t *testing.T) {
	c := statementCourt(t)
	stranger := testkit.NewSigner(t, "ed25519")
	changed := c.revoke("r", 1, here)
	changed.Statement = strings.Replace(changed.Statement, "serial 1", "serial 9", 1)
	future := c.revoke("r", 1, here)
	cases := map[string]struct {
		h    *object.HostStatement
		want decision.Reason
	}{
		"for the cluster":              {c.revoke("r", 1, here), decision.Verified},
		"for a class of it":            {c.revoke("r", 1, here+"target class bm\n"), decision.Verified},
		"for any":                      {c.revoke("r", 1, "target any\n"), decision.Verified},
		"for another cluster":          {c.revoke("r", 1, "cluster prod-2\n"), decision.TargetRefused},
		"by a signer of scripts":       {said(t, "r", statement.KindRevoke, 1, here, "revoke "+nobody+"\n", c.signer), decision.ThresholdNotMet},
		"by nobody known":              {said(t, "r", statement.KindRevoke, 1, here, "revoke "+nobody+"\n", stranger), decision.ThresholdNotMet},
		"changed after it was signed":  {changed, decision.SignatureInvalid},
		"no statement":                 {&object.HostStatement{Meta: future.Meta, Statement: "revoke\n", Signatures: future.Signatures}, decision.StatementRejected},
		"the next roots":               {c.link("r", 2, stranger, c.root, stranger), decision.Verified},
		"roots without their own word": {c.link("r", 2, stranger, c.root), decision.ThresholdNotMet},
		"roots without the old ones":   {c.link("r", 2, stranger, stranger), decision.ThresholdNotMet},
		"roots with a link left out":   {c.link("r", 3, stranger, c.root, stranger), decision.StatementRejected},
		"other roots of the anchor's":  {c.link("r", 1, stranger, c.root, stranger), decision.RootFork},
		"roots for a class": {
			said(t, "r", statement.KindRoots, 2, here+"target class bm\n", "threshold 1\nkey "+stranger.Line+"\n", c.root, stranger), decision.TargetRefused,
		},
		"roots for any": {said(t, "r", statement.KindRoots, 2, "target any\n", "threshold 1\nkey "+stranger.Line+"\n", c.root, stranger), decision.Verified},
	}
	for what, test := range cases {
		t.Run(what, func(t *testing.T) {
			d := c.writes(test.h, nil)
			if d.Reason != test.want || d.Allowed() != (test.want == decision.Verified) {
				t.Fatalf("%v %s, want %s", d.Outcome, d.Message(), test.want)
			}
			if !d.Allowed() && d.Hint == "" {
				t.Errorf("%q has no hint", d.Message())
			}
		})
	}
	c.s.Now = testkit.Now().Add(-26 * time.Hour)
	if d := c.writes(future, nil); d.Reason != decision.NotYetValid {
		t.Errorf("issued more than a day ahead: %s", d.Message())
	}
	c.s = verify.Snapshot{Now: testkit.Now(), Stored: c.held, ClusterID: "prod-1"}
	if d := c.writes(future, nil); d.Reason != decision.PolicyUnavailable {
		t.Errorf("without a policy: %s", d.Message())
	}
}

func TestHostStatementSerialsOnlyRise(t *testing.T) {
	c := statementCourt(t)
	stranger := testkit.NewSigner(t, "ed25519")
	stored := c.revoke("five", 5, here)
	// Nobody vouches for it, so that its number counts for nothing.
	junk := said(t, "junk", statement.KindRevoke, 999, here, "revoke "+nobody+"\n", stranger)
	c.held.Statements = []*object.HostStatement{stored, junk}
	floor := said(t, "floor", statement.KindFloor, 1, here, "floor tls 1\n", c.root)
	twin := *stored
	twin.Name = "twin"
	for what, test := range map[string]struct {
		h, old *object.HostStatement
		want   decision.Reason
	}{
		"higher":                               {c.revoke("six", 6, here), nil, decision.Verified},
		"lower":                                {c.revoke("four", 4, here), nil, decision.SerialRollback},
		"lower, for a class":                   {c.revoke("four", 4, here+"target class bm\n"), nil, decision.SerialRollback},
		"equal with other bytes":               {c.revoke("other", 5, "target any\n"), nil, decision.SerialReused},
		"equal with the same bytes":            {&twin, nil, decision.Verified},
		"another kind":                         {floor, nil, decision.Verified},
		"the next in its own place":            {c.revoke("five", 6, here), stored, decision.Verified},
		"an older one in its place":            {c.revoke("five", 4, here), stored, decision.InUse},
		"another one in its place":             {c.revoke("five", 5, "target any\n"), stored, decision.InUse},
		"the next for fewer hosts in place":    {c.revoke("five", 6, here+"target class bm\n"), stored, decision.InUse},
		"another kind in its place":            {said(t, "five", statement.KindFloor, 9, here, "floor tls 1\n", c.root), stored, decision.InUse},
		"anything in place of what is no word": {c.revoke("junk", 6, here), junk, decision.Verified},
	} {
		t.Run(what, func(t *testing.T) {
			if d := c.writes(test.h, test.old); d.Reason != test.want || d.Allowed() != (test.want == decision.Verified) {
				t.Fatalf("%v %s, want %s", d.Outcome, d.Message(), test.want)
			}
		})
	}
	for n := range verify.MaxStatements {
		c.held.Statements = append(c.held.Statements, said(t, fmt.Sprintf("s-%d", n), statement.KindFloor, n+1, here, "floor tls 1\n", c.root))
	}
	if d := c.writes(c.revoke("six", 6, here), nil); d.Reason != decision.TooLarge {
		t.Errorf("one more than may be: %s", d.Message())
	}
}

func TestHostStatementGoesOnlyWhenSuperseded(t *testing.T) {
	c := statementCourt(t)
	second, third := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	four, five := c.revoke("four", 4, here), c.revoke("five", 5, here)
	class := c.revoke("class", 3, here+"target class bm\n")
	narrow := said(t, "narrow", statement.KindFloor, 1, here+"target class bm\n", "floor tls 1\n", c.root)
	narrower := said(t, "narrower", statement.KindFloor, 2, here+"target class gpu\n", "floor tls 1\n", c.root)
	junk := said(t, "junk", statement.KindRevoke, 999, here, "revoke "+nobody+"\n", second)
	c.held.Statements = []*object.HostStatement{four, five, class, narrow, narrower, junk}
	for what, test := range map[string]struct {
		h    *object.HostStatement
		want decision.Reason
	}{
		"superseded":                     {four, decision.Verified},
		"superseded for every class":     {class, decision.Verified},
		"the newest":                     {five, decision.InUse},
		"the newest for a class":         {narrow, decision.InUse},
		"what nobody vouches for":        {junk, decision.Verified},
		"the newest, by a longer number": {c.revoke("eleven", 11, here), decision.InUse},
	} {
		t.Run(what, func(t *testing.T) {
			if d := c.deletes(test.h); d.Reason != test.want || d.Allowed() != (test.want == decision.Verified) {
				t.Fatalf("%v %s, want %s", d.Outcome, d.Message(), test.want)
			}
		})
	}
	two, three := c.link("two", 2, second, c.root, second), c.link("three", 3, third, second, third)
	c.held.Statements = []*object.HostStatement{three, two}
	if d := c.deletes(two); d.Reason != decision.InUse {
		t.Errorf("a link that hosts that were away need: %s", d.Message())
	}
	if d := c.deletes(three); d.Reason != decision.InUse {
		t.Errorf("the last link: %s", d.Message())
	}
	c.policy(testkit.PolicyDocument(c.signer))
	c.s.Policy = nil
	if d := c.deletes(four); d.Reason != decision.PolicyUnavailable {
		t.Errorf("without a policy: %s", d.Message())
	}
}

func names(words []verify.Word) string {
	var all []string
	for _, w := range words {
		all = append(all, w.Name)
	}
	return strings.Join(all, " ")
}

func TestWordsForAHost(t *testing.T) {
	c := statementCourt(t)
	second, third, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	by := func(key testkit.Signer, name string, serial int, place string) *object.HostStatement {
		return said(t, name, statement.KindRevoke, serial, place, "revoke "+nobody+"\n", key)
	}
	all := []*object.HostStatement{
		by(third, "r9", 9, here), by(third, "r10", 10, here+"target class bm\n"), by(third, "r11", 11, here+"target class gpu\n"), by(third, "r8", 8, here),
		said(t, "h1", statement.KindReset, 1, here+"target host "+nobody+"\n", "profile tls\nmark 4\nsha256 join "+strings.Repeat("0a", 32)+"\n", third),
		by(second, "old-roots", 99, here), by(c.root, "first-roots", 98, here), by(stranger, "nobody", 97, here),
		c.link("three", 3, third, second, third), c.link("two", 2, second, c.root, second), c.link("two-again", 2, second, c.root, second),
		c.link("fork", 2, third, c.root, third), c.link("five", 5, second, third, second),
	}
	w, err := verify.NewWords(c.s, all)
	if err != nil {
		t.Fatal(err)
	}
	// Of a fork the first by name is followed; admission lets no second one in.
	if w.Refused["two"].Reason != decision.RootFork || w.Refused["two-again"].Reason != decision.RootFork {
		t.Errorf("a fork: %v", w.Refused)
	}
	all = slices.DeleteFunc(all, func(h *object.HostStatement) bool { return h.Name == "fork" })
	slices.Reverse(all) // their order does not matter
	w, err = verify.NewWords(c.s, all)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]decision.Reason{}
	for name, d := range w.Refused {
		refused[name] = d.Reason
	}
	if diff := cmp.Diff(map[string]decision.Reason{
		"old-roots": decision.ThresholdNotMet, "first-roots": decision.ThresholdNotMet, "nobody": decision.ThresholdNotMet, "five": decision.StatementRejected,
	}, refused); diff != "" {
		t.Error(diff)
	}
	for what, test := range map[string]struct {
		place verify.Place
		want  string
	}{
		"of a class":           {verify.Place{Class: "bm"}, "two three r10"},
		"of another":           {verify.Place{Class: "gpu"}, "two three r11"},
		"of a third":           {verify.Place{Class: "default"}, "two three r9"},
		"by its key":           {verify.Place{Class: "bm", Keys: []string{nobody}}, "two three r10 h1"},
		"by a key not known":   {verify.Place{Class: "bm", AnyKey: true}, "two three r10 h1"},
		"with another key":     {verify.Place{Class: "bm", Keys: []string{second.Fingerprint}}, "two three r10"},
		"without any property": {verify.Place{}, "two three r9"},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(w.For(test.place))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
