package policy

import (
	"encoding/json"
	"net/http"
	"time"
)

// Report is what /policyz shows: enough to compare replicas, nothing of the policy's body and no keys.
type Report struct {
	InForce     bool       `json:"inForce"`
	Digest      string     `json:"digest,omitempty"`
	Mode        string     `json:"mode,omitempty"`
	Version     int        `json:"version,omitempty"`
	RootVersion int        `json:"rootVersion,omitempty"`
	Issued      *time.Time `json:"issued,omitempty"`
	Expires     *time.Time `json:"expires,omitempty"`
	Signers     int        `json:"signers"`
	Revoked     int        `json:"revokedSigners"`
	Anchor      AnchorInfo `json:"anchor"`
	LastRefusal *Refusal   `json:"lastRefusal,omitempty"`
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
	refusal := h.refusal
	h.mu.Unlock()
	r := Report{LastRefusal: refusal, Anchor: AnchorInfo{
		ClusterID: h.anchor.ClusterID, Digest: h.anchor.Digest,
		RootVersion: h.anchor.Roots.Version, RootKeys: len(h.anchor.Roots.Keys), RootThreshold: h.anchor.Roots.Threshold,
	}}
	p := h.current.Load()
	if p == nil {
		return r
	}
	r.InForce = !p.Expired(now)
	r.Digest, r.Mode, r.Version, r.RootVersion = p.Digest, string(p.Mode(now)), p.Version, p.RootVersion
	r.Issued, r.Expires = &p.Issued, &p.Expires
	for _, s := range p.Signers {
		r.Signers++
		if p.Revoked(s.Key) {
			r.Revoked++
		}
	}
	return r
}

// ServeHTTP answers /policyz.
func (h *Holder) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body, err := json.MarshalIndent(h.Report(time.Now()), "", "  ")
	if err != nil {
		http.Error(w, "encoding the report failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(append(body, '\n')); err != nil {
		h.log.Debug("writing /policyz", "error", err)
	}
}
