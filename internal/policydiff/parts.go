package policydiff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

func (d *differ) clusters(was, is *trustpolicy.Policy) {
	d.list("clusters", sortedKeys(was.Clusters), sortedKeys(is.Clusters), false)
	for _, id := range sortedKeys(is.Clusters) {
		before, after, at := was.Clusters[id], is.Clusters[id], "clusters."+id
		d.list(at+".endpoints", before.Endpoints, after.Endpoints, false)
		d.list(at+".caSHA256", before.CASHA256, after.CASHA256, false)
		d.one(at+".uid", before.UID, after.UID)
	}
}

// one compares a value that limits where it is given. Another value is another limit, which is not less.
func (d *differ) one(field, was, is string) {
	switch {
	case was == is:
	case was == "":
		d.add(Reduces, "%s: none, now %s", field, is)
	default:
		d.add(Widens, "%s: %s, now %s", field, was, listOr(nonEmpty(is), "none"))
	}
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
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
			all = append(all, signerName(s)+" for "+Scope(s)+until)
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
		d.add(Changes, "%s: was called %q", name, was.Name)
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
	d.targets(name, was.Targets, is.Targets)
	a, b := was.ValidBefore, is.ValidBefore
	switch {
	case a.Equal(b):
	case b.IsZero() || !a.IsZero() && b.After(a):
		d.add(Widens, "%s: its term ends %s, now %s", name, orNever(a.IsZero(), stamp(a)), orNever(b.IsZero(), stamp(b)))
	default:
		d.add(Reduces, "%s: its term ends %s, now %s", name, orNever(a.IsZero(), stamp(a)), orNever(b.IsZero(), stamp(b)))
	}
}

// targets compares kind by kind, since a script must match the targets of each. "any" limits nothing but
// scripts without a warrant.
func (d *differ) targets(name string, was, is []string) {
	anywhere := func(list []string) bool { return len(list) == 0 || slices.Contains(list, "any") }
	if anywhere(was) || anywhere(is) {
		switch {
		case slices.Equal(was, is):
		case len(was) == 0 || slices.Contains(was, "any") && len(is) > 0:
			d.add(Reduces, "%s: targets: %s, now only %s", name, listOr(was, "everything"), strings.Join(is, ", "))
		default:
			d.add(Widens, "%s: targets: only %s, now %s", name, strings.Join(was, ", "), listOr(is, "everything"))
		}
		return
	}
	ofKind := func(list []string, kind string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(target string) bool { return !strings.HasPrefix(target, kind+" ") })
	}
	for _, kind := range []string{"class", "host", "cluster"} {
		d.scope(name+": targets", ofKind(was, kind), ofKind(is, kind))
	}
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
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
	d.exceptions(at+"raw", rawHosts(was), rawHosts(is))
	d.exceptions("joinProfiles.unguarded", unguardedProfiles(was), unguardedProfiles(is))
	d.list(at+"profiles", sortedKeys(was.Hosts.Profiles), sortedKeys(is.Hosts.Profiles), false)
	for _, class := range sortedKeys(is.Hosts.Profiles) {
		d.list(at+"profiles."+class, was.Hosts.Profiles[class], is.Hosts.Profiles[class], false)
	}
	d.list(at+"namespaces", sortedKeys(was.Hosts.Namespaces), sortedKeys(is.Hosts.Namespaces), false)
	for _, name := range sortedKeys(is.Hosts.Namespaces) {
		d.namespace(at+"namespaces."+name, was.Hosts.Namespaces[name], is.Hosts.Namespaces[name])
	}
}

// rules compares names of rules that limit: without its rule a name may have no limit, and with the first
// one others may lose theirs.
func (d *differ) rules(field string, was, is []string) {
	d.list(field, was, is, false)
	for i, change := range d.all {
		if strings.HasPrefix(change.What, field+": removes ") {
			d.all[i].Effect = Widens
		}
	}
}

func (d *differ) namespace(at string, was, is trustpolicy.HostNamespace) {
	d.list(at+".classes", was.Classes, is.Classes, false)
	d.list(at+".nodeNames", was.NodeNames, is.NodeNames, false)
	authority := func(n trustpolicy.HostNamespace) string {
		if n.HostCA == nil {
			return "none"
		}
		return sshsig.Fingerprint(n.HostCA)
	}
	if a, b := authority(was), authority(is); a != b {
		d.add(Widens, "%s.hostCA: %s, now %s", at, a, b)
	}
}

