//go:build linux

package hosts

import (
	"fmt"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// TestAClockThatIsWrongRevivesNothing: set back to 1970, ahead to 2099, and right again.
func TestAClockThatIsWrongRevivesNothing(t *testing.T) {
	w := newWorld(t)
	in1970, in2099 := time.Unix(60, 0), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, at := range map[string]time.Time{"1970": in1970, "2099": in2099} {
		t.Run(name, func(t *testing.T) {
			w.host.SetClock(t, time.Time{})
			w.reset(t, nil)
			profile := w.profile()
			lasting := w.version(t, profile, serial, neverLeaves)
			hour := w.warrant(script.Join, w.profile())
			hour.NotBefore, hour.NotAfter = w.began.Add(-days(10)).Unix(), w.began.Add(-days(9)).Unix()
			expired := w.order(t, hour, "", w.alice)
			w.judge(t, expired, verdict{18, "it ended at"})
			w.judge(t, lasting.join, verdict{})
			floor := w.read(t, stateDir+"/time-floor")
			if floor != fmt.Sprintf("%d\n", w.began.Add(-time.Hour).Unix()) {
				t.Errorf("the time floor is %q, want the not-before of what ran", floor)
			}

			w.host.SetClock(t, at)
			w.judge(t, expired, verdict{18, ""})
			join := verdict{18, ""}
			if name == "1970" { // the floor stands in for the clock
				join = verdict{}
			}
			w.judge(t, w.version(t, profile, serial, neverLeaves).join, join)
			w.judge(t, lasting.leave, verdict{})
			if got := w.read(t, stateDir+"/time-floor"); got != floor {
				t.Errorf("the time floor went from %q to %q by a clock", floor, got)
			}

			w.host.SetClock(t, time.Time{})
			w.judge(t, lasting.join, verdict{})
			w.judge(t, w.version(t, profile, serial+1, neverLeaves).join, verdict{})
		})
	}
}

// TestAClockThatWasReset: the signed time of something honest brings it forward, and nothing brings it far.
func TestAClockThatWasReset(t *testing.T) {
	w := newWorld(t)
	at := func(profile string, from time.Duration) order {
		v := w.warrant(script.Join, profile)
		v.NotBefore, v.NotAfter = w.began.Add(from).Unix(), w.began.Add(from+days(20)).Unix()
		return w.order(t, v, "", w.alice)
	}
	w.judge(t, at(w.profile(), -time.Hour), verdict{})
	w.host.SetClock(t, time.Unix(60, 0))
	w.judge(t, at(w.profile(), days(92)), verdict{17, ""})
	w.judge(t, at(w.profile(), days(30)), verdict{})
	if got, want := w.read(t, stateDir+"/time-floor"), fmt.Sprintf("%d\n", w.began.Add(days(30)).Unix()); got != want {
		t.Errorf("the time floor is %q, want %q", got, want)
	}
	w.judge(t, at(w.profile(), days(9)), verdict{18, "it ended at"})
}

// TestAFreshHostWithoutAClock has no floor yet: it takes nothing that grants trust.
func TestAFreshHostWithoutAClock(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	w.host.SetClock(t, time.Unix(60, 0))
	w.judge(t, o, verdict{17, ""})
	v := w.warrant(script.Join, w.profile())
	v.HasNotBefore = false
	w.judge(t, w.order(t, v, "", w.alice), verdict{18, "more than 90 days"})
	w.host.SetClock(t, time.Time{})
	w.judge(t, o, verdict{})
}

// TestADamagedTimeFloorRefuses.
func TestADamagedTimeFloorRefuses(t *testing.T) {
	w := newWorld(t)
	const file = stateDir + "/time-floor"
	for name, plant := range map[string]string{
		"missing":               "rm " + file,
		"empty":                 ": >" + file,
		"a word":                "echo never >" + file,
		"negative":              "echo -1 >" + file,
		"a leading zero":        "echo 01796000000 >" + file,
		"too long":              "echo 1796000000000000 >" + file,
		"two lines":             "printf '1\\n1796000000\\n' >" + file,
		"more on its line":      "echo 1 1796000000 >" + file,
		"without its line feed": "printf 1 >" + file,
		"a directory":           "rm " + file + "; mkdir " + file,
		"of another user":       "chown kpssh " + file,
		"others may write it":   "chmod 666 " + file,
		"a link":                "mv " + file + " /root/floor; ln -s /root/floor " + file,
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			o := w.join(t, "")
			w.judge(t, o, verdict{})
			w.root(t, plant)
			w.judge(t, o, verdict{22, "time-floor"})
		})
	}
}
