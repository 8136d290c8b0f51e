package delivery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/fakesshd"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// signed is a good statement of a kind. What it is signed with is for the host to judge.
func signed(t *testing.T, kind statement.Kind, serial int) statement.Signed {
	t.Helper()
	text := testkit.StatementBases()[string(kind)]
	text = strings.Replace(text, "serial 2\n", fmt.Sprintf("serial %d\n", serial), 1)
	return statement.Signed{Text: []byte(text), Signatures: []string{"one\n", "two\n"}}
}

// ledger plays a host that keeps statements. Its roots are at a version, and take
// that link again or the next one.
type ledger struct {
	mu     sync.Mutex
	roots  int64
	seen   []string
	answer map[statement.Kind]int // what it answers to other kinds
	cutAt  int                    // the connection breaks at that statement, counted from 1
}

func (l *ledger) play(s *fakesshd.Session, e *envelope.Envelope) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Phase != envelope.PhaseStatement {
		l.seen = append(l.seen, string(e.Phase))
		return 0
	}
	st, err := statement.Parse(e.Statement)
	if err != nil || string(e.StatementSig) != "one\ntwo\n" {
		return 4
	}
	l.seen = append(l.seen, fmt.Sprintf("%s %d", st.Kind, st.Serial))
	if len(l.seen) == l.cutAt {
		s.Cut()
		return fakesshd.NoExit
	}
	switch {
	case st.Kind != statement.KindRoots:
		if code := l.answer[st.Kind]; code != 0 {
			fmt.Fprintf(s.Stderr, "noise\nkpssh-shim: no to %s\n", st.Kind)
			return code
		}
		return 0
	case st.Serial == l.roots || st.Serial == l.roots+1:
		l.roots = st.Serial
		return 0
	default:
		return 2
	}
}

// heard is what came so far, in order.
func (l *ledger) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

func short(reports []StatementReport) []string {
	var out []string
	for _, r := range reports {
		out = append(out, fmt.Sprintf("%s %d %s", r.Kind, r.Serial, r.Result))
	}
	return out
}

