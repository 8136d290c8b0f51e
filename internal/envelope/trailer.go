package envelope

import (
	"encoding/hex"
	"strconv"
)

const trailerName = "kpssh-trailer"

// Trailer is the last line of the shim's stdout for an envelope with a run-id.
// It says how the script ended and which stdout bytes came before it.
type Trailer struct {
	RunID  RunID
	Phase  Phase
	Exit   int      // exit status of the script, not of the shim
	Bytes  int64    // stdout bytes kept and sent before the trailer
	SHA256 [32]byte // of those bytes
	Cut    bool     // the script produced more, which was discarded
}

func trailerKeys() []string {
	return []string{"run-id", "phase", "exit", "bytes", "sha256", "cut"}
}

// Line is the trailer with its line feed.
func (t Trailer) Line() string {
	return recordLine(trailerName, trailerKeys(), []string{
		string(t.RunID), string(t.Phase), strconv.Itoa(t.Exit),
		strconv.FormatInt(t.Bytes, 10), hex.EncodeToString(t.SHA256[:]), bit(t.Cut),
	}) + "\n"
}

// ParseTrailer reads one trailer line without its line feed. It has one
// spelling: Line gives back what ParseTrailer accepted.
func ParseTrailer(line string) (Trailer, error) {
	v, err := recordFields(line, trailerName, trailerKeys())
	if err != nil {
		return Trailer{}, err
	}
	t := Trailer{RunID: RunID(v[0]), Phase: Phase(v[1])}
	var okExit, okBytes, okSum, okCut bool
	t.Exit, okExit = parseExit(v[2])
	t.Bytes, okBytes = parseNumber(v[3])
	t.SHA256, okSum = parseDigest(v[4])
	t.Cut, okCut = parseBit(v[5])
	if !t.RunID.Valid() || !t.Phase.RunsScript() || !okExit || !okBytes || !okSum || !okCut {
		return Trailer{}, malformed(trailerName, "holds a value that is not in its one spelling")
	}
	return t, nil
}