// later keeps the last end of each name.
func later(all map[string]time.Time, name string, until time.Time) {
	if until.After(all[name]) {
		all[name] = until
	}
}

func rawHosts(p *trustpolicy.Policy) map[string]time.Time {
	all := map[string]time.Time{}
	for _, r := range p.Hosts.Raw {
		later(all, r.Host, r.Until)
	}
	return all
}

func unguardedProfiles(p *trustpolicy.Policy) map[string]time.Time {
	all := map[string]time.Time{}
	for _, u := range p.Unguarded {
		for _, profile := range u.Profiles {
			later(all, profile, u.Until)
		}
	}
	return all
}

func waivedObjects(p *trustpolicy.Policy) map[string]time.Time {
	all := map[string]time.Time{}
	for _, w := range p.Waivers {
		later(all, fmt.Sprintf("%s %s, %s (%s)", w.Kind, w.Name, w.Digest, w.Reason), w.Expires)
	}
	return all
}

func (d *differ) classes(was, is *trustpolicy.Policy) {
	d.list("fragmentClasses", sortedKeys(was.FragmentClasses), sortedKeys(is.FragmentClasses), false)
	for _, name := range sortedKeys(is.FragmentClasses) {
		before, after, at := was.FragmentClasses[name], is.FragmentClasses[name], "fragmentClasses."+name
		d.list(at+".signers", before.Signers, after.Signers, false)
		d.list(at+".allowedSpecPaths", before.AllowedSpecPaths, after.AllowedSpecPaths, false)
		paths := slices.Sorted(maps.Keys(before.Values))
		for _, path := range slices.Compact(slices.Sorted(slices.Values(append(paths, sortedKeys(after.Values)...)))) {
			d.scope(at+".values."+path, before.Values[path], after.Values[path])
		}
	}
	d.list("ruleClasses", sortedKeys(was.RuleClasses), sortedKeys(is.RuleClasses), false)
	for _, name := range sortedKeys(is.RuleClasses) {
		before, after, at := was.RuleClasses[name], is.RuleClasses[name], "ruleClasses."+name
		d.list(at+".signers", before.Signers, after.Signers, false)
		d.list(at+".allowedRuleIDs", before.AllowedRuleIDs, after.AllowedRuleIDs, false)
		if !before.MayDisable && after.MayDisable {
			d.add(Widens, "%s: may disable rules", at)
		}
		if before.MayDisable && !after.MayDisable {
			d.add(Reduces, "%s: may no longer disable rules", at)
		}
	}
	d.list("bindingClasses", sortedKeys(was.BindingClasses), sortedKeys(is.BindingClasses), false)
	for _, name := range sortedKeys(is.BindingClasses) {
		d.list("bindingClasses."+name+".signers", was.BindingClasses[name].Signers, is.BindingClasses[name].Signers, false)
	}
}

func (d *differ) rest(was, is *trustpolicy.Policy) {
	d.rules("bundles", sortedKeys(was.Bundles), sortedKeys(is.Bundles))
	for _, name := range sortedKeys(is.Bundles) {
		d.bundle("bundles."+name, was.Bundles[name], is.Bundles[name])
	}
	d.list("learners", was.Learners, is.Learners, false)
	d.list("revoked.fragmentSigners", was.RevokedFragmentSigners, is.RevokedFragmentSigners, true)
	resets := func(p *trustpolicy.Policy) (all []string) {
		for _, r := range p.Resets {
			sort := "profile"
			if r.Slot != "" {
				sort = "slot"
			}
			all = append(all, fmt.Sprintf("%s %s to %d, %s", sort, r.Profile+r.Slot, r.Serial, r.Digest))
		}
		return all
	}
	d.list("resets", resets(was), resets(is), false)
	d.exceptions("waivers", waivedObjects(was), waivedObjects(is))
}

func (d *differ) bundle(at string, was, is trustpolicy.Bundle) {
	required := func(b trustpolicy.Bundle) (all []string) {
		for _, m := range b.Required {
			all = append(all, m.Class+"/"+m.Name)
		}
		return all
	}
	buried := func(b trustpolicy.Bundle) map[string]int64 {
		all := map[string]int64{}
		for _, t := range b.Tombstones {
			name := t.Class + "/" + t.Name
			all[name] = max(all[name], t.Version)
		}
		return all
	}
	d.list(at+".required", required(was), required(is), true)
	d.marks(at+".tombstones", buried(was), buried(is))
	d.ordered(at+".priority", was.Priority, is.Priority)
}
