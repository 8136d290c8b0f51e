//go:build linux

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// A new signer takes over. The host that was told nothing goes on with the old one until a
// relay comes by, which brings the news before the run, in the same connection.
func TestSignerRotation(t *testing.T) {
	f := newFleet(t)
	next := key(t)
	f.serves(t, f.all(), f.signer, 0)
	f.serves(t, f.all(), next, 2)

	both, only := f.signers(t, 1, f.signer, next), f.signers(t, 2, next)
	told(t, []host{f.a, f.b}, "Applied", both)
	f.serves(t, []host{f.a, f.b}, f.signer, 0)
	f.serves(t, []host{f.a, f.b}, next, 0)
	told(t, []host{f.a, f.b}, "Applied", only)
	f.serves(t, []host{f.a, f.b}, f.signer, 2)
	f.serves(t, []host{f.a, f.b}, next, 0)
	f.serves(t, []host{f.c}, f.signer, 0) // not told yet

	r := run(t, f.c, order(t, f.leave(t, 1, ""), f.signer), only)
	if words(r.Statements) != "Applied" || r.ShimExit != 2 {
		t.Fatalf("told in the same connection, a run by the old signer: %s, exit %d: %s", words(r.Statements), r.ShimExit, r.Transcript)
	}
	r = run(t, f.c, order(t, f.leave(t, 1, ""), next), only)
	if words(r.Statements) != "Applied" || r.ShimExit != 0 {
		t.Fatalf("told again, a run by the new signer: %s, exit %d: %s", words(r.Statements), r.ShimExit, r.Transcript)
	}
	told(t, []host{f.a}, "SerialRefused", both)
	f.serves(t, f.all(), f.signer, 2)
	knows(t, f.all(), "signers 2")
}

func TestRevocationOfOneAndOfTheLastSigner(t *testing.T) {
	f := newFleet(t)
	second, third := key(t), key(t)
	told(t, f.all(), "Applied", f.signers(t, 1, f.signer, second))
	f.serves(t, f.all(), f.signer, 0)
	f.serves(t, f.all(), second, 0)

	told(t, f.all(), "Applied", f.revoke(t, 1, f.signer))
	f.serves(t, f.all(), f.signer, 13)
	f.serves(t, f.all(), second, 0)

	told(t, f.all(), "Applied", f.revoke(t, 2, f.signer, second))
	f.serves(t, f.all(), f.signer, 13)
	f.serves(t, f.all(), second, 13)
	told(t, f.all(), "Applied", f.signers(t, 2, second)) // listing one does not bring it back
	f.serves(t, f.all(), second, 13)
	f.serves(t, f.all(), third, 2)

	told(t, []host{f.a}, "SerialRefused", f.revoke(t, 1, f.signer)) // the older set, which would free the second
	f.serves(t, []host{f.a}, second, 13)
	told(t, f.all(), "Applied", f.signers(t, 3, third))
	f.serves(t, f.all(), third, 0)
	f.serves(t, f.all(), second, 2) // no longer one whose revocation matters
	knows(t, f.all(), "signers 3", "revoke 2")
}

// One host hears of each rotation, one of the first only, one of none. All are at the third
// generation after one more connection, and none obeys the first any more.
func TestTwoRootRotationsMissedAndCaughtUp(t *testing.T) {
	f := newFleet(t)
	r1, r2, r3, r4 := f.roots[0], f.roots[1], key(t), key(t)
	second, third := []testkit.Signer{r2, r3}, []testkit.Signer{r3, r4}
	link2 := successors(t, 2, second, r1, r2, r3)
	link3 := successors(t, 3, third, r2, r3, r4)
	told(t, []host{f.a, f.b}, "Applied", link2)
	told(t, []host{f.a}, "Superseded Applied", link2, link3)

	for what, bad := range map[string]statement.Signed{
		"a link that is left out":             link3,
		"a link without its own roots":        successors(t, 2, second, r1, r2),
		"a link without the roots before":     successors(t, 2, []testkit.Signer{r3, r4}, r3, r4),
		"a link by one of the roots before":   successors(t, 2, second, r2, r3),
		"a link of keys that nobody here has": successors(t, 2, []testkit.Signer{key(t)}, r1, r2),
	} {
		if got := tell(t, f.c, bad); got != "StatementRejected" {
			t.Errorf("%s: %s, want StatementRejected", what, got)
		}
	}

	revoke := sign(t, head(statement.KindRevoke, 1), "revoke "+f.signer.Fingerprint+"\n", third...)
	told(t, []host{f.a, f.b}, "Superseded Applied Applied", link2, link3, revoke)
	told(t, []host{f.c}, "Applied Applied Applied", link2, link3, revoke)
	f.serves(t, f.all(), f.signer, 13)
	knows(t, f.all(), "roots 3", "revoke 1")
	told(t, f.all(), "StatementRejected", f.revoke(t, 2, f.signer)) // by the first generation
	told(t, f.all(), "StatementRejected", sign(t, head(statement.KindRevoke, 2), "revoke "+f.signer.Fingerprint+"\n", second...))
	told(t, f.all(), "Superseded Applied", link2, link3)
}

