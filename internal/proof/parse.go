package proof

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// Parse reads the facts of a proof, without its signature. The error carries Malformed.
func Parse(text []byte) (*Facts, error) {
	r, err := newReader(text)
	if err != nil {
		return nil, err
	}
	f := &Facts{}
	if err := r.head(f); err != nil {
		return nil, err
	}
	if err := r.lists(f); err != nil {
		return nil, err
	}
	if err := r.tail(f); err != nil {
		return nil, err
	}
	// check: Malformed: what stands behind the end is signed and not read
	if len(r.lines) > 0 {
		return nil, r.fail("nothing stands behind %q", end)
	}
	return f, nil
}

// reader hands out the lines of a proof.
type reader struct {
	lines []string // those that were not handed out yet
	at    int      // number of the line that was handed out last
}

func newReader(text []byte) (*reader, error) {
	// check: Malformed: work before verification must be bounded
	if len(text) > MaxBytes {
		return nil, decision.Errorf(decision.Malformed, "the proof is %d bytes long, more than %d", len(text), MaxBytes)
	}
	body, found := bytes.CutSuffix(text, []byte("\n"))
	// check: Malformed: a last line without LF is read by some tools and not by others
	if !found {
		return nil, decision.Errorf(decision.Malformed, "the proof does not end with a line break")
	}
	return &reader{lines: strings.Split(string(body), "\n")}, nil
}

func (r *reader) fail(format string, args ...any) *decision.Error {
	e := decision.Errorf(decision.Malformed, format, args...)
	e.What = "line " + strconv.Itoa(r.at) + " of the proof: " + e.What
	return e
}

// line hands out the next line.
func (r *reader) line(want string) error {
	line := ""
	if len(r.lines) > 0 {
		line, r.lines = r.lines[0], r.lines[1:]
	}
	r.at++
	// check: Malformed: a text for something else, of a later version, or one that was cut short
	if line != want {
		return r.fail("%.80q stands where %q belongs", line, want)
	}
	return nil
}

// is reports whether the next line starts with the word.
func (r *reader) is(word string) bool {
	return len(r.lines) > 0 && strings.HasPrefix(r.lines[0], word+" ")
}

// value hands out what stands behind the word on the next line, which must start with it.
func (r *reader) value(word string, valid func(string) bool) (string, error) {
	found := r.is(word)
	line := ""
	if len(r.lines) > 0 {
		line, r.lines = r.lines[0], r.lines[1:]
	}
	r.at++
	// check: Malformed: a fact that is missing, or somewhere else, must not be guessed
	if !found {
		return "", r.fail("%.80q stands where %q and its value belong", line, word)
	}
	value := line[len(word)+1:]
	// check: Malformed: a second spelling of a fact could mean something else to another reader
	if !valid(value) {
		return "", r.fail("%.80q is no value of %s", value, word)
	}
	return value, nil
}

func matches(e *regexp.Regexp) func(string) bool { return e.MatchString }

func (r *reader) head(f *Facts) error {
	if err := r.line(header); err != nil {
		return err
	}
	cluster, err := r.value("cluster", matches(clusterID))
	if err != nil {
		return err
	}
	if cluster != none {
		f.Cluster = cluster
	}
	if f.RunUID, err = r.value("run-uid", matches(uuid)); err != nil {
		return err
	}
	f.Nonce, err = r.value("nonce", matches(nonce))
	return err
}

func (r *reader) lists(f *Facts) error {
	for r.is("mark") {
		name, serial, err := r.pair("mark", func(name string) bool { return len(name) <= maxProfile && profile.MatchString(name) })
		if err != nil {
			return err
		}
		// check: Malformed: two marks of one profile, of which each reader believes another
		if n := len(f.Marks); n > 0 && f.Marks[n-1].Profile >= name {
			return r.fail("mark %s does not come after %s", name, f.Marks[n-1].Profile)
		}
		f.Marks = append(f.Marks, Mark{name, serial})
	}
	after := -1
	for r.is("statement") {
		kind, serial, err := r.pair("statement", func(kind string) bool { return kindOf(kind) >= 0 })
		if err != nil {
			return err
		}
		// check: Malformed: two serials of one kind, of which each reader believes another
		if kindOf(kind) <= after {
			return r.fail("statement %s stands twice, or not in its place", kind)
		}
		after = kindOf(kind)
		f.Statements = append(f.Statements, Serial{statement.Kind(kind), serial})
	}
	return nil
}

// kindOf is the place of a kind of statement, -1 for what is none.
func kindOf(word string) int { return slices.Index(statement.Kinds(), statement.Kind(word)) }

// pair hands out a name and a number.
func (r *reader) pair(word string, valid func(string) bool) (string, int64, error) {
	value, err := r.value(word, func(value string) bool {
		name, serial, _ := strings.Cut(value, " ")
		return valid(name) && number.MatchString(serial)
	})
	if err != nil {
		return "", 0, err
	}
	name, serial, _ := strings.Cut(value, " ")
	return name, toNumber(serial), nil
}

// toNumber reads what number matches, which int64 holds.
func toNumber(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (r *reader) tail(f *Facts) error {
	var err error
	if f.BootID, err = r.value("boot-id", matches(uuid)); err != nil {
		return err
	}
	clock, err := r.value("time", matches(number))
	if err != nil {
		return err
	}
	f.Time = toNumber(clock)
	key, err := r.value("kubelet-key", validKey)
	if err != nil {
		return err
	}
	if key != none {
		f.KubeletKey = key
	}
	return r.line(end)
}

// Split takes apart what a host prints in phase prove: the facts, and behind them
// the signature. It judges neither.
func Split(output []byte) (text, armored []byte) {
	at := bytes.Index(output, []byte("\n-----BEGIN SSH SIGNATURE-----\n"))
	if at < 0 {
		return output, nil
	}
	return output[:at+1], output[at+1:]
}
