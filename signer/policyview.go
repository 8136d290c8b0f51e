package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/policydiff"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// policyView is a policy as it is shown; the JSON form has the same names.
type policyView struct {
	Verified    bool           `json:"verified"`
	Version     int            `json:"version"`
	Digest      string         `json:"digest"`
	Clusters    []string       `json:"clusters"`
	Issued      time.Time      `json:"issued"`
	Expires     time.Time      `json:"expires"`
	Term        string         `json:"term"`
	Mode        string         `json:"mode"`
	RootVersion int            `json:"rootVersion"`
	Roots       []string       `json:"roots,omitempty"`
	RootsNeeded int            `json:"rootsNeeded,omitempty"`
	Warrant     bool           `json:"requireWarrant"`
	MaxValidity string         `json:"maxValidity"`
	Thresholds  map[string]int `json:"thresholds"`
	Signers     []signerView   `json:"signers"`
	Revoked     []string       `json:"revoked"`
	Users       []string       `json:"users"`
	Ports       []int          `json:"ports"`
	Shims       []string       `json:"shimCommands"`
	Floors      []string       `json:"floors"`
	Profiles    []string       `json:"profiles"`
	Namespaces  []string       `json:"namespaces"`
	Exceptions  []string       `json:"exceptions"`
}

type signerView struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	Authority   bool   `json:"certAuthority"`
	Scope       string `json:"scope"`
	State       string `json:"state"`
}

func viewOf(p *trustpolicy.Policy, now time.Time) policyView {
	v := policyView{
		Version: p.Version, Digest: p.Digest, Clusters: sortedKeys(p.Clusters), Issued: p.Issued, Expires: p.Expires, Term: termLeft(p.Expires, now),
		Mode: string(p.Mode(now)), RootVersion: p.RootVersion, Warrant: p.RequireWarrant, MaxValidity: days(p.MaxValidity),
		Thresholds: map[string]int{}, Signers: []signerView{}, Revoked: p.RevokedSigners(),
		Users: p.Hosts.Users, Ports: p.Hosts.Ports, Shims: p.Hosts.ShimCommands,
	}
	if until := p.WarnUntil(); !until.IsZero() && p.Mode(now) == trustpolicy.Warn {
		v.Mode += " until " + stamp(until)
	}
	if roots := p.Roots(); roots != nil {
		v.Verified, v.RootsNeeded = true, roots.Threshold
		for _, key := range roots.Keys {
			v.Roots = append(v.Roots, sshsig.Fingerprint(key))
		}
	}
	for phase, k := range p.Thresholds {
		v.Thresholds[string(phase)] = k
	}
	for _, s := range p.Signers {
		v.Signers = append(v.Signers, signerView{s.Name, s.Key.Type(), sshsig.Fingerprint(s.Key), s.CertAuthority, policydiff.Scope(s), stateOf(p, s, now)})
	}
	for _, profile := range sortedKeys(p.Floors) {
		v.Floors = append(v.Floors, fmt.Sprintf("%s %d", profile, p.Floors[profile]))
	}
	for _, class := range sortedKeys(p.Hosts.Profiles) {
		v.Profiles = append(v.Profiles, "class "+class+": "+strings.Join(p.Hosts.Profiles[class], ", "))
	}
	for _, name := range sortedKeys(p.Hosts.Namespaces) {
		space := p.Hosts.Namespaces[name]
		v.Namespaces = append(v.Namespaces, fmt.Sprintf("%s: classes %s; node names %s", name, listOrNone(space.Classes), listOrNone(space.NodeNames)))
	}
	v.Exceptions = exceptionsOf(p, now)
	return v
}

// exceptionsOf lists what the policy excuses, and until when.
func exceptionsOf(p *trustpolicy.Policy, now time.Time) []string {
	var all []string
	for _, u := range p.Unguarded {
		all = append(all, fmt.Sprintf("unguarded profiles %s, %s", strings.Join(u.Profiles, ", "), termLeft(u.Until, now)))
	}
	for _, r := range p.Hosts.Raw {
		all = append(all, fmt.Sprintf("raw host %s, %s", r.Host, termLeft(r.Until, now)))
	}
	for _, w := range p.Waivers {
		all = append(all, fmt.Sprintf("waiver %s/%s (%s), %s", w.Kind, w.Name, w.Reason, termLeft(w.Expires, now)))
	}
	for _, r := range p.Resets {
		all = append(all, fmt.Sprintf("reset %s to %d, %s", r.Profile+r.Slot, r.Serial, r.Digest))
	}
	return all
}

func stateOf(p *trustpolicy.Policy, s trustpolicy.Signer, now time.Time) string {
	switch {
	case p.Revoked(s.Key):
		return "revoked"
	case s.ValidBefore.IsZero():
		return "valid"
	case !now.Before(s.ValidBefore):
		return "past its term"
	default:
		return "valid, " + termLeft(s.ValidBefore, now)
	}
}

// termLeft says how long there is until end.
func termLeft(end, now time.Time) string {
	left := end.Sub(now)
	switch {
	case left <= 0:
		return "EXPIRED " + span(-left) + " ago"
	default:
		return "ends in " + span(left)
	}
}

func span(d time.Duration) string {
	if d < 48*time.Hour {
		return strconv.Itoa(int(d.Hours())) + " hours"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

func days(d time.Duration) string { return strconv.Itoa(int(d.Hours()/24)) + "d" }

// text is the view for people.
func (v policyView) text() []byte {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, escaped(fmt.Sprintf(format, args...)))
	}
	head := "NOT VERIFIED: nobody checked who signed it (give --root)"
	if v.Verified {
		head = "verified"
	}
	fmt.Fprintf(&b, "trust policy, version %d: %s\n", v.Version, head)
	line("digest", "%s", v.Digest)
	line("clusters", "%s", strings.Join(v.Clusters, ", "))
	line("term", "%s to %s, %s", stamp(v.Issued), stamp(v.Expires), v.Term)
	line("mode", "%s", v.Mode)
	if v.Verified {
		line("roots", "version %d, %d of %d", v.RootVersion, v.RootsNeeded, len(v.Roots))
		for _, root := range v.Roots {
			line("", "%s", root)
		}
	} else {
		line("roots", "version %d", v.RootVersion)
	}
	warrant := "required"
	if !v.Warrant {
		warrant = "optional"
	}
	line("warrants", "%s, at most %s", warrant, v.MaxValidity)
	var needed []string
	for _, phase := range script.Phases() {
		needed = append(needed, fmt.Sprintf("%s %d", phase, v.Thresholds[string(phase)]))
	}
	line("signatures", "%s", strings.Join(needed, ", "))
	for _, s := range v.Signers {
		sort := "signer"
		if s.Authority {
			sort = "authority"
		}
		line(sort, "%s", s.Name)
		line("", "%s %s, %s", s.Type, s.Fingerprint, s.State)
		line("", "%s", s.Scope)
	}
	for _, f := range v.Revoked {
		line("revoked", "%s", f)
	}
	line("hosts", "users %s; ports %s", listOrNone(v.Users), listOrNone(texts(v.Ports)))
	for _, s := range v.Shims {
		line("shim", "%s", s)
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{"profiles", v.Profiles}, {"namespace", v.Namespaces}, {"floor", v.Floors}, {"EXCEPTION", v.Exceptions}} {
		for _, text := range list.lines {
			line(list.name, "%s", text)
		}
	}
	return []byte(b.String())
}

func listOrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func texts(numbers []int) []string {
	var all []string
	for _, n := range numbers {
		all = append(all, strconv.Itoa(n))
	}
	return all
}
