package hostsetup

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// repairedDir is where what is set aside goes.
const repairedDir = StateDir + "/repaired"

// Repair says what of a host's state to reset. The zero value is whatever is broken
// and can be mended without an answer of the operator's.
type Repair struct {
	State, TimeFloor, Lock bool
	// Mark is a profile; Serial is what its mark is to say, or -1 to leave that to the floors.
	Mark   string
	Serial int64
	// Run is the id of a run whose record is to go.
	Run string
	// Statement is the kind of a kept statement that is to go.
	Statement string
}

// Named reports whether anything was asked for by name.
func (r Repair) Named() bool {
	return r.State || r.TimeFloor || r.Lock || r.Mark != "" || r.Run != "" || r.Statement != ""
}

// Deed is a kind of action.
type Deed string

// The deeds.
const (
	MakeDirectory Deed = "make"  // Path, mode 0700
	MakeRoots     Deed = "own"   // Path belongs to root, mode 0700
	SetAside      Deed = "aside" // Path moves to To
	WriteFile     Deed = "write" // Content to Path, mode 0600, whole and on disk
)

// Action is one change of a host's state, and the line that tells it.
type Action struct {
	Deed    Deed
	Path    string
	To      string
	Content []byte
	Say     string
}

// Plan gives the actions that mend a host, and what it cannot mend. The error, for
// what was asked by name, carries SerialRollback or InUse, or Malformed for a name
// that nothing has.
func (r Repair) Plan(f *Facts) (actions []Action, unmended []string, err error) {
	p := &planner{facts: f}
	if r.State || !r.Named() {
		p.directory()
	}
	if err := p.lock(r); err != nil {
		return nil, nil, err
	}
	p.timeFloor(r)
	if err := p.marks(r); err != nil {
		return nil, nil, err
	}
	if r.Run != "" {
		if err := p.record(r.Run); err != nil {
			return nil, nil, err
		}
	}
	if err := p.statements(r); err != nil {
		return nil, nil, err
	}
	return p.actions, p.unmended, nil
}

type planner struct {
	facts    *Facts
	actions  []Action
	unmended []string
}

func (p *planner) do(a Action, format string, args ...any) {
	a.Say = fmt.Sprintf(format, args...)
	p.actions = append(p.actions, a)
}

// aside keeps what was wrong, for whoever looks into it, beside what was set aside in the same second.
func (p *planner) aside(file, why string) {
	name := fmt.Sprintf("%s/%s.%d", repairedDir, path.Base(file), p.facts.Time)
	to := name
	for n := 1; p.taken(to); n++ {
		to = fmt.Sprintf("%s.%d", name, n)
	}
	p.do(Action{Deed: SetAside, Path: file, To: to}, "set %s aside as %s: %s", file, to, why)
}

func (p *planner) taken(name string) bool {
	_, there := p.facts.Entries[name]
	return there || slices.ContainsFunc(p.actions, func(a Action) bool { return a.To == name })
}

func (p *planner) directory() {
	e, there := p.facts.Entries[StateDir]
	switch {
	case !there:
		p.do(Action{Deed: MakeDirectory, Path: StateDir}, "make %s: what this host had seen is lost, floors are what holds", StateDir)
	case !e.isDirectory():
		p.unmended = append(p.unmended, StateDir+" is no directory: move it away, then run this again")
	case e.owner != 0 || e.permission() != 0o700:
		p.do(Action{Deed: MakeRoots, Path: StateDir}, "make %s root's, mode 0700", StateDir)
	}
}

func (p *planner) lock(r Repair) error {
	file := StateDir + "/running"
	e, there := p.facts.Entries[file]
	if !there || !r.Lock && r.Named() {
		return nil
	}
	fields := strings.Fields(p.facts.text(file))
	alive := p.facts.Runner != "" && len(fields) == 4 && fields[1] == p.facts.Runner && fields[2] == p.facts.Boot
	// check: InUse: a second script beside the one that still changes the host
	if alive && r.Lock {
		return decision.Errorf(decision.InUse, "a phase script is running, process %s", fields[0]).Try("wait for its end, or its time limit")
	}
	torn := !e.isFile() || e.owner != 0 || !lockText.Match(p.facts.Contents[file])
	if !alive && (torn || r.Lock) {
		p.aside(file, "no script that it names is running")
	}
	return nil
}

// timeFloor sets the floor to the clock's time: without one, a host that has marks refuses everything.
func (p *planner) timeFloor(r Repair) {
	file := StateDir + "/time-floor"
	e, there := p.facts.Entries[file]
	if !r.TimeFloor && r.Named() {
		return
	}
	lost := !there && len(p.facts.below(StateDir+"/marks")) > 0
	broken := there && (!e.isFile() || e.owner != 0 || e.permission()&0o022 != 0 || !floorText.Match(p.facts.Contents[file]))
	if !lost && !broken && !r.TimeFloor {
		return
	}
	if there {
		p.aside(file, "it is to be replaced")
	}
	now := time.Unix(p.facts.Time, 0).UTC().Format(time.RFC3339)
	p.do(Action{Deed: WriteFile, Path: file, Content: fmt.Appendf(nil, "%d\n", p.facts.Time)}, "write %s: the clock's time, %s", file, now)
}

