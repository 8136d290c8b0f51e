package schedule

import (
	"container/heap"
	"slices"
)

// Claim is what somebody needs for a turn.
type Claim struct {
	Namespace string
	Host      string // in the namespace
	Profile   string // whose share of the slots it takes; "" is that of turns without a profile
}

type place struct{ namespace, host string }

func (c Claim) place() place { return place{c.Namespace, c.Host} }

// turn is one claim that waits or is granted.
type turn struct {
	claim Claim
	age   uint64
	grant func() // called when its time has come
	index int    // in its profile's heap
}

// host is held by one turn, or offered to one that waits for a slot alone; the
// others stand behind, oldest first.
type host struct {
	held    *turn
	offered *turn
	behind  []*turn
}

// hall holds those who wait. Its owner locks it.
type hall struct {
	limit      int
	running    int
	waiting    int
	clock      uint64
	namespaces map[string]*namespace
	hosts      map[place]*host
}

func newHall(limit int) *hall {
	return &hall{limit: limit, namespaces: map[string]*namespace{}, hosts: map[place]*host{}}
}

// enter lets a turn wait.
func (h *hall) enter(t *turn) {
	h.clock++
	t.age = h.clock
	h.waiting++
	at := h.hosts[t.claim.place()]
	if at == nil {
		at = &host{}
		h.hosts[t.claim.place()] = at
	}
	at.behind = append(at.behind, t)
	h.offer(at)
}

// offer puts the oldest of those behind a free host among those who wait for a slot alone.
func (h *hall) offer(at *host) {
	if at.held != nil || at.offered != nil || len(at.behind) == 0 {
		return
	}
	t := at.behind[0]
	at.behind = slices.Delete(at.behind, 0, 1)
	at.offered = t
	ns, p := h.shares(t.claim)
	ns.ready++
	p.ready++
	heap.Push(&p.turns, t)
}

// shares finds those of a claim. New ones stand as if they were served just now:
// who comes and goes gains nothing on who waits.
func (h *hall) shares(c Claim) (*namespace, *profile) {
	ns := h.namespaces[c.Namespace]
	if ns == nil {
		ns = &namespace{share: share{granted: h.clock}, profiles: map[string]*profile{}}
		h.namespaces[c.Namespace] = ns
	}
	p := ns.profiles[c.Profile]
	if p == nil {
		p = &profile{share: share{granted: h.clock}}
		ns.profiles[c.Profile] = p
	}
	return ns, p
}

// admit grants turns while there are slots.
func (h *hall) admit() {
	for h.running < h.limit {
		ns, some := next(h.namespaces)
		if !some {
			return
		}
		p, some := next(ns.profiles)
		if !some {
			return
		}
		h.grant(ns, p)
	}
}

func (h *hall) grant(ns *namespace, p *profile) {
	t := p.turns[0]
	h.withdraw(ns, p, t)
	h.waiting--
	h.running++
	h.clock++
	for _, s := range []*share{&ns.share, &p.share} {
		s.running++
		s.granted = h.clock
	}
	h.hosts[t.claim.place()].held = t
	t.grant()
}

// withdraw takes an offered turn from those who wait for a slot.
func (h *hall) withdraw(ns *namespace, p *profile, t *turn) {
	heap.Remove(&p.turns, t.index)
	ns.ready--
	p.ready--
	h.hosts[t.claim.place()].offered = nil
}

// leave ends a turn, granted or not.
func (h *hall) leave(t *turn) {
	at := h.hosts[t.claim.place()]
	ns, p := h.shares(t.claim)
	switch t {
	case at.held:
		at.held = nil
		h.running--
		ns.running--
		p.running--
	case at.offered:
		h.withdraw(ns, p, t)
		h.waiting--
	default:
		at.behind = slices.DeleteFunc(at.behind, func(o *turn) bool { return o == t })
		h.waiting--
	}
	h.offer(at)
	h.forget(t.claim, at, ns, p)
}

// forget drops what nobody waits for or has, so that memory follows the work.
func (h *hall) forget(c Claim, at *host, ns *namespace, p *profile) {
	if at.held == nil && at.offered == nil && len(at.behind) == 0 {
		delete(h.hosts, c.place())
	}
	if p.idle() {
		delete(ns.profiles, c.Profile)
	}
	if ns.idle() && len(ns.profiles) == 0 {
		delete(h.namespaces, c.Namespace)
	}
}
