package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Patterns that take long, and many node classes that give values for them, must not keep a profile's
// honest next version from being judged in time.
func TestManyNodeClassesWithManyVarsCostLittle(t *testing.T) {
	const classes, each = 500, 60
	c := newCourt(t)
	var params []string
	vars := map[string]string{}
	for i := range each {
		params = append(params, fmt.Sprintf("KPSSH_VAR_v%d optional re [a-z0-9]{255}[a-z0-9.]{1,255}", i))
		vars[fmt.Sprintf("v%d", i)] = strings.Repeat("a", 300)
	}
	for i := range classes {
		c.held.Classes = append(c.held.Classes, &object.NodeClass{Meta: object.Meta{Name: fmt.Sprint("class-", i)}, Profile: "tls", Vars: vars})
	}
	p := c.declaring(params...)
	began := time.Now()
	a := c.create(profileTree(p))
	took := time.Since(began)
	t.Logf("%d classes of %d vars took %s", classes, each, took)
	wantAnswer(t, a, allow, decision.Verified)
	want := []string{"435 node classes have too many vars to be held against this version here; they are judged once it is stored"}
	if got := slices.DeleteFunc(a.Decision.Warnings, func(w string) bool { return !strings.Contains(w, "node classes") }); !slices.Equal(got, want) {
		t.Errorf("warnings %q", got)
	}
	if took > 20*time.Second { // far above: with a pattern compiled for each value it was minutes
		t.Errorf("took %s", took)
	}
	t.Run("each of them judged", func(t *testing.T) {
		c.held.Profiles = map[string]*verify.ProfileFacts{"tls": verify.FactsOf(p), "web": verify.FactsOf(c.declaring("KPSSH_VAR_v0 optional type ip"))}
		c.s.Recent = &verify.Recent{}
		began := time.Now()
		for _, class := range c.held.Classes {
			if d := verify.NodeClass(c.s, class); !d.Allowed() {
				t.Fatal(d.Message())
			}
		}
		took := time.Since(began)
		t.Logf("took %s", took)
		if took > 30*time.Second {
			t.Errorf("took %s", took)
		}
		other := &object.NodeClass{Meta: object.Meta{Name: "other"}, Profile: "web", Vars: vars}
		for range 2 { // what is kept is of the profile that is asked about
			if d := verify.NodeClass(c.s, other); d.Reason != decision.ParamInvalid {
				t.Error(d.Message())
			}
			if d := verify.NodeClass(c.s, c.held.Classes[0]); !d.Allowed() {
				t.Error(d.Message())
			}
		}
	})
}
