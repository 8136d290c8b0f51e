//go:build linux

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// A host whose clock is wrong judges by it, and by no other: what it takes for too early or over it refuses, for good,
// and the relay says so. With time to spare on both sides nobody notices.
func TestAHostWithAnotherClock(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	spare := []time.Duration{-3 * day, 30 * day} // from, until, as the relay's clock has it
	cases := map[string]struct {
		skew  time.Duration
		valid []time.Duration
		code  envelope.ExitCode
	}{
		"right":          {0, []time.Duration{-hour / 2, hour / 2}, envelope.ExitOK},
		"an hour behind": {-hour, spare, envelope.ExitOK},
		"an hour ahead":  {hour, spare, envelope.ExitOK},
		"a day behind":   {-day, spare, envelope.ExitOK},
		"a day ahead":    {day, spare, envelope.ExitOK},
		"an hour behind, signed half an hour ago": {-hour, []time.Duration{-hour / 2, 30 * day}, envelope.ExitNotYetValid},
		"an hour ahead, over in half an hour":     {hour, []time.Duration{-3 * day, hour / 2}, envelope.ExitExpired},
		"a day behind, signed an hour ago":        {-day, []time.Duration{-hour, 30 * day}, envelope.ExitNotYetValid},
		"a day ahead, over in an hour":            {day, []time.Duration{-3 * day, hour}, envelope.ExitExpired},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			now := time.Now()
			h.SetClock(t, now.Add(c.skew))
			o := h.order(t, "")
			o.Envelope = h.signed(t, "", func(w *warrant.Warrant) {
				w.NotBefore, w.NotAfter = now.Add(c.valid[0]).Unix(), now.Add(c.valid[1]).Unix()
			})
			r := deliver(t, o)
			want, runs := delivery.Succeeded, 1
			if c.code != envelope.ExitOK {
				want, runs = delivery.Refused, 0
			}
			if r.Result != want || r.ShimExit != int(c.code) || h.ran(t) != runs || r.Result.Retried() || !strings.Contains(r.Message, c.code.String()) && runs == 0 {
				t.Errorf("%+v, %d runs, want exit code %d", r, h.ran(t), c.code)
			}
		})
	}
}
