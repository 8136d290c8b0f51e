package inforce

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// maxReported bounds how many refusals are remembered not to be reported again.
const maxReported = 64

// Refusal is an offer that was refused.
type Refusal struct {
	At      time.Time       `json:"at"`
	Source  string          `json:"source"`
	Reason  decision.Reason `json:"reason"`
	Message string          `json:"message"`
	// Offered and InForce are digests of the documents; "" where there is none, or it cannot be read.
	Offered string `json:"offered,omitempty"`
	InForce string `json:"inForce,omitempty"`
}

// report is a refusal that was reported: the same content for the same reason is no news.
type report struct {
	seen   [sha256.Size]byte
	reason decision.Reason
}

// refuse notes a refusal, and gives it where it was not reported before.
func (k *Keeper) refuse(source string, o *offer, d decision.Decision, now time.Time) *Refusal {
	key := report{o.seen, d.Reason}
	if k.refusal != nil && slices.Contains(k.reported, key) {
		return nil
	}
	r := &Refusal{At: now, Source: source, Reason: d.Reason, Message: d.Message(), Offered: o.digest}
	if k.current != nil {
		r.InForce = k.current.Digest
	}
	k.refusal = r
	if slices.Contains(k.reported, key) {
		return nil
	}
	k.reported = append(k.reported, key)
	if len(k.reported) > maxReported {
		k.reported = slices.Delete(k.reported, 0, 1)
	}
	return r
}

// LastRefusal is the last offer that was refused and not followed by a good one, or nil.
func (k *Keeper) LastRefusal() *Refusal { return k.refusal }
