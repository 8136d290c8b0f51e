package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// terms are what an author says the scripts of a profile are for: in warrant.yaml, in flags, or in
// both, and then the flags win. What is not said is taken from the block that a script has already.
type terms struct {
	Profile   string                      `yaml:"profile"`
	Serial    *serial                     `yaml:"serial"`
	NotBefore string                      `yaml:"notBefore"`
	ValidFor  string                      `yaml:"validFor"`
	Targets   []string                    `yaml:"targets"`
	Params    []string                    `yaml:"params"`
	Phases    map[script.Phase]phaseTerms `yaml:"phases"`
}

// phaseTerms are what is said of one phase alone.
type phaseTerms struct {
	ValidFor string   `yaml:"validFor"`
	Timeout  *serial  `yaml:"timeout"`
	Targets  []string `yaml:"targets"`
	Params   []string `yaml:"params"`
}

// serial is a number in its one spelling: YAML alone would take 010 for 8.
type serial struct{ number }

// UnmarshalYAML takes a plain decimal number.
func (s *serial) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return fmt.Errorf("line %d: %.40q is not a number", n.Line, n.Value)
	}
	if err := s.Set(n.Value); err != nil {
		return fmt.Errorf("line %d: number %.40q: %v", n.Line, n.Value, err)
	}
	return nil
}

// termsFile is the file beside the scripts of a directory.
const termsFile = "warrant.yaml"

// Words that stand for a time in terms.
const (
	never      = "never"
	none       = "none"
	defaultFor = "90d"
)

// parseTerms reads warrant.yaml: one document, no unknown field.
func parseTerms(text []byte) (terms, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return terms{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	// A field without a value would be taken for one that is not there, and so for no limit.
	if at := emptyValue(&root); at != nil {
		return terms{}, fmt.Errorf("line %d: a field without a value", at.Line)
	}
	var t terms
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		// The library names our own type, which is nothing to a reader.
		text := strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), " in type main.", " in ")
		return terms{}, errors.New(strings.TrimPrefix(text, "yaml: unmarshal errors: "))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return terms{}, errors.New("holds more than one YAML document")
	}
	for phase := range t.Phases {
		if !phase.Known() {
			return terms{}, fmt.Errorf("phases: %.40q is not a phase", phase)
		}
	}
	return t, nil
}

// emptyValue finds the first node that says nothing.
func emptyValue(n *yaml.Node) *yaml.Node {
	if n.Tag == "!!null" {
		return n
	}
	for _, child := range n.Content {
		if found := emptyValue(child); found != nil {
			return found
		}
	}
	return nil
}

// termFlags are the flags that say the same as warrant.yaml.
type termFlags struct {
	file                string
	serial              serial
	notBefore, validFor string
	targets, params     []string
	flags               *pflag.FlagSet
}

func (f *termFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.file, "warrant", "", "file of warrant terms (default for a directory: its warrant.yaml)")
	flags.Var(&f.serial, "serial", "serial of this version; it may only rise")
	flags.StringVar(&f.validFor, "valid-for", "", "how long install and join may be run, in days (default 90d with a new serial)")
	flags.StringVar(&f.notBefore, "not-before", "", "time from which the scripts may run, RFC 3339 in UTC, or none (default: this hour, with a new validity)")
	flags.StringArrayVar(&f.targets, "target", nil, `where they may run: any, "class LABEL", "host SHA256:…" or "cluster ID" (may be repeated)`)
	flags.StringArrayVar(&f.params, "param", nil, `a parameter they take, as "NAME required|optional [secret] MATCHER" (may be repeated)`)
}

// over gives t with what the flags say.
func (f *termFlags) over(t terms) terms {
	if f.flags.Changed("serial") {
		t.Serial = &f.serial
	}
	if f.validFor != "" {
		t.ValidFor = f.validFor
	}
	if f.notBefore != "" {
		t.NotBefore = f.notBefore
	}
	if f.targets != nil {
		t.Targets = f.targets
	}
	if f.params != nil {
		t.Params = f.params
	}
	return t
}

// given tells whether anything is said at all.
func (t terms) given() bool {
	return t.Serial != nil || t.NotBefore != "" || t.ValidFor != "" || t.Targets != nil || t.Params != nil || t.Phases != nil
}