// floorText is what the time floor holds.
var floorText = regexp.MustCompile(`^[1-9][0-9]{0,14}\n$`)

// statements sets a kept statement aside that is not the one that was accepted. What was rendered from it
// stays as it is.
func (p *planner) statements(r Repair) error {
	for _, kind := range statement.Kinds() {
		named := r.Statement == string(kind)
		if r.Named() && !named {
			continue
		}
		file := statementPath(kind)
		// check: InUse: without the statement that revoked a key, an older one brings the key back
		if named && !p.facts.damaged(kind) {
			return decision.Errorf(decision.InUse, "there is no %s statement here that is damaged", kind).Try("a newer statement replaces a sound one")
		}
		if named {
			p.aside(file, "send the newest "+string(kind)+" statement again at once, for this host takes any now")
		} else if p.facts.damaged(kind) {
			p.unmended = append(p.unmended, fmt.Sprintf("%s is damaged; once the newest %s statement is at hand: hostwarrant host repair --statement %s", file, kind, kind))
		}
	}
	// check: Malformed: a slip in the kind must not look like work that was done
	if r.Statement != "" && !slices.Contains(statement.Kinds(), statement.Kind(r.Statement)) {
		return decision.Errorf(decision.Malformed, "%.40q is no kind of statement", r.Statement).
			Try("the kinds are roots, signers, revoke, floor and reset")
	}
	return nil
}

func (p *planner) marks(r Repair) error {
	if r.Mark != "" {
		return p.markTo(r.Mark, r.Serial)
	}
	if r.Named() {
		return nil
	}
	files := p.facts.below(StateDir + "/marks")
	slices.Sort(files)
	for _, file := range files {
		if _, sound := p.mark(file); sound {
			continue
		}
		profile := path.Base(file)
		if floor, found := floorOf(string(p.facts.Contents[TrustDir+"/floors"]), profile); found {
			p.aside(file, fmt.Sprintf("the floor %d is what holds for %s", floor, profile))
		} else {
			p.unmended = append(p.unmended, fmt.Sprintf("%s is no mark, and without a floor for %s somebody must say its serial: hostwarrant host repair --mark %s --serial N", file, profile, profile))
		}
	}
	return nil
}

// mark reads a mark that only root can have written.
func (p *planner) mark(file string) (serial int64, sound bool) {
	e := p.facts.Entries[file]
	serial, ok := markSerial(p.facts.Contents[file])
	return serial, ok && e.isFile() && e.owner == 0 && e.permission()&0o022 == 0
}

func (p *planner) markTo(profile string, serial int64) error {
	// check: Malformed: a name with a slash in it is a file somewhere else
	if !profileName.MatchString(profile) {
		return decision.Errorf(decision.Malformed, "%.80q is not the name of a profile", profile)
	}
	file := StateDir + "/marks/" + profile
	floor, floored := floorOf(string(p.facts.Contents[TrustDir+"/floors"]), profile)
	_, there := p.facts.Entries[file]
	old, sound := p.mark(file)
	// check: SerialRollback: an old script comes back when a mark is lowered by hand
	if sound && serial <= old || floored && serial >= 0 && serial < floor {
		return decision.Errorf(decision.SerialRollback, "the mark of %s is at %d and its floor at %d: nothing lowers them here", profile, old, floor).
			Try("hostwarrant statement sign reset, which the roots sign, lowers a mark")
	}
	if serial < 0 && !floored {
		return decision.Errorf(decision.Malformed, "there is no floor for %s, and without its mark this host would refuse it with 22", profile).
			Try("give the serial that this host has seen last: --serial N")
	}
	if there {
		p.aside(file, "it is to be replaced")
	}
	if serial < 0 {
		return nil
	}
	p.do(Action{Deed: WriteFile, Path: file, Content: markOf(serial)}, "write %s: serial %d", file, serial)
	return nil
}

func (p *planner) record(id string) error {
	file := StateDir + "/runs/" + id
	text, there := p.facts.Contents[file]
	// check: Malformed: a name with a slash in it is a file somewhere else
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || !there {
		return decision.Errorf(decision.Malformed, "there is no record of a run %.40q", id).Try("ls " + StateDir + "/runs")
	}
	running := strings.HasSuffix(p.facts.text(StateDir+"/running"), " "+id) && p.facts.Runner != ""
	// check: InUse: a run that is forgotten while it goes on, or after its end, is run twice
	if running || strings.Contains(string(text), "\nkpssh-outcome: v1 ") {
		return decision.Errorf(decision.InUse, "the record of run %s is whole, or the run goes on", id).Try("a caller asks for its outcome")
	}
	p.aside(file, "whoever sends this run again has it run again")
	return nil
}
