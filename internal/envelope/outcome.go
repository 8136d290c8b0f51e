package envelope

import (
	"encoding/hex"
	"strconv"
)

const outcomeName = "kpssh-outcome"

// OutcomeState says what a host knows of a run-id.
type OutcomeState string

// The states of an outcome record.
const (
	OutcomeEnded   OutcomeState = "ended"   // the script was started and is over
	OutcomeRunning OutcomeState = "running" // it runs now
	OutcomeUnknown OutcomeState = "unknown" // the host never saw the run-id, or forgot it
)

// Unknown stands for a number that the host does not know ("-" on the wire).
const Unknown = -1

// Outcome is what the phase outcome prints, and what a known run-id is answered
// with instead of a second run. An ended run of which the host lost the end (it
// was switched off) has unknown values.
type Outcome struct {
	RunID  RunID
	State  OutcomeState
	Phase  Phase  // empty: unknown
	Code   int    // exit code that the shim gave or would have given, or Unknown
	Exit   int    // exit status of the script, or Unknown
	Bytes  int64  // stdout bytes kept, or Unknown
	SHA256 string // lower-case hex of those bytes, empty: unknown
	Cut    int    // 0, 1 or Unknown
}

func outcomeKeys() []string {
	return []string{"run-id", "state", "phase", "code", "exit", "bytes", "sha256", "cut"}
}

// Line is the record with its line feed.
func (o Outcome) Line() string {
	return recordLine(outcomeName, outcomeKeys(), []string{
		string(o.RunID), string(o.State), orUnknown(string(o.Phase)), number(int64(o.Code)),
		number(int64(o.Exit)), number(o.Bytes), orUnknown(o.SHA256), number(int64(o.Cut)),
	}) + "\n"
}

// ParseOutcome reads one outcome line without its line feed, strictly: Line
// gives back what ParseOutcome accepted.
func ParseOutcome(line string) (Outcome, error) {
	v, err := recordFields(line, outcomeName, outcomeKeys())
	if err != nil {
		return Outcome{}, err
	}
	if v[2] == "" || v[6] == "" {
		return Outcome{}, malformed(outcomeName, "holds an empty value, unknown is %q", unknownValue)
	}
	o := Outcome{RunID: RunID(v[0]), State: OutcomeState(v[1]), Phase: Phase(known(v[2])), SHA256: known(v[6])}
	var okCode, okExit, okBytes, okCut bool
	var n int64
	n, okCode = optional(v[3], maxExit)
	o.Code = int(n)
	n, okExit = optional(v[4], maxExit)
	o.Exit = int(n)
	o.Bytes, okBytes = optional(v[5], 0)
	n, okCut = optional(v[7], 1)
	o.Cut = int(n)
	if !okCode || !okExit || !okBytes || !okCut || !o.consistent() {
		return Outcome{}, malformed(outcomeName, "holds a value that is not in its one spelling")
	}
	return o, nil
}

// consistent refuses records that say more than their state can know.
func (o Outcome) consistent() bool {
	if !o.RunID.Valid() || (o.Phase != "" && !o.Phase.RunsScript()) {
		return false
	}
	if o.SHA256 != "" && (len(o.SHA256) != hex.EncodedLen(32) || !lowerHex(o.SHA256)) {
		return false
	}
	open := o.Code == Unknown && o.Exit == Unknown && o.Bytes == Unknown && o.SHA256 == "" && o.Cut == Unknown
	switch o.State {
	case OutcomeEnded:
		return true
	case OutcomeRunning:
		return open
	case OutcomeUnknown:
		return open && o.Phase == ""
	default:
		return false
	}
}

func known(s string) string {
	if s == unknownValue {
		return ""
	}
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return unknownValue
	}
	return s
}

// optional reads a number or "-". A limit of 0 means none.
func optional(s string, limit int64) (int64, bool) {
	if s == unknownValue {
		return Unknown, true
	}
	n, ok := parseNumber(s)
	return n, ok && (limit == 0 || n <= limit)
}

func number(n int64) string {
	if n == Unknown {
		return unknownValue
	}
	return strconv.FormatInt(n, 10)
}
