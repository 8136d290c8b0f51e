package rejudge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Trust gives what objects are judged by.
type Trust interface {
	// Snapshot is what is trusted at now; the error says why nothing can be judged.
	Snapshot(now time.Time) (verify.Snapshot, error)
	// Chain is that of the stored trust policy.
	Chain(ctx context.Context) ([]statement.Signed, error)
}

// Ledger remembers what was seen stored.
type Ledger interface {
	verify.Ledger
	Load(ctx context.Context) (read, restored int, err error)
	Lost() bool
	Record(ctx context.Context, s verify.Snapshot, p *object.JoinProfile) error
	RecordPolicy(ctx context.Context, p *trustpolicy.Policy, chain []statement.Signed, now time.Time) error
	Ran(ctx context.Context, profile string, serial int64) error
	Writes() int
}

// Events are told of transitions; each reports whether it wrote.
type Events interface {
	Normal(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
	Warning(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
}

// Conditions are those of the trust policy.
type Conditions interface {
	Set(ctx context.Context, c metav1.Condition) (changed, wrote bool, err error)
}

// Report is told all verdicts after each scan, and reports whether it wrote.
type Report interface {
	Write(ctx context.Context, all []Verdict, now time.Time) (bool, error)
}

// Hosts may refresh what the product itself wrote into a host, and reports whether it did.
type Hosts interface {
	Refresh(ctx context.Context, s verify.Snapshot, raw json.RawMessage, h *object.Host) (bool, error)
}

// Scanner judges stored objects again. All fields but Interval are required.
type Scanner struct {
	Source     Source
	Trust      Trust
	Ledger     Ledger
	Events     Events
	Conditions Conditions
	Report     Report
	Hosts      Hosts
	Metrics    *Metrics
	Log        *slog.Logger
	Now        func() time.Time
	// Interval is how long at most the last scan is ago.
	Interval time.Duration

	verdicts *table
	dirty    *dirty
	looked   bool // whether the ledger was lost has been found out
	rebuilt  bool // it was, and has been filled again
	// recordFault is why the record of policies may not follow the policy in force.
	recordFault *decision.Error
	lastUnknown string // what was told last of why nothing can be judged
}

// Init prepares a Scanner whose fields are set.
func (c *Scanner) Init() *Scanner {
	c.verdicts, c.dirty = newTable(), newDirty()
	return c
}

// Figures are what one scan did.
type Figures struct {
	Objects, Reads, Writes, Refused int
	Took                            time.Duration
}

// Scan reads and judges every stored object once. Until is when something expires next.
func (c *Scanner) Scan(ctx context.Context) (f Figures, until time.Time, err error) {
	start := c.Now()
	s, err := c.Trust.Snapshot(start)
	if err != nil {
		return f, until, err
	}
	s.Ledger, s.Recent = c.Ledger, &verify.Recent{}
	written := c.Ledger.Writes()
	read, err := c.remember(ctx, s)
	f.Reads += read
	if err != nil {
		return f, until, err
	}
	var changed []transition
	lost := c.Ledger.Lost() && !c.looked
	for _, k := range Kinds() {
		part, err := c.scanKind(ctx, s, k, lost, &f)
		changed = append(changed, part...)
		if err != nil {
			return f, until, err
		}
	}
	c.lastUnknown = ""
	c.tellLost(ctx, lost, f.Objects)
	f.Writes += c.intact(ctx)
	f.Writes += c.tell(ctx, changed)
	f.Writes += c.sum(ctx, s, &f, &until)
	f.Writes += c.Ledger.Writes() - written
	f.Took = c.Now().Sub(start)
	c.Metrics.scanned(f)
	c.Log.Info("stored objects judged again", "objects", f.Objects, "reads", f.Reads, "writes", f.Writes,
		"refused", f.Refused, "changed", len(changed), "seconds", f.Took.Seconds(), "policy", digestOf(s), "next", until)
	return f, until, nil
}

func digestOf(s verify.Snapshot) string {
	if s.Policy == nil {
		return ""
	}
	return s.Policy.Digest
}

// remember reads the ledger, and writes what is in force into it.
func (c *Scanner) remember(ctx context.Context, s verify.Snapshot) (read int, err error) {
	read, restored, err := c.Ledger.Load(ctx)
	if restored > 0 {
		c.Metrics.rebuilt()
		c.alarm(ctx, "LedgerRestored", fmt.Sprintf("%d records of the ledger were deleted or lowered by somebody, and written again; find out who: the audit log of hostwarrant.dev/ledgers", restored))
	}
	if err != nil || s.Policy == nil {
		return read, err
	}
	chain, err := c.Trust.Chain(ctx)
	if err != nil {
		return read, err
	}
	return read, c.fault(ctx, c.Ledger.RecordPolicy(ctx, s.Policy, chain, s.Now))
}

// fault tells, once, why the record of policies stays as it is. The scan goes on: what is stored is
// judged by the policy in force. Other errors come back.
func (c *Scanner) fault(ctx context.Context, err error) error {
	if err == nil {
		c.recordFault = nil
		return nil
	}
	e, ok := errors.AsType[*decision.Error](err)
	if !ok {
		return err
	}
	if c.recordFault == nil || c.recordFault.Error() != e.Error() {
		c.alarm(ctx, string(e.Reason), "the ledger keeps what it holds: "+e.Error()+"; hint: "+e.Hint)
	}
	c.recordFault = e
	return nil
}

// intact writes the condition LedgerIntact.
func (c *Scanner) intact(ctx context.Context) (writes int) {
	condition := metav1.Condition{Type: ConditionLedgerIntact, Status: metav1.ConditionTrue, Reason: "Recorded", Message: "the ledger holds the policy in force"}
	switch {
	case c.recordFault != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, string(c.recordFault.Reason), c.recordFault.Error()
	case c.rebuilt:
		condition.Status, condition.Reason = metav1.ConditionFalse, "LedgerRebuilt"
		condition.Message = "the ledger was empty although objects are stored, and was filled again from them; restart the controller once you have looked into it"
	}
	if c.condition(ctx, condition) {
		writes++
	}
	return writes
}

// scanKind judges the objects of one kind, page by page.
func (c *Scanner) scanKind(ctx context.Context, s verify.Snapshot, k Kind, lost bool, f *Figures) ([]transition, error) {
	var changed []transition
	seen := map[Key]bool{}
	for next := ""; ; {
		page, err := c.Source.List(ctx, k, next)
		if errors.Is(err, ErrNotServed) {
			break
		}
		if err != nil {
			return changed, err
		}
		f.Reads += len(page.Items)
		for _, raw := range page.Items {
			j, t, ok := c.object(ctx, s, k.Kind, raw, f)
			if ok {
				changed = append(changed, t)
			}
			if !j.over {
				f.Objects++
				seen[j.Key] = true
			}
			if lost && k.Kind == object.KindHostRun {
				c.ran(ctx, raw)
			}
		}
		if next = page.Next; next == "" {
			break
		}
	}
	c.verdicts.keep(k.Kind, seen)
	return changed, nil
}

// object judges one object, remembers it, and refreshes what is ours in it.
func (c *Scanner) object(ctx context.Context, s verify.Snapshot, kind string, raw json.RawMessage, f *Figures) (judged, transition, bool) {
	j := judge(s, kind, raw, c.known(kind, raw), c.verdicts.wasVerified)
	if j.profile != nil && j.Decision.Allowed() && c.unrecorded(j.profile) {
		if err := c.Ledger.Record(ctx, s, j.profile); err != nil {
			c.Log.Error("recording a profile in the ledger; it is tried again", "profile", j.Name, "error", err)
		}
		// Its own record is part of what it was judged by.
		j = judge(s, kind, raw, nil, c.verdicts.wasVerified)
	}
	if j.host != nil {
		wrote, err := c.Hosts.Refresh(ctx, s, raw, j.host)
		if err != nil {
			c.Log.Warn("refreshing trustedSigners; it is tried again", "host", j.Namespace+"/"+j.Name, "error", err)
		}
		if wrote {
			f.Writes++
		}
	}
	t, changed := c.verdicts.put(j)
	return j, t, changed
}

// known is the verdict that there is of a raw object.
func (c *Scanner) known(kind string, raw json.RawMessage) *Verdict {
	var h header
	if json.Unmarshal(raw, &h) != nil {
		return nil
	}
	return c.verdicts.get(Key{kind, h.Metadata.Namespace, h.Metadata.Name})
}

// unrecorded reports whether the ledger says something else of a profile than its warrants do.
func (c *Scanner) unrecorded(p *object.JoinProfile) bool {
	m, known := c.Ledger.Mark(p.Name)
	warrants, err := verify.Warrants(p)
	if err != nil {
		return false
	}
	for _, w := range warrants {
		return !known || m != ledger.Mark{Serial: w.Serial, Digest: p.Digest()}
	}
	return false
}

// ran remembers the serial of a run that happened, where the ledger was lost.
func (c *Scanner) ran(ctx context.Context, raw json.RawMessage) {
	var run struct {
		Spec struct {
			ProfileRef struct {
				Name string `json:"name"`
			} `json:"profileRef"`
		} `json:"spec"`
		Status struct {
			Serial *int64 `json:"serial"`
		} `json:"status"`
	}
	if json.Unmarshal(raw, &run) != nil || run.Status.Serial == nil || run.Spec.ProfileRef.Name == "" {
		return
	}
	if err := c.Ledger.Ran(ctx, run.Spec.ProfileRef.Name, *run.Status.Serial); err != nil {
		c.Log.Error("recording the serial of a run", "profile", run.Spec.ProfileRef.Name, "error", err)
	}
}

// tellLost raises the alarm over a ledger that was empty though objects are stored.
func (c *Scanner) tellLost(ctx context.Context, lost bool, objects int) {
	if !lost {
		return
	}
	c.looked = true
	if objects == 0 {
		return // a new cluster
	}
	c.rebuilt = true
	c.Metrics.rebuilt()
	c.alarm(ctx, "LedgerRebuilt", fmt.Sprintf("the ledger was empty although %d objects are stored, and was filled again from what is stored and from HostRuns; "+
		"what was newer than that is not known any more. At a first installation beside existing objects that is to be expected", objects))
}
