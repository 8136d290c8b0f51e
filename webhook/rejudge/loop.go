package rejudge

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// How often the loop looks whether there is something to do; that reads memory alone.
const lookEvery = 500 * time.Millisecond

// retryAfter is how long a scan that failed is waited with, and maxDirty how many changed objects are
// read one by one before a scan in pages is cheaper.
const (
	retryAfter = 5 * time.Second
	maxDirty   = 200
)

// NeedLeaderElection says that one replica judges again.
func (c *Scanner) NeedLeaderElection() bool { return true }

// Start scans until ctx ends: at first, when the policy in force is another, when something expires,
// and Interval after the last scan. Between scans objects that changed are judged.
func (c *Scanner) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var due time.Time // the zero time: now
	policy := ""
	for {
		now := c.Now()
		s, err := c.Trust.Snapshot(now)
		if err == nil && s.Policy == nil {
			err = decision.Errorf(decision.PolicyUnavailable, "no trust policy is in force")
		}
		switch {
		case err != nil:
			c.unknown(ctx, err)
		case !now.Before(due) || digestOf(s) != policy || c.dirty.size() > maxDirty:
			due, policy = c.round(ctx, now), digestOf(s)
		default:
			c.changes(ctx, s)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// round makes one scan, and says when the next is due.
func (c *Scanner) round(ctx context.Context, now time.Time) time.Time {
	c.dirty.take() // a scan sees them
	_, until, err := c.Scan(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Error("judging stored objects again; it is tried again", "error", err)
		}
		return now.Add(retryAfter)
	}
	due := now.Add(c.Interval)
	if !until.IsZero() && until.Before(due) {
		due = until
	}
	return due
}

// changes judges the objects that changed since, and those that are judged by them.
func (c *Scanner) changes(ctx context.Context, s verify.Snapshot) {
	keys := c.dirty.take()
	if len(keys) == 0 {
		return
	}
	s.Ledger = c.Ledger
	written := c.Ledger.Writes()
	var f Figures
	var changed []transition
	for _, k := range Kinds() {
		for key, change := range keys {
			if key.Kind == k.Kind && !c.unchanged(s, key, change) {
				changed = append(changed, c.again(ctx, s, k, key, change, &f)...)
			}
		}
	}
	if f.Reads == 0 {
		return
	}
	changed = append(changed, c.dependents(s)...)
	f.Writes += c.tell(ctx, changed)
	var until time.Time
	f.Writes += c.sum(ctx, s, &f, &until)
	f.Writes += c.Ledger.Writes() - written
	c.Metrics.reads.Add(float64(f.Reads))
	c.Metrics.writes.Add(float64(f.Writes))
}

// again reads and judges one object.
func (c *Scanner) again(ctx context.Context, s verify.Snapshot, k Kind, key Key, change changeOf, f *Figures) []transition {
	f.Reads++
	raw, err := c.Source.Get(ctx, k, key.Namespace, key.Name)
	if err != nil {
		c.Log.Warn("reading an object that changed; it is tried again", "kind", k.Kind, "name", key.Name, "error", err)
		c.dirty.add(key, change)
		return nil
	}
	if raw == nil {
		c.verdicts.drop(key)
		return nil
	}
	if _, t, ok := c.object(ctx, s, k.Kind, raw, f); ok {
		return []transition{t}
	}
	return nil
}

// dependents judges node classes and runs by what is known of them in memory: a profile or a host that
// they name may have changed.
func (c *Scanner) dependents(s verify.Snapshot) []transition {
	var changed []transition
	judge := func(m object.Meta, over bool, decide func() decision.Decision) {
		known := c.verdicts.get(Key{m.Kind, m.Namespace, m.Name})
		if known == nil || known.UID != m.UID {
			return // it is read and judged first
		}
		j := judged{Verdict: *known, over: over}
		j.Decision = decide()
		j.Excused = known.Excused && !j.Decision.Allowed()
		if t, ok := c.verdicts.put(j); ok {
			changed = append(changed, t)
		}
	}
	s.Recent = &verify.Recent{}
	byProfile := func(a, b *object.NodeClass) int { return cmp.Compare(a.Profile, b.Profile) }
	for _, class := range slices.SortedStableFunc(slices.Values(s.Stored.NodeClasses()), byProfile) {
		judge(class.Meta, false, func() decision.Decision { return verify.NodeClass(s, class) })
	}
	for _, run := range s.Stored.HostRuns() {
		judge(run.Meta, run.Finished, func() decision.Decision { return verify.HostRun(s, run) })
	}
	return changed
}

// unchanged says that a change was of nothing that is judged: a status for instance. A host's labels,
// which say its class and which node classes take it, are counted by no generation.
func (c *Scanner) unchanged(s verify.Snapshot, key Key, change changeOf) bool {
	known := c.verdicts.get(key)
	if known == nil || change.gone || change.uid != known.UID || change.number != known.Generation {
		return false
	}
	if key.Kind != object.KindHost {
		return true
	}
	h := s.Stored.Host(key.Namespace, key.Name)
	return h != nil && labelsOf(h) == known.labels
}