func TestFloor(t *testing.T) {
	f := newFleet(t)
	floor := func(serial int, lines string) statement.Signed {
		return sign(t, head(statement.KindFloor, serial), lines, f.roots...)
	}
	ends(t, f.all(), f.leave(t, 4, ""), f.signer, 0)
	told(t, f.all(), "Applied", floor(1, "floor "+profile+" 6\n"))
	ends(t, f.all(), f.leave(t, 5, ""), f.signer, 20)
	ends(t, f.all(), f.leave(t, 6, ""), f.signer, 0)
	told(t, f.all(), "Applied", floor(2, "floor tls-* 8\nfloor "+profile+" 2\n")) // the highest that matches counts
	ends(t, f.all(), f.leave(t, 7, ""), f.signer, 20)
	told(t, f.all(), "Applied", floor(3, "floor "+profile+" 1\n"))
	ends(t, f.all(), f.leave(t, 5, ""), f.signer, 20) // the mark is not lowered
	ends(t, f.all(), f.leave(t, 6, ""), f.signer, 0)
	ends(t, f.all(), f.leave(t, 7, ""), f.signer, 0)
	knows(t, f.all(), "floor 3")
}

// A version that must not stay is taken back to the one before, once.
func TestReset(t *testing.T) {
	f := newFleet(t)
	good, bad := f.leave(t, 40, "well"), f.leave(t, 41, "badly")
	ends(t, f.all(), good, f.signer, 0)
	ends(t, f.all(), bad, f.signer, 0)
	ends(t, f.all(), good, f.signer, 20)
	reset := sign(t, head(statement.KindReset, 1), "profile "+profile+"\nmark 40\nsha256 leave "+digest(good)+"\n", f.roots...)
	told(t, f.all(), "Applied", reset)
	ends(t, f.all(), f.leave(t, 40, "otherwise"), f.signer, 21)
	ends(t, f.all(), good, f.signer, 0)

	ends(t, f.all(), f.leave(t, 42, ""), f.signer, 0)
	told(t, f.all(), "Applied", reset) // known already: nothing is applied
	ends(t, f.all(), good, f.signer, 20)
	ends(t, f.all(), bad, f.signer, 20)
	knows(t, f.all(), "reset 1")
}

// What is no word of the roots for this host changes nothing on it.
func TestRefusedStatementsChangeNothing(t *testing.T) {
	f := newFleet(t)
	at := func(issued time.Time, place string) string {
		return fmt.Sprintf("hostwarrant-statement: v1 revoke\nserial 2\nissued %d\n%s\n", issued.Unix(), place)
	}
	body, now := "revoke "+f.signer.Fingerprint+"\n", time.Now().Add(-time.Minute)
	first := f.revoke(t, 1, key(t))
	told(t, []host{f.a}, "Applied", first)
	// more in one connection than sshd lets sessions stand open in it
	told(t, []host{f.a}, strings.Join(slices.Repeat([]string{"Applied"}, 24), " "), slices.Repeat([]statement.Signed{first}, 24)...)
	cases := map[string]struct {
		s    statement.Signed
		want delivery.Result
	}{
		"by a signer of scripts":         {sign(t, at(now, "cluster prod-1"), body, f.signer), delivery.StatementRejected},
		"by one of two roots":            {sign(t, at(now, "cluster prod-1"), body, f.roots[0]), delivery.StatementRejected},
		"by one root, twice":             {sign(t, at(now, "cluster prod-1"), body, f.roots[0], f.roots[0]), delivery.StatementRejected},
		"by one root and a signer":       {sign(t, at(now, "cluster prod-1"), body, f.roots[0], f.signer), delivery.StatementRejected},
		"for another cluster":            {sign(t, at(now, "cluster prod-2"), body, f.roots...), delivery.TargetRefused},
		"for another class":              {sign(t, at(now, "cluster prod-1\ntarget class gpu"), body, f.roots...), delivery.TargetRefused},
		"issued in 2099":                 {sign(t, at(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), "cluster prod-1"), body, f.roots...), delivery.NotYetValid},
		"another one of the same serial": {sign(t, strings.Replace(at(now, "cluster prod-1"), "serial 2", "serial 1", 1), body, f.roots...), delivery.SerialReused},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			told(t, []host{f.a}, string(c.want), c.s)
			f.serves(t, []host{f.a}, f.signer, 0)
		})
	}
	knows(t, []host{f.a}, "revoke 1")
	told(t, []host{f.a}, "Applied", sign(t, at(now, "cluster prod-1\ntarget class bm"), body, f.roots...))
	f.serves(t, []host{f.a}, f.signer, 13)
}
