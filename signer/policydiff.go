package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// effect says whether a change lets more or less through.
type effect string

const (
	widens  effect = "WIDENS"
	reduces effect = "REDUCES"
	changes effect = "changes"
)

// policyChange is one difference between two policies.
type policyChange struct {
	Effect effect `json:"effect"`
	What   string `json:"what"`
}

// differ collects the changes from one policy to another.
type differ struct{ all []policyChange }

func (d *differ) add(e effect, format string, args ...any) {
	d.all = append(d.all, policyChange{e, fmt.Sprintf(format, args...)})
}

// list compares lists whose entries allow something; where restricts, they forbid it.
func (d *differ) list(field string, was, is []string, restricts bool) {
	more, less := widens, reduces
	if restricts {
		more, less = reduces, widens
	}
	for _, entry := range is {
		if !slices.Contains(was, entry) {
			d.add(more, "%s: adds %s", field, entry)
		}
	}
	for _, entry := range was {
		if !slices.Contains(is, entry) {
			d.add(less, "%s: removes %s", field, entry)
		}
	}
}

// scope compares lists of which an absent one means everything.
func (d *differ) scope(field string, was, is []string) {
	switch {
	case len(was) == 0 && len(is) > 0:
		d.add(reduces, "%s: everything, now only %s", field, strings.Join(is, ", "))
	case len(was) > 0 && len(is) == 0:
		d.add(widens, "%s: only %s, now everything", field, strings.Join(was, ", "))
	default:
		d.list(field, was, is, false)
	}
}

// number compares limits: a higher one lets more through, or less where it demands something.
func (d *differ) number(field string, was, is int64, demands bool) {
	if was == is {
		return
	}
	e := reduces
	if is > was != demands {
		e = widens
	}
	d.add(e, "%s: %d, now %d", field, was, is)
}

// comparePolicies lists what changes from was to is: what lets more through first.
func comparePolicies(was, is *trustpolicy.Policy) []policyChange {
	d := &differ{}
	d.head(was, is)
	d.clusters(was, is)
	d.signers(was, is)
	d.hosts(was, is)
	d.floors(was, is)
	d.rest(was, is)
	if len(d.all) == 0 && was.Digest != is.Digest {
		d.add(changes, "only the text: comments, order or spelling")
	}
	order := []effect{widens, reduces, changes}
	slices.SortStableFunc(d.all, func(a, b policyChange) int { return slices.Index(order, a.Effect) - slices.Index(order, b.Effect) })
	return d.all
}

func (d *differ) head(was, is *trustpolicy.Policy) {
	if was.Version != is.Version {
		d.add(changes, "version: %d, now %d", was.Version, is.Version)
	}
	if was.RootVersion != is.RootVersion {
		d.add(changes, "rootVersion: %d, now %d", was.RootVersion, is.RootVersion)
	}
	if !was.Issued.Equal(is.Issued) {
		d.add(changes, "issued: %s, now %s", stamp(was.Issued), stamp(is.Issued))
	}
	if !was.Expires.Equal(is.Expires) {
		d.add(changes, "expires: %s, now %s", stamp(was.Expires), stamp(is.Expires))
	}
	switch a, b := was.WarnUntil(), is.WarnUntil(); {
	case a.IsZero() && !b.IsZero():
		d.add(widens, "mode: enforce, now warn until %s: admission only warns", stamp(b))
	case !a.IsZero() && b.IsZero():
		d.add(reduces, "mode: warn, now enforce")
	case b.After(a):
		d.add(widens, "warnUntil: %s, now %s", stamp(a), stamp(b))
	case a.After(b):
		d.add(reduces, "warnUntil: %s, now %s", stamp(a), stamp(b))
	}
	if was.RequireWarrant && !is.RequireWarrant {
		d.add(widens, "requireWarrant: scripts without a warrant are taken")
	}
	if !was.RequireWarrant && is.RequireWarrant {
		d.add(reduces, "requireWarrant: scripts without a warrant are refused")
	}
	d.number("maxValidity in days", int64(was.MaxValidity.Hours()/24), int64(is.MaxValidity.Hours()/24), false)
	for _, phase := range script.Phases() {
		d.number("thresholds."+string(phase), int64(was.Thresholds[phase]), int64(is.Thresholds[phase]), true)
	}
}

func (d *differ) clusters(was, is *trustpolicy.Policy) {
	d.list("clusters", sortedKeys(was.Clusters), sortedKeys(is.Clusters), false)
	for _, id := range sortedKeys(is.Clusters) {
		before, known := was.Clusters[id]
		if !known {
			continue
		}
		after := is.Clusters[id]
		d.list("clusters."+id+".endpoints", before.Endpoints, after.Endpoints, false)
		d.list("clusters."+id+".caSHA256", before.CASHA256, after.CASHA256, false)
		if before.UID != after.UID {
			d.add(changes, "clusters.%s.uid: %q, now %q", id, before.UID, after.UID)
		}
	}
}

// signers compares by key: a key with one entry in both is compared field by field.
func (d *differ) signers(was, is *trustpolicy.Policy) {
	before, after := bySigner(was), bySigner(is)
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if len(before[id]) != 1 || len(after[id]) != 1 {
			d.entries(before[id], after[id])
			continue
		}
		d.signer(before[id][0], after[id][0])
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if len(after[id]) == 0 {
			d.entries(before[id], nil)
		}
	}
	d.list("revoked.signers", was.RevokedSigners(), is.RevokedSigners(), true)
}