func TestStatementsGoInOrderAndLinksNewestFirst(t *testing.T) {
	roots := []statement.Signed{signed(t, statement.KindRoots, 2), signed(t, statement.KindRoots, 3), signed(t, statement.KindRoots, 4)}
	all := slices.Concat(roots, []statement.Signed{signed(t, statement.KindSigners, 7), signed(t, statement.KindRevoke, 5)})
	cases := map[string]struct {
		at         int64
		statements []statement.Signed
		seen, want []string
	}{
		"a host that has all": {
			4, all,
			[]string{"roots 4", "signers 7", "revoke 5"},
			[]string{"roots 2 Superseded", "roots 3 Superseded", "roots 4 Applied", "signers 7 Applied", "revoke 5 Applied"},
		},
		"a host that lacks the last link": {
			3, all,
			[]string{"roots 4", "signers 7", "revoke 5"},
			[]string{"roots 2 Superseded", "roots 3 Superseded", "roots 4 Applied", "signers 7 Applied", "revoke 5 Applied"},
		},
		"a host that missed two rotations": {
			2, all,
			[]string{"roots 4", "roots 2", "roots 3", "roots 4", "signers 7", "revoke 5"},
			[]string{"roots 2 Applied", "roots 3 Applied", "roots 4 Applied", "signers 7 Applied", "revoke 5 Applied"},
		},
		"a host that missed two of three, past the first": {
			2, append([]statement.Signed{signed(t, statement.KindRoots, 1)}, roots...),
			[]string{"roots 4", "roots 1", "roots 2", "roots 3", "roots 4"},
			[]string{"roots 1 Superseded", "roots 2 Applied", "roots 3 Applied", "roots 4 Applied"},
		},
		"a host of other roots": {
			40, roots,
			[]string{"roots 4", "roots 2", "roots 3", "roots 4"},
			[]string{"roots 2 StatementRejected", "roots 3 StatementRejected", "roots 4 StatementRejected"},
		},
		"one link": {
			40, roots[:1],
			[]string{"roots 2"},
			[]string{"roots 2 StatementRejected"},
		},
		"other kinds between links keep their place": {
			1,
			[]statement.Signed{roots[0], signed(t, statement.KindSigners, 7), roots[1]},
			[]string{"roots 2", "signers 7", "roots 3"},
			[]string{"roots 2 Applied", "signers 7 Applied", "roots 3 Applied"},
		},
		"nothing": {4, nil, nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := &ledger{roots: c.at}
			target, server := host(t, l.play)
			got, err := DeliverStatements(t.Context(), target, limits(), c.statements)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, short(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.seen, l.heard()); diff != "" {
				t.Error(diff)
			}
			if n := server.Connections(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestEveryExitCodeOfAStatementHasItsName(t *testing.T) {
	for code := range 24 {
		want := map[int]Result{
			0: Applied, 2: StatementRejected, 4: StatementRejected, 5: StatementsUnsupported, 12: Busy, 15: TargetRefused,
			17: NotYetValid, 18: Expired, 20: SerialRefused, 21: SerialReused,
			3: Refused, 13: Refused, 14: Refused, 16: Refused, 22: Refused, 23: Refused,
		}[code]
		if want == "" {
			want = Cut
		}
		l := &ledger{answer: map[statement.Kind]int{statement.KindFloor: code}}
		target, _ := host(t, l.play)
		got, err := DeliverStatements(t.Context(), target, limits(), []statement.Signed{signed(t, statement.KindFloor, 3)})
		if err != nil || len(got) != 1 || got[0].Result != want || got[0].ShimExit != code || got[0].Serial != 3 {
			t.Errorf("exit code %d: %+v, %v, want %s", code, got, err, want)
		}
		if code != 0 && !strings.Contains(got[0].Message, `"kpssh-shim: no to floor"`) {
			t.Errorf("exit code %d: the message does not say what the host said: %s", code, got[0].Message)
		}
	}
}

func TestARefusedStatementDoesNotHoldUpOthers(t *testing.T) {
	l := &ledger{roots: 2, answer: map[statement.Kind]int{statement.KindSigners: 15}}
	target, _ := host(t, l.play)
	got, err := DeliverStatements(t.Context(), target, limits(), []statement.Signed{signed(t, statement.KindSigners, 2), signed(t, statement.KindRevoke, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"signers 2 TargetRefused", "revoke 3 Applied"}, short(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStatementsStopWhereTheyAreUnsupported(t *testing.T) {
	target, server := host(t, func(*fakesshd.Session, *envelope.Envelope) int { return 5 })
	got, err := DeliverStatements(t.Context(), target, limits(), []statement.Signed{
		signed(t, statement.KindRoots, 2), signed(t, statement.KindRoots, 3), signed(t, statement.KindRevoke, 3),
	})
	if sent := server.Sessions(); err != nil || sent != 1 {
		t.Fatalf("%d sent, %v", sent, err)
	}
	if diff := cmp.Diff([]string{"roots 2 StatementsUnsupported", "roots 3 StatementsUnsupported", "revoke 3 StatementsUnsupported"}, short(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStatementsOverAConnectionThatBreaks(t *testing.T) {
	all := []statement.Signed{signed(t, statement.KindRoots, 2), signed(t, statement.KindRoots, 3), signed(t, statement.KindRevoke, 3)}
	cases := map[string]struct {
		cutAt int
		want  []string
	}{
		"at the newest link":   {1, []string{"roots 2 Unreachable", "roots 3 Cut", "revoke 3 Unreachable"}},
		"inside of the chain":  {2, []string{"roots 2 Cut", "roots 3 Unreachable", "revoke 3 Unreachable"}},
		"at the last one":      {4, []string{"roots 2 Applied", "roots 3 Applied", "revoke 3 Cut"}},
		"after all were there": {5, []string{"roots 2 Applied", "roots 3 Applied", "revoke 3 Applied"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := &ledger{roots: 1, cutAt: c.cutAt}
			target, _ := host(t, l.play)
			got, err := DeliverStatements(t.Context(), target, limits(), all)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, short(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatementsForAHostThatCannotBeReached(t *testing.T) {
	target, _ := host(t, (&ledger{}).play)
	l := limits()
	l.Handshake = 100 * time.Millisecond
	one := []statement.Signed{signed(t, statement.KindRevoke, 3)}
	silent := target
	silent.Address = fakesshd.Silent(t)
	got, err := DeliverStatements(t.Context(), silent, l, one)
	if diff := cmp.Diff([]string{"revoke 3 Unreachable"}, short(got)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	foreign := target
	foreign.Pin = transport.Pin{}
	got, err = DeliverStatements(t.Context(), foreign, l, one)
	if diff := cmp.Diff([]string{"revoke 3 HostKeyNotPinned"}, short(got)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestWhatIsNoStatementIsNotSent(t *testing.T) {
	target, server := host(t, (&ledger{}).play)
	good := signed(t, statement.KindRevoke, 3)
	cases := map[string]struct {
		s    statement.Signed
		text string
	}{
		"no statement":         {statement.Signed{Text: []byte("hello\n"), Signatures: good.Signatures}, "statement 2"},
		"too many signatures":  {statement.Signed{Text: good.Text, Signatures: []string{strings.Repeat("x", envelope.MaxSignature+1)}}, "statement-sig-b64"},
		"a line feed too few":  {statement.Signed{Text: good.Text[:len(good.Text)-1], Signatures: good.Signatures}, "line break"},
		"a statement and more": {statement.Signed{Text: append(good.Text[:len(good.Text):len(good.Text)], "end\n"...), Signatures: good.Signatures}, "statement 2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := DeliverStatements(t.Context(), target, limits(), []statement.Signed{good, c.s})
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			o := order(target)
			o.Statements = []statement.Signed{good, c.s}
			if _, err := Deliver(t.Context(), o, func() error { return nil }); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("with a run: got %v, want %q", err, c.text)
			}
		})
	}
	if n := server.Connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestDeliverTellsStatementsBeforeTheRun(t *testing.T) {
	l := &ledger{roots: 1}
	target, server := host(t, l.play)
	o := order(target)
	o.Statements = []statement.Signed{signed(t, statement.KindRoots, 2), signed(t, statement.KindRevoke, 3)}
	var before []string
	got, err := Deliver(t.Context(), o, func() error {
		before = l.heard()
		return nil
	})
	if err != nil || got.Result != Succeeded {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"roots 2", "revoke 3"}, before); diff != "" {
		t.Errorf("before commit: %s", diff)
	}
	if diff := cmp.Diff([]string{"roots 2", "revoke 3", "join"}, l.heard()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"roots 2 Applied", "revoke 3 Applied"}, short(got.Statements)); diff != "" {
		t.Error(diff)
	}
	if n := server.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestDeliverRunsWhereStatementsAreRefused(t *testing.T) {
	for name, code := range map[string]int{"refused": 2, "unsupported": 5} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{answer: map[statement.Kind]int{statement.KindRevoke: code}}
			target, _ := host(t, l.play)
			o := order(target)
			o.Statements = []statement.Signed{signed(t, statement.KindRevoke, 3)}
			got, err := Deliver(t.Context(), o, func() error { return nil })
			if err != nil || got.Result != Succeeded || len(got.Statements) != 1 || got.Statements[0].ShimExit != code {
				t.Fatalf("%+v, %v", got, err)
			}
		})
	}
}

// A run of which nothing was sent must not read as one that may have happened.
func TestDeliverSendsNothingAfterStatementsThatBrokeTheConnection(t *testing.T) {
	l := &ledger{cutAt: 1}
	target, _ := host(t, l.play)
	o := order(target)
	o.Statements = []statement.Signed{signed(t, statement.KindRevoke, 3), signed(t, statement.KindFloor, 3)}
	got, err := Deliver(t.Context(), o, func() error { return errors.New("asked to commit") })
	if err != nil || got.Result != Unreachable {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"revoke 3 Cut", "floor 3 Unreachable"}, short(got.Statements)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"revoke 3"}, l.heard()); diff != "" {
		t.Error(diff)
	}
}
