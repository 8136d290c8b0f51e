package bundles

import (
	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// figures are what is counted of one bundle.
type figures struct {
	state            string
	members, missing int
	refusals         map[string]int
}

// count notes a result and shows all bundles together.
func (c *Controller) count(st *state, r *result) {
	f := &figures{state: r.word(), missing: len(r.missing), refusals: map[string]int{}}
	if r.Composite != nil {
		f.members = len(r.Composite.Leaves)
	}
	for _, refusal := range r.Refusals {
		f.refusals[reasonOf(refusal.Error)]++
	}
	if r.MoreRefusals > 0 {
		f.refusals["Other"] += r.MoreRefusals
	}
	if r.unsigned > 0 {
		f.refusals[string(decision.Unsigned)] += r.unsigned
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.figures = f
	c.Metrics.show(c.total())
}

// total counts all bundles. The lock is held.
func (c *Controller) total() Counts {
	t := Counts{Bundles: map[string]int{}, Refusals: map[string]int{}}
	for _, st := range c.states {
		if st.figures == nil {
			continue
		}
		t.Bundles[st.figures.state]++
		t.Members += st.figures.members
		t.Missing += st.figures.missing
		for reason, n := range st.figures.refusals {
			t.Refusals[reason] += n
		}
	}
	t.Rules = c.ruleCounts
	return t
}

// Counts are what /policyz and metrics show: no bundle and no object is named.
type Counts struct {
	// Bundles by what became of them.
	Bundles map[string]int `json:"bundles"`
	Members int            `json:"members"`
	Missing int            `json:"missingMembers"`
	// Refusals by Reason; "Other" are those that were not listed.
	Refusals map[string]int `json:"refusals"`
	Rules    RuleCounts     `json:"rules"`
}

// Counts counts all bundles and rules.
func (c *Controller) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total()
}

// word is the result as metrics name it.
func (r *result) word() string {
	switch {
	case r.fault != nil:
		return "blocked"
	case r.Composite == nil:
		return "absent"
	case r.Verdict == bundle.Refused:
		return "kept"
	default:
		return "assembled"
	}
}

func (m *Metrics) show(t Counts) {
	for _, state := range []string{"assembled", "kept", "absent", "blocked"} {
		m.bundles.WithLabelValues(state).Set(float64(t.Bundles[state]))
	}
	m.members.Set(float64(t.Members))
	m.missing.Set(float64(t.Missing))
	m.refusals.Reset()
	for reason, n := range t.Refusals {
		m.refusals.WithLabelValues(reason).Set(float64(n))
	}
}