// warrant gives the warrant of a phase: what is said, over what its block said before (nil for none).
func (t terms) warrant(profile string, phase script.Phase, before *warrant.Warrant, now time.Time) (*warrant.Warrant, error) {
	// check: WarrantMismatch: terms that were written for another profile
	if t.Profile != "" && t.Profile != profile {
		return nil, decision.Errorf(decision.WarrantMismatch, "the terms are for profile %.80q, this is %.80q", t.Profile, profile).At(string(phase)).
			Try("give the terms of this profile, or leave profile out of them")
	}
	own := t.Phases[phase]
	w := &warrant.Warrant{}
	if before != nil {
		*w = *before
	}
	w.Profile, w.Phase = profile, phase
	if t.Serial != nil {
		w.Serial = int64(t.Serial.number)
	}
	// check: SerialRollback: what cluster and hosts refuse, and a slip: a warrant.yaml that was not raised
	if before != nil && w.Serial < before.Serial {
		return nil, decision.Errorf(decision.SerialRollback, "the serial would fall from %d to %d", before.Serial, w.Serial).At(string(phase)).
			Try(fmt.Sprintf("give --serial %d, or raise it in %s", before.Serial+1, termsFile))
	}
	if before == nil && t.Serial == nil {
		return nil, usage("a new warrant needs a serial: give --serial N, or serial in %s", termsFile)
	}
	if own.Timeout != nil {
		w.Timeout = int(own.Timeout.number)
	}
	if err := t.place(w, own); err != nil {
		return nil, err
	}
	if before == nil || t.Serial != nil || t.ValidFor != "" || own.ValidFor != "" || t.NotBefore != "" {
		return w, t.period(w, own, now)
	}
	return w, nil
}

// place fills in targets and parameters.
func (t terms) place(w *warrant.Warrant, own phaseTerms) error {
	targets, params := t.Targets, t.Params
	if own.Targets != nil {
		targets = own.Targets
	}
	if own.Params != nil {
		params = own.Params
	}
	if targets != nil {
		w.Targets = nil
	}
	for _, text := range targets {
		target, err := warrant.ParseTarget(text)
		if err != nil {
			return usage("target %.80q: %s", text, decision.From(err).What)
		}
		w.Targets = append(w.Targets, target)
	}
	if len(w.Targets) == 0 {
		return usage("a warrant says where the scripts may run: give --target any, or --target %q", "class LABEL")
	}
	if params != nil {
		w.Params = nil
	}
	for _, text := range params {
		param, err := warrant.ParseParam(text)
		if err != nil {
			return usage("param %.80q: %s", text, decision.From(err).What)
		}
		w.Params = append(w.Params, param)
	}
	return nil
}

// period fills in from when and until when the phase may run.
func (t terms) period(w *warrant.Warrant, own phaseTerms, now time.Time) error {
	from := now.UTC().Truncate(time.Hour)
	w.HasNotBefore = t.NotBefore != none
	if t.NotBefore != "" && w.HasNotBefore {
		const layout = "2006-01-02T15:04:05Z"
		given, err := time.Parse(layout, t.NotBefore)
		if err != nil || given.Format(layout) != t.NotBefore { // Parse alone takes fractions too
			return usage("not-before: %.40q is neither a time like 2026-11-29T00:00:00Z nor none", t.NotBefore)
		}
		from = given
	}
	w.NotBefore = 0
	if w.HasNotBefore {
		w.NotBefore = from.Unix()
	}
	length := t.lifetime(w.Phase, own)
	w.Never = length == never
	w.NotAfter = 0
	if w.Never {
		return nil
	}
	days, err := parseDays(length)
	if err != nil {
		return err
	}
	// counted from now, as the policy's and the host's bound on validity is
	w.NotAfter = now.UTC().Truncate(time.Hour).Add(days).Unix()
	return nil
}

// lifetime is how long a phase may be run. Leaving is never forbidden by time unless that is asked for.
func (t terms) lifetime(phase script.Phase, own phaseTerms) string {
	leaving := phase == script.Leave || phase == script.Uninstall
	switch {
	case own.ValidFor != "":
		return own.ValidFor
	case leaving:
		return never
	case t.ValidFor != "":
		return t.ValidFor
	default:
		return defaultFor
	}
}

func parseDays(text string) (time.Duration, error) {
	n, err := parseNumber(strings.TrimSuffix(text, "d"))
	if err != nil || !strings.HasSuffix(text, "d") || n < 1 || n > 3650 {
		return 0, usage("%.40q is not a number of days like 90d", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}
