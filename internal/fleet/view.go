package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Soon is how long before its end something is listed as expiring.
const Soon = 30 * 24 * time.Hour

// Silent is how long after the last contact a host counts as behind: three looks of the relay, an hour each and
// a tenth late, which is longer than one look and the longest run, which keeps visits away. A contact as far ahead is none.
const Silent = 3*time.Hour + 20*time.Minute

// Host is one row.
type Host struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Class     string `json:"class"`
	// Reachable is the reason of the relay's condition, "Unknown" where there is none.
	Reachable string `json:"reachable"`
	// Contact is when the host last answered; zero: never.
	Contact time.Time `json:"contact,omitzero"`
	// SkewSeconds is how far its clock is ahead.
	SkewSeconds int64 `json:"skewSeconds,omitempty"`
	// Statements and Profiles are serials by kind and by profile.
	Statements map[string]int64 `json:"statements,omitempty"`
	Profiles   map[string]int64 `json:"profiles,omitempty"`
	// Behind says what the host lacks; empty is current.
	Behind []string `json:"behind,omitempty"`
}

// Expiry is something that ends within Soon, or has ended.
type Expiry struct {
	What string    `json:"what"`
	At   time.Time `json:"at"`
}

// View is what is known of a fleet.
type View struct {
	Hosts    []Host   `json:"hosts"`
	Expiring []Expiry `json:"expiring,omitempty"`
	// Unread are objects that could not be read.
	Unread []string `json:"unread,omitempty"`
}

// Behind reports whether some host lacks something, or something could not be read.
func (v View) Behind() bool {
	return len(v.Unread) > 0 || slices.ContainsFunc(v.Hosts, func(h Host) bool { return len(h.Behind) > 0 })
}

