package hostrun

import (
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

func TestRunTime(t *testing.T) {
	cases := map[string]struct {
		phase  v1alpha1.HostRunPhase
		stated string
		want   time.Duration
	}{
		"join":                    {"join", "", 300 * time.Second},
		"leave":                   {"leave", "", 180 * time.Second},
		"install":                 {"install", "", 600 * time.Second},
		"uninstall":               {"uninstall", "", 600 * time.Second},
		"more":                    {"join", "1h5m", 65 * time.Minute},
		"less changes nothing":    {"join", "10s", 300 * time.Second},
		"too much":                {"join", "100h", maxScriptTime},
		"nonsense":                {"join", "soon", 300 * time.Second},
		"negative":                {"join", "-1h", 300 * time.Second},
		"a phase that nobody has": {"", "", 600 * time.Second},
	}
	for name, c := range cases {
		if got := runTime(c.phase, c.stated, nil); got != c.want+runMargin {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestDelayGrowsWithinTheBoundsOfItsReason(t *testing.T) {
	start := time.Unix(1000, 0)
	for reason, longest := range map[string]time.Duration{"Busy": maxDelay, "Cut": maxDelay, "PolicyUnavailable": maxDelay, "Unreachable": maxUnreachableDelay} {
		for passed, want := range map[time.Duration]time.Duration{0: minDelay, 40 * time.Second: 10 * time.Second, time.Hour: longest} {
			low, high := delay(start, start.Add(passed), 0, reason), delay(start, start.Add(passed), 1, reason)
			if low != want*3/4 || high != want*5/4 {
				t.Errorf("%s after %s: %s to %s", reason, passed, low, high)
			}
		}
	}
}
