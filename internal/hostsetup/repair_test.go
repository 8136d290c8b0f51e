package hostsetup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

const (
	boot  = "63b6dfb6-deb7-461a-8897-8f68ba802974"
	runID = "0123456789abcdef0123456789abcdef"
)

// hostFacts are a host of which the state alone is looked at.
func hostFacts(t *testing.T, more ...[]string) *Facts {
	t.Helper()
	lines := []string{"time 1700000000", "boot " + boot, "entry 41c0 0 0 " + StateDir}
	lines = append(lines, stateFile("time-floor", "1600000000\n")...)
	lines = append(lines, stateFile("../../../etc/kpssh/floors", "tls-bootstrap 40\nweb-* 1\nweb-a 3\n")...)
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, StateDir+"/../../../etc", "/etc")
	}
	return facts(t, append(lines, slices.Concat(more...)...))
}

// A machine is a host by its trust files, not by a state that a removal left, nor by something of the name.
func TestWhichMachinesAreSetUp(t *testing.T) {
	for line, want := range map[string]bool{
		"entry 41ed 0 0 " + TrustDir: true,
		"entry 81a4 0 0 " + TrustDir: false,
		"entry 41c0 0 0 " + StateDir: false,
	} {
		if got := facts(t, []string{"time 1700000000", "boot " + boot, line}).IsSetUp(); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

func mark(profile, text string) []string { return stateFile("marks/"+profile, text) }

func says(actions []Action) []string {
	var all []string
	for _, a := range actions {
		all = append(all, a.Say)
	}
	return all
}

func TestRepairPlansWhatIsBroken(t *testing.T) {
	const kept = StateDir + "/repaired/"
	const floorOfAll = "content " + TrustDir + "/floors KiAwCg==" // * 0
	const clocks = "write " + StateDir + "/time-floor: the clock's time, 2023-11-14T22:13:20Z"
	owned := append(stateFile("marks/web-b", "serial 9\n"), "entry 8180 990 0 "+StateDir+"/marks/web-b")
	for name, c := range map[string]struct {
		repair   Repair
		facts    []string
		want     []string
		unmended string
	}{
		"nothing": {Repair{}, mark("a", "serial 1\n"), nil, ""},
		"a mark with a floor": {Repair{}, mark("tls-bootstrap", "serial 01\n"), []string{
			"set " + StateDir + "/marks/tls-bootstrap aside as " + kept + "tls-bootstrap.1700000000: the floor 40 is what holds for tls-bootstrap",
		}, ""},
		"a mark without a floor": {Repair{}, mark("a", ""), nil, "marks/a is no mark, and without a floor for a somebody must say its serial: hostwarrant host repair --mark a --serial N"},
		"a mark of the user's":   {Repair{}, owned, []string{"set " + StateDir + "/marks/web-b aside as " + kept + "web-b.1700000000: the floor 1 is what holds for web-b"}, ""},
		"a second one in a second": {
			Repair{Mark: "a", Serial: 7},
			slices.Concat(mark("a", "x"), []string{"entry 8180 0 0 " + kept + "a.1700000000", "entry 8180 0 0 " + kept + "a.1700000000.1"}),
			[]string{"set " + StateDir + "/marks/a aside as " + kept + "a.1700000000.2: it is to be replaced", "write " + StateDir + "/marks/a: serial 7"},
			"",
		},
		"two of one name in one plan": {Repair{}, slices.Concat(mark("running", "x"), stateFile("running", "x"), []string{floorOfAll}), []string{
			"set " + StateDir + "/running aside as " + kept + "running.1700000000: no script that it names is running",
			"set " + StateDir + "/marks/running aside as " + kept + "running.1700000000.1: the floor 0 is what holds for running",
		}, ""},
		"a time floor":               {Repair{}, stateFile("time-floor", "now\n"), []string{"set " + StateDir + "/time-floor aside as " + kept + "time-floor.1700000000: it is to be replaced", clocks}, ""},
		"a good time floor":          {Repair{}, stateFile("time-floor", "5\n"), nil, ""},
		"the same, by name":          {Repair{TimeFloor: true}, stateFile("time-floor", "5\n"), []string{"set " + StateDir + "/time-floor aside as " + kept + "time-floor.1700000000: it is to be replaced", clocks}, ""},
		"a time floor of others":     {Repair{}, append(stateFile("time-floor", "5\n"), "entry 81b6 0 0 "+StateDir+"/time-floor"), []string{"set " + StateDir + "/time-floor aside as " + kept + "time-floor.1700000000: it is to be replaced", clocks}, ""},
		"a torn lock":                {Repair{}, stateFile("running", "17 4"), []string{"set " + StateDir + "/running aside as " + kept + "running.1700000000: no script that it names is running"}, ""},
		"the lock of one that ended": {Repair{}, stateFile("running", "17 4 "+boot+" -\n"), nil, ""},
		"the lock of one that runs":  {Repair{}, append(stateFile("running", "17 4 "+boot+" -\n"), "runner 4"), nil, ""},
		"only what is named":         {Repair{Lock: true}, slices.Concat(mark("tls-bootstrap", ""), stateFile("running", "x")), []string{"set " + StateDir + "/running aside as " + kept + "running.1700000000: no script that it names is running"}, ""},
		"the mode of the state":      {Repair{}, []string{"entry 41ed 0 0 " + StateDir}, []string{"make " + StateDir + " root's, mode 0700"}, ""},
		"the owner of the state":     {Repair{State: true}, []string{"entry 41c0 990 0 " + StateDir}, []string{"make " + StateDir + " root's, mode 0700"}, ""},
		"a state that is a file":     {Repair{}, []string{"entry 81a4 0 0 " + StateDir}, nil, StateDir + " is no directory: move it away, then run this again"},
		"a serial":                   {Repair{Mark: "a", Serial: 7}, mark("a", "x"), []string{"set " + StateDir + "/marks/a aside as " + kept + "a.1700000000: it is to be replaced", "write " + StateDir + "/marks/a: serial 7"}, ""},
		"a serial above a sound one": {Repair{Mark: "a", Serial: 7}, mark("a", "serial 6\n"), []string{"set " + StateDir + "/marks/a aside as " + kept + "a.1700000000: it is to be replaced", "write " + StateDir + "/marks/a: serial 7"}, ""},
		"a serial where none was":    {Repair{Mark: "a", Serial: 0}, nil, []string{"write " + StateDir + "/marks/a: serial 0"}, ""},
		"a mark left to its floor":   {Repair{Mark: "web-a", Serial: -1}, mark("web-a", "x"), []string{"set " + StateDir + "/marks/web-a aside as " + kept + "web-a.1700000000: it is to be replaced"}, ""},
		"a run that was cut short":   {Repair{Run: runID}, stateFile("runs/"+runID, "start join 17 4 "+boot+"\n"), []string{"set " + StateDir + "/runs/" + runID + " aside as " + kept + runID + ".1700000000: whoever sends this run again has it run again"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			actions, unmended, err := c.repair.Plan(hostFacts(t, c.facts))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, says(actions)); diff != "" || !strings.HasSuffix(strings.Join(unmended, "\n"), c.unmended) || c.unmended == "" && unmended != nil {
				t.Errorf("unmended %q, plan (-want +got):\n%s", unmended, diff)
			}
		})
	}
	floorless, _, err := Repair{}.Plan(facts(t, append(mark("a", "serial 1\n"), "time 1700000000", "entry 41c0 0 0 "+StateDir)))
	if err != nil || len(floorless) != 1 || string(floorless[0].Content) != "1700000000\n" {
		t.Errorf("marks without a time floor: %v, %v", floorless, err)
	}
	lost, _, err := Repair{State: true}.Plan(facts(t, []string{"time 1"}))
	if err != nil || len(lost) != 1 || lost[0].Deed != MakeDirectory {
		t.Errorf("a state that is lost: %v, %v", lost, err)
	}
	written, _, err := Repair{Mark: "a", Serial: 42}.Plan(hostFacts(t))
	if err != nil || len(written) != 1 || string(written[0].Content) != "serial 42\n" || fmt.Sprint(markSerial(written[0].Content)) == "" {
		t.Errorf("a mark that is written: %v, %v", written, err)
	}
}

func TestRepairRefuses(t *testing.T) {
	running := append(stateFile("running", "17 4 "+boot+" "+runID+"\n"), "runner 4")
	for name, c := range map[string]struct {
		repair Repair
		facts  []string
		want   decision.Reason
	}{
		"lowering a sound mark":          {Repair{Mark: "a", Serial: 41}, mark("a", "serial 42\n"), decision.SerialRollback},
		"writing it as it is":            {Repair{Mark: "a", Serial: 42}, mark("a", "serial 42\n"), decision.SerialRollback},
		"taking a sound one away":        {Repair{Mark: "web-a", Serial: -1}, mark("web-a", "serial 42\n"), decision.SerialRollback},
		"a mark below its floor":         {Repair{Mark: "tls-bootstrap", Serial: 39}, mark("tls-bootstrap", "x"), decision.SerialRollback},
		"a mark below the higher floor":  {Repair{Mark: "web-a", Serial: 2}, nil, decision.SerialRollback},
		"no serial and no floor":         {Repair{Mark: "a", Serial: -1}, mark("a", "x"), decision.Malformed},
		"a mark somewhere else":          {Repair{Mark: "../a", Serial: 1}, nil, decision.Malformed},
		"a run somewhere else":           {Repair{Run: "../a"}, stateFile("runs/../a", "x"), decision.Malformed},
		"a run that nobody knows":        {Repair{Run: runID}, nil, decision.Malformed},
		"a run that has ended":           {Repair{Run: runID}, stateFile("runs/"+runID, "start join 17 4 "+boot+"\nkpssh-outcome: v1 x\n"), decision.InUse},
		"a run that goes on":             {Repair{Run: runID}, append(stateFile("runs/"+runID, "start join 17 4 "+boot+"\n"), running...), decision.InUse},
		"the lock of a run that goes on": {Repair{Lock: true}, running, decision.InUse},
	} {
		t.Run(name, func(t *testing.T) {
			actions, _, err := c.repair.Plan(hostFacts(t, c.facts))
			if actions != nil {
				t.Errorf("it would %v", actions)
			}
			wantReason(t, err, c.want)
		})
	}
	// The near misses: the process id was given to another program, or there was a reboot.
	for _, other := range []string{"17 5 " + boot + " -\n", "17 4 00000000-0000-0000-0000-000000000000 -\n"} {
		if actions, _, err := (Repair{Lock: true}).Plan(hostFacts(t, append(stateFile("running", other), "runner 4"))); err != nil || len(actions) != 1 {
			t.Errorf("the lock of a run that is over: %v, %v", actions, err)
		}
	}
}