// state is what we read of a HostState.
type state struct {
	Metadata struct {
		OwnerReferences []struct {
			UID string `json:"uid"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`

		LastContact time.Time `json:"lastContact"`
		SkewSeconds int64     `json:"skewSeconds"`
		Statements  []struct {
			Kind   string `json:"kind"`
			Serial int64  `json:"serial"`
		} `json:"statements"`
		Marks []struct {
			Profile string `json:"profile"`
			Serial  int64  `json:"serial"`
		} `json:"marks"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// stored is a host, and the generation that it is at.
type stored struct {
	*object.Host
	generation int64
}

// tells says whether a state is of this SSHHost and of where it points now.
func (s state) tells(h stored) bool {
	for _, owner := range s.Metadata.OwnerReferences {
		if owner.UID == h.UID {
			return s.Status.ObservedGeneration == h.generation
		}
	}
	return false
}

type condition struct {
	Type, Status, Reason string
}

// condition is that of a type, zero where there is none.
func (s state) condition(kind string) condition {
	for _, c := range s.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return condition{}
}

// world is what the objects hold.
type world struct {
	hosts    []stored
	states   map[string]state
	words    []*statement.Statement
	policies []*trustpolicy.Policy
	expiring []Expiry
	unread   []string
	now      time.Time
}

// New reads the objects, JSON each, in any order. What is of no kind that matters is left out.
func New(objects []json.RawMessage, now time.Time) View {
	w := &world{states: map[string]state{}, now: now}
	for _, raw := range objects {
		meta, err := object.ParseMeta(raw)
		if err != nil {
			w.unread = append(w.unread, "an object: "+err.Error())
			continue
		}
		if err := w.read(meta, raw); err != nil {
			w.unread = append(w.unread, meta.Kind+"/"+meta.Name+": "+err.Error())
		}
	}
	v := View{Unread: w.unread}
	for _, h := range w.hosts {
		v.Hosts = append(v.Hosts, w.row(h))
	}
	slices.SortFunc(v.Hosts, func(a, b Host) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	v.Expiring = w.expiring
	slices.SortFunc(v.Expiring, func(a, b Expiry) int { return a.At.Compare(b.At) })
	return v
}

func (w *world) read(meta object.Meta, raw json.RawMessage) error {
	switch meta.Kind {
	case object.KindHost:
		return w.readHost(raw)
	case "HostState":
		var s state
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		w.states[meta.Namespace+"/"+meta.Name] = s
	case object.KindHostStatement:
		return w.readStatement(raw)
	case object.KindTrustPolicy:
		return w.readPolicy(raw)
	case object.KindJoinProfile:
		return w.readProfile(raw)
	}
	return nil
}

func (w *world) readHost(raw json.RawMessage) error {
	h, err := object.ParseHost(raw)
	if err != nil {
		return err
	}
	var at struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &at); err != nil {
		return err
	}
	w.hosts = append(w.hosts, stored{h, at.Metadata.Generation})
	return nil
}

// readStatement leaves out what the relay found that the roots do not vouch for.
func (w *world) readStatement(raw json.RawMessage) error {
	h, err := object.ParseHostStatement(raw)
	if err != nil {
		return err
	}
	var told struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &told); err != nil {
		return err
	}
	if slices.ContainsFunc(told.Status.Conditions, func(c condition) bool { return c.Type == "Verified" && c.Status == "False" }) {
		return nil
	}
	s, err := statement.Parse([]byte(h.Statement))
	if err != nil {
		return err
	}
	w.words = append(w.words, s)
	if s.Signers != nil {
		w.ends(fmt.Sprintf("HostStatement %s: the signers of hosts", h.Name), time.Unix(s.Signers.Expires, 0))
	}
	return nil
}

func (w *world) readPolicy(raw json.RawMessage) error {
	t, err := object.ParseTrustPolicy(raw)
	if err != nil {
		return err
	}
	p, err := trustpolicy.ReadUnverified([]byte(t.Document))
	if err != nil {
		return err
	}
	w.policies = append(w.policies, p)
	w.ends("TrustPolicy "+t.Name, p.Expires)
	return nil
}

func (w *world) readProfile(raw json.RawMessage) error {
	p, err := object.ParseJoinProfile(raw)
	if err != nil {
		return err
	}
	for phase, warrant := range verify.FactsOf(p).Warrants {
		if !warrant.Never {
			w.ends(fmt.Sprintf("SSHJoinProfile %s: %s", p.Name, phase), time.Unix(warrant.NotAfter, 0))
		}
	}
	return nil
}

func (w *world) ends(what string, at time.Time) {
	if at.Sub(w.now) < Soon {
		w.expiring = append(w.expiring, Expiry{What: what, At: at.UTC()})
	}
}

// row joins a host and its state.
func (w *world) row(h stored) Host {
	r := Host{Namespace: h.Namespace, Name: h.Name, Class: h.Class(), Reachable: "Unknown", Statements: map[string]int64{}, Profiles: map[string]int64{}}
	s, met := w.states[h.Namespace+"/"+h.Name]
	stale := false
	// check: InUse: a machine that nobody has talked to passes for the one that had its name, or its SSHHost, before
	if met && !s.tells(h) {
		s, stale = state{}, true
	}
	r.Contact, r.SkewSeconds = s.Status.LastContact, s.Status.SkewSeconds
	for _, st := range s.Status.Statements {
		r.Statements[st.Kind] = st.Serial
	}
	for _, m := range s.Status.Marks {
		r.Profiles[m.Profile] = m.Serial
	}
	r.Reachable = cmp.Or(s.condition("Reachable").Reason, r.Reachable)
	switch {
	case !met:
		r.Behind = append(r.Behind, "the relay wrote nothing of it")
	case stale:
		r.Behind = append(r.Behind, "the relay wrote nothing of it since its SSHHost was made or changed")
	default:
		r.Behind = s.contact(w.now)
	}
	r.Behind = append(append(r.Behind, w.lacks(r)...), w.ahead(r)...)
	for _, p := range w.policies {
		for _, profile := range sorted(r.Profiles) {
			if floor, _ := p.Floor(profile); r.Profiles[profile] < floor {
				r.Behind = append(r.Behind, fmt.Sprintf("profile %s %d, the floor is %d", profile, r.Profiles[profile], floor))
			}
		}
	}
	return r
}

// contact says what is amiss with how a host answers.
func (s state) contact(now time.Time) []string {
	reachable, current := s.condition("Reachable"), s.condition("Current")
	var amiss []string
	switch {
	case reachable.Status == "False":
		return []string{"not reachable: " + reachable.Reason} // and what keeps it so is no answer of the host
	case current.Status == "False" && current.Reason != "Behind":
		amiss = append(amiss, "it answered: "+current.Reason) // told and not taken: waiting does not mend that
	}
	last := s.Status.LastContact
	// check: Expired: the relay is dead, or visits nobody, and all that it wrote before stays current
	if now.Sub(last).Abs() > Silent {
		amiss = append(amiss, "last contact: "+when(last))
	}
	return amiss
}

func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// lacks compares with the newest statement of each kind that may be for the host. Which keys it has
// is not known here: what is for single hosts is left to the relay's condition.
func (w *world) lacks(r Host) []string {
	newest := w.newest(verify.Place{Class: r.Class})
	var lacks []string
	for _, kind := range statement.Kinds() {
		have, want := r.Statements[string(kind)], newest[string(kind)]
		switch {
		case have >= want:
		case have == 0:
			lacks = append(lacks, fmt.Sprintf("no %s, the newest is %d", kind, want))
		default:
			lacks = append(lacks, fmt.Sprintf("%s %d, the newest is %d", kind, have, want))
		}
	}
	return lacks
}

// ahead names what a host was told that the cluster does not hold: what was deleted past admission, or was
// told by hand, never reaches the others. Root links may be deleted once the anchor is behind them.
func (w *world) ahead(r Host) []string {
	newest := w.newest(verify.Place{Class: r.Class, AnyKey: true})
	var more []string
	for _, kind := range statement.Kinds() {
		if have := r.Statements[string(kind)]; kind != statement.KindRoots && have > newest[string(kind)] {
			more = append(more, fmt.Sprintf("ahead: %s %d, the newest here is %d", kind, have, newest[string(kind)]))
		}
	}
	return more
}

// newest are the highest serials of what is for a place, by kind.
func (w *world) newest(p verify.Place) map[string]int64 {
	newest := map[string]int64{}
	for _, s := range w.words {
		if p.Holds(s) {
			newest[string(s.Kind)] = max(newest[string(s.Kind)], s.Serial)
		}
	}
	return newest
}

func sorted(m map[string]int64) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
