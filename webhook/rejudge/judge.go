package rejudge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Key names an object.
type Key struct{ Kind, Namespace, Name string }

// Verdict is what is thought of a stored object.
type Verdict struct {
	Key
	APIVersion, UID string
	Generation      int64
	Decision        decision.Decision
	// Excused says that the policy takes it until a date, though it does not verify.
	Excused bool
	// until is when it may change though nobody writes; the zero time where it cannot.
	until time.Time
	// labels identifies those of a host, by which classes and selectors go.
	labels string
	// by is what it was judged by.
	by basis
}

// basis is what a verdict of a profile depends on beside the time. Verdicts by another policy, of
// other content, or by another record, are never used again.
type basis struct {
	content, policy string
	mark            ledger.Mark
	known           bool
}

// Refused says that the object should not be there.
func (v Verdict) Refused() bool { return !v.Decision.Allowed() && !v.Excused }

// word is the verdict as metrics name it.
func (v Verdict) word() string {
	switch {
	case v.Decision.Allowed():
		return "verified"
	case v.Excused:
		return "excused"
	default:
		return "refused"
	}
}

// header is what is read of any object beside what is judged.
type header struct {
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name       string `json:"name"`
		Namespace  string `json:"namespace"`
		UID        string `json:"uid"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
}

// judged is an object that was read, and what is thought of it.
type judged struct {
	Verdict
	profile *object.JoinProfile
	host    *object.Host
	// over is a run that has ended: what it asked for is no matter any more.
	over bool
}

// judge judges the JSON of a stored object. Old is what was thought before, nil where nothing was.
func judge(s verify.Snapshot, kind string, raw json.RawMessage, old *Verdict, wasVerified func(Key) bool) judged {
	j := judged{Verdict: Verdict{Key: Key{Kind: kind}}}
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		j.Decision = decision.Errorf(decision.Malformed, "the API server sent what cannot be read").Denied(kind, "?")
		return j
	}
	j.Namespace, j.Name = h.Metadata.Namespace, h.Metadata.Name
	j.APIVersion, j.UID, j.Generation = h.APIVersion, h.Metadata.UID, h.Metadata.Generation
	content, err := object.ContentDigest(raw)
	if err != nil {
		content = ""
	}
	switch kind {
	case object.KindJoinProfile:
		err = j.judgeProfile(s, raw, content, old)
	case object.KindHost:
		if j.host, err = object.ParseHost(raw); err == nil {
			j.judgeHost(s, wasVerified)
		}
	case object.KindNodeClass:
		var c *object.NodeClass
		if c, err = object.ParseNodeClass(raw); err == nil {
			j.Decision = verify.NodeClass(s, c)
		}
	case object.KindHostRun:
		var r *object.HostRun
		if r, err = object.ParseHostRun(raw); err == nil {
			j.over, j.Decision = r.Finished, verify.HostRun(s, r)
		}
	default:
		err = decision.Errorf(decision.KindMismatch, "nobody judges the kind %.60q", kind)
	}
	if err != nil {
		j.Decision = decision.From(err).Denied(kind, j.Name)
	}
	j.waived(s, content)
	j.until = earliest(s.Now, j.until, policyTimes(s.Policy)...)
	return j
}

// judgeProfile uses the verdict that is known where nothing that it depends on changed.
func (j *judged) judgeProfile(s verify.Snapshot, raw json.RawMessage, content string, old *Verdict) error {
	j.by.content = content
	if s.Policy != nil {
		j.by.policy = s.Policy.Digest
	}
	if s.Ledger != nil {
		j.by.mark, j.by.known = s.Ledger.Mark(j.Name)
	}
	p, err := object.ParseJoinProfile(raw)
	if err != nil {
		return err
	}
	j.profile = p
	if old != nil && content != "" && old.by == j.by && old.UID == j.UID && (old.until.IsZero() || s.Now.Before(old.until)) {
		j.Decision, j.Excused, j.until = old.Decision, old.Excused, old.until
		return nil
	}
	j.Decision = verify.JoinProfile(s, p)
	j.until = earliest(s.Now, time.Time{}, profileTimes(s, p)...)
	if !j.Decision.Allowed() && s.Policy != nil && len(p.Signatures) == 0 && !j.by.known {
		_, j.Excused = s.Policy.UnguardedUntil(p.Name, s.Now)
	}
	return nil
}

// judgeHost remembers that a host was Verified: one that was deleted and made again as Raw is a
// downgrade, though it is a new object.
func (j *judged) judgeHost(s verify.Snapshot, wasVerified func(Key) bool) {
	var old *object.Host
	if wasVerified(j.Key) {
		old = &object.Host{ExecMode: object.ExecVerified}
	}
	j.labels = labelsOf(j.host)
	j.Decision = verify.Host(s, j.host, old)
	if !j.Decision.Allowed() && s.Policy != nil && old == nil && j.host.ExecMode == object.ExecRaw {
		_, j.Excused = s.Policy.Hosts.RawUntil(j.Namespace, j.Name, s.Now)
	}
}

// labelsOf identifies the labels of a host without keeping them.
func labelsOf(h *object.Host) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
		fmt.Fprintf(sum, "%q=%q\n", key, h.Labels[key])
	}
	return string(sum.Sum(nil))
}

// waived asks whether the policy takes this very content.
func (j *judged) waived(s verify.Snapshot, content string) {
	if j.Decision.Allowed() || s.Policy == nil || content == "" {
		return
	}
	if _, ok := s.Policy.WaiverOf(j.Kind, j.Name, content, s.Now); ok {
		j.Excused = true
	}
}
