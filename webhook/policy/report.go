package policy

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Report is what /policyz shows: enough to compare replicas, nothing of the policy's body and no keys.
type Report struct {
	InForce     bool   `json:"inForce"`
	Digest      string `json:"digest,omitempty"`
	Mode        string `json:"mode,omitempty"`
	Version     int    `json:"version,omitempty"`
	RootVersion int    `json:"rootVersion,omitempty"`
	// WarnUntil is when mode warn ends by itself.
	WarnUntil  *time.Time `json:"warnUntil,omitempty"`
	Issued     *time.Time `json:"issued,omitempty"`
	Expires    *time.Time `json:"expires,omitempty"`
	Signers    int        `json:"signers"`
	Revoked    int        `json:"revokedSigners"`
	Exceptions Exceptions `json:"exceptions"`
	Fragments  Fragments  `json:"fragments"`
	// NotReady says why nothing but refusals can be decided, "" where something can.
	NotReady    string           `json:"notReady,omitempty"`
	Anchor      AnchorInfo       `json:"anchor"`
	Ledger      *LedgerInfo      `json:"ledger,omitempty"`
	LastRefusal *inforce.Refusal `json:"lastRefusal,omitempty"`
	// Snapshot tells what else decisions are made by, by kind. The program fills it in.
	Snapshot any `json:"snapshot,omitempty"`
}

// Fragments counts what a policy says of fragments and rules. A sort without classes is not judged.
type Fragments struct {
	Classes        int `json:"fragmentClasses"`
	RuleClasses    int `json:"ruleClasses"`
	BindingClasses int `json:"bindingClasses"`
	Bundles        int `json:"bundles"`
	Learners       int `json:"learners"`
	Revoked        int `json:"revokedSigners"`
}

func fragments(p *trustpolicy.Policy) Fragments {
	return Fragments{
		Classes: len(p.FragmentClasses), RuleClasses: len(p.RuleClasses), BindingClasses: len(p.BindingClasses),
		Bundles: len(p.Bundles), Learners: len(p.Learners), Revoked: len(p.RevokedFragmentSigners),
	}
}

// Exceptions counts the entries of a policy that let something through until a date which is ahead.
type Exceptions struct {
	Unguarded int `json:"unguarded"`
	RawHosts  int `json:"rawHosts"`
	Waivers   int `json:"waivers"`
}

func exceptions(p *trustpolicy.Policy, now time.Time) (e Exceptions) {
	for _, u := range p.Unguarded {
		e.Unguarded += ahead(u.Until, now)
	}
	for _, raw := range p.Hosts.Raw {
		e.RawHosts += ahead(raw.Until, now)
	}
	for _, w := range p.Waivers {
		e.Waivers += ahead(w.Expires, now)
	}
	return e
}

// ahead is 1 for what has not ended at now.
func ahead(end, now time.Time) int {
	if now.Before(end) {
		return 1
	}
	return 0
}

// LedgerInfo is what the cluster remembers. Where its anchorDigest is not the anchor's digest,
// another program of the product trusts other roots.
type LedgerInfo struct {
	Version      int    `json:"version"`
	Digest       string `json:"digest"`
	RootVersion  int    `json:"rootVersion"`
	AnchorDigest string `json:"anchorDigest"`
}

// AnchorInfo identifies the anchor.
type AnchorInfo struct {
	ClusterID     string `json:"clusterID"`
	Digest        string `json:"digest"`
	RootVersion   int    `json:"rootVersion"`
	RootKeys      int    `json:"rootKeys"`
	RootThreshold int    `json:"rootThreshold"`
}

// Report describes the state at now.
func (h *Holder) Report(now time.Time) Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := Report{LastRefusal: h.keeper.LastRefusal(), Anchor: AnchorInfo{
		ClusterID: h.anchor.ClusterID, Digest: h.anchor.Digest,
		RootVersion: h.anchor.Roots.Version, RootKeys: len(h.anchor.Roots.Keys), RootThreshold: h.anchor.Roots.Threshold,
	}}
	if known := h.keeper.Remembered(); known.AnchorDigest != "" {
		r.Ledger = &LedgerInfo{Version: known.Version, Digest: known.Digest, RootVersion: known.RootVersion, AnchorDigest: known.AnchorDigest}
	}
	if err := h.keeper.Ready(now); err != nil {
		r.NotReady = err.Error()
	}
	p := h.keeper.Current()
	if p == nil {
		return r
	}
	r.InForce = r.NotReady == ""
	r.Digest, r.Mode, r.Version, r.RootVersion = p.Digest, string(p.Mode(now)), p.Version, p.RootVersion
	r.Issued, r.Expires, r.Exceptions, r.Fragments = &p.Issued, &p.Expires, exceptions(p, now), fragments(p)
	if p.Mode(now) == trustpolicy.Warn {
		until := p.WarnUntil()
		r.WarnUntil = &until
	}
	for _, s := range p.Signers {
		r.Signers++
		if p.Revoked(s.Key) {
			r.Revoked++
		}
	}
	return r
}

// Serve answers /policyz with a report and what complete adds to it.
func (h *Holder) Serve(complete func(*Report)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		r := h.Report(time.Now())
		complete(&r)
		body, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			http.Error(w, "encoding the report failed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(append(body, '\n')); err != nil {
			h.log.Debug("writing /policyz", "error", err)
		}
	}
}