// bySigner groups entries by key, and by whether it certifies or signs.
func bySigner(p *trustpolicy.Policy) map[string][]trustpolicy.Signer {
	all := map[string][]trustpolicy.Signer{}
	for _, s := range p.Signers {
		id := fmt.Sprintf("%s %t", s.Line, s.CertAuthority)
		all[id] = append(all[id], s)
	}
	return all
}

func (d *differ) entries(was, is []trustpolicy.Signer) {
	describe := func(list []trustpolicy.Signer) []string {
		var all []string
		for _, s := range list {
			until := ""
			if !s.ValidBefore.IsZero() {
				until = ", until " + stamp(s.ValidBefore)
			}
			all = append(all, signerName(s)+" for "+scopeOf(s)+until)
		}
		return all
	}
	d.list("joinProfiles.signers", describe(was), describe(is), false)
}

func signerName(s trustpolicy.Signer) string {
	sort := "signer"
	if s.CertAuthority {
		sort = "certificate authority"
	}
	return fmt.Sprintf("%s %q %s", sort, s.Name, sshsig.Fingerprint(s.Key))
}

func (d *differ) signer(was, is trustpolicy.Signer) {
	name := signerName(is)
	if was.Name != is.Name {
		d.add(changes, "%s: was called %q", name, was.Name)
	}
	phases := func(s trustpolicy.Signer) []string {
		var all []string
		for _, p := range s.Phases {
			all = append(all, string(p))
		}
		return all
	}
	d.scope(name+": profiles", was.Profiles, is.Profiles)
	d.scope(name+": phases", phases(was), phases(is))
	d.scope(name+": targets", was.Targets, is.Targets)
	a, b := was.ValidBefore, is.ValidBefore
	switch {
	case a.Equal(b):
	case b.IsZero() || !a.IsZero() && b.After(a):
		d.add(widens, "%s: its term ends %s, now %s", name, orNever(a.IsZero(), stamp(a)), orNever(b.IsZero(), stamp(b)))
	default:
		d.add(reduces, "%s: its term ends %s, now %s", name, orNever(a.IsZero(), stamp(a)), orNever(b.IsZero(), stamp(b)))
	}
}

func orNever(never bool, text string) string {
	if never {
		return "with the policy"
	}
	return text
}

func (d *differ) hosts(was, is *trustpolicy.Policy) {
	const at = "joinProfiles.hosts."
	d.list(at+"users", was.Hosts.Users, is.Hosts.Users, false)
	d.list(at+"ports", texts(was.Hosts.Ports), texts(is.Hosts.Ports), false)
	d.list(at+"shimCommands", was.Hosts.ShimCommands, is.Hosts.ShimCommands, false)
	raw := func(p *trustpolicy.Policy) (all []string) {
		for _, r := range p.Hosts.Raw {
			all = append(all, r.Host+" until "+stamp(r.Until))
		}
		return all
	}
	d.list(at+"raw", raw(was), raw(is), false)
	unguarded := func(p *trustpolicy.Policy) (all []string) {
		for _, u := range p.Unguarded {
			all = append(all, strings.Join(u.Profiles, ", ")+" until "+stamp(u.Until))
		}
		return all
	}
	d.list("joinProfiles.unguarded", unguarded(was), unguarded(is), false)
	diffMaps(d, at+"profiles", was.Hosts.Profiles, is.Hosts.Profiles)
	diffMaps(d, at+"namespaces", was.Hosts.Namespaces, is.Hosts.Namespaces)
}

func (d *differ) floors(was, is *trustpolicy.Policy) {
	for _, profile := range sortedKeys(is.Floors) {
		if _, known := was.Floors[profile]; !known {
			d.add(reduces, "floors: adds %s %d", profile, is.Floors[profile])
			continue
		}
		d.number("floors."+profile, was.Floors[profile], is.Floors[profile], true)
	}
	for _, profile := range sortedKeys(was.Floors) {
		if _, known := is.Floors[profile]; !known {
			d.add(widens, "floors: removes %s %d", profile, was.Floors[profile])
		}
	}
}

func (d *differ) rest(was, is *trustpolicy.Policy) {
	diffMaps(d, "fragmentClasses", was.FragmentClasses, is.FragmentClasses)
	diffMaps(d, "ruleClasses", was.RuleClasses, is.RuleClasses)
	diffMaps(d, "bindingClasses", was.BindingClasses, is.BindingClasses)
	diffMaps(d, "bundles", was.Bundles, is.Bundles)
	d.list("learners", was.Learners, is.Learners, false)
	d.list("revoked.fragmentSigners", was.RevokedFragmentSigners, is.RevokedFragmentSigners, true)
	resets := func(p *trustpolicy.Policy) (all []string) {
		for _, r := range p.Resets {
			all = append(all, fmt.Sprintf("%s to %d, %s", r.Profile+r.Slot, r.Serial, r.Digest))
		}
		return all
	}
	d.list("resets", resets(was), resets(is), false)
	waivers := func(p *trustpolicy.Policy) (all []string) {
		for _, w := range p.Waivers {
			all = append(all, fmt.Sprintf("%s %s, %s, until %s: %s", w.Kind, w.Name, w.Digest, stamp(w.Expires), w.Reason))
		}
		return all
	}
	d.list("waivers", waivers(was), waivers(is), false)
}

// diffMaps compares named rules. A new name opens something; what changed within one is for people to read.
func diffMaps[V any](d *differ, field string, was, is map[string]V) {
	d.list(field, sortedKeys(was), sortedKeys(is), false)
	for _, name := range sortedKeys(is) {
		if before, known := was[name]; known && !reflect.DeepEqual(before, is[name]) {
			d.add(changes, "%s.%s: %+v, now %+v", field, name, before, is[name])
		}
	}
}
