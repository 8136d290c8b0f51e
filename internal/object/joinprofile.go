package object

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// JoinProfile is what we read of an SSHJoinProfile, with the CRD's default where version is absent.
type JoinProfile struct {
	Meta
	Version string
	// Scripts and Signatures hold the phases that are present and not empty.
	Scripts    map[script.Phase]string
	Signatures map[script.Phase]string
	// Timeouts holds the phases for which spec.timeouts says how long they may run.
	Timeouts map[script.Phase]time.Duration
}

// ParseJoinProfile reads an SSHJoinProfile from JSON. The error carries Malformed.
func ParseJoinProfile(raw []byte) (*JoinProfile, error) {
	o, err := parse(raw, KindJoinProfile)
	if err != nil {
		return nil, err
	}
	p := &JoinProfile{Meta: o.Meta, Version: "1"} // the CRD's default
	var scripts, signatures, timeouts fields
	err = o.spec.getAll("spec", map[string]any{"version": &p.Version, "scripts": &scripts, "signatures": &signatures, "timeouts": &timeouts})
	if err != nil {
		return nil, err
	}
	if p.Scripts, err = phases("spec.scripts", scripts); err != nil {
		return nil, err
	}
	if p.Signatures, err = phases("spec.signatures", signatures); err != nil {
		return nil, err
	}
	if p.Timeouts, err = durations("spec.timeouts", timeouts); err != nil {
		return nil, err
	}
	return p, p.complete()
}

// duration is the CRD's pattern; Go's own reader takes more.
var duration = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)

// durations reads a time for each phase.
func durations(path string, f fields) (map[script.Phase]time.Duration, error) {
	texts, err := phases(path, f)
	if err != nil {
		return nil, err
	}
	all := map[script.Phase]time.Duration{}
	for phase, text := range texts {
		d, err := time.ParseDuration(text)
		// check: Malformed: a time that readers take differently is no bound
		if err != nil || !duration.MatchString(text) {
			return nil, malformed(path+"."+string(phase), "%.20q is not a time like %q", text, "10m")
		}
		all[phase] = d
	}
	return all, nil
}

// phases reads a text per phase. Empty and null mean absent.
func phases(path string, f fields) (map[script.Phase]string, error) {
	texts := map[script.Phase]string{}
	for name := range f {
		phase := script.Phase(name)
		// check: Malformed: what stands under a name we do not know would be carried but never judged
		if !phase.Known() {
			return nil, malformed(path, "%.60q is not a phase", name)
		}
		var text string
		if err := f.get(path, name, &text); err != nil {
			return nil, err
		}
		if text != "" {
			texts[phase] = text
		}
	}
	return texts, nil
}

// complete checks what the CRD's schema demands too, so that the offline
// verdict is the cluster's.
func (p *JoinProfile) complete() error {
	for _, phase := range []script.Phase{script.Install, script.Join, script.Leave} {
		// check: Malformed: an empty script in an envelope means the host's kept copy, not these bytes
		if p.Scripts[phase] == "" {
			return malformed("spec.scripts."+string(phase), "is missing or empty").Try("a profile has install, join and leave scripts")
		}
	}
	for _, phase := range script.Phases() {
		// check: Malformed: a signature that covers no script would be carried unjudged
		if p.Scripts[phase] == "" && p.Signatures[phase] != "" {
			return malformed("spec.signatures."+string(phase), "signs a script that is missing")
		}
	}
	return nil
}

// Phases returns the phases that have a script, in order.
func (p *JoinProfile) Phases() []script.Phase {
	return slices.DeleteFunc(script.Phases(), func(phase script.Phase) bool { return p.Scripts[phase] == "" })
}

// Digest is the identity of what the profile runs: "sha256:" and the hex digest of
// one line "<phase> <SHA-256 of the script in hex>" for each phase that has a
// script, in order.
func (p *JoinProfile) Digest() string {
	var lines strings.Builder
	for _, phase := range p.Phases() {
		sum := sha256.Sum256([]byte(p.Scripts[phase]))
		lines.WriteString(string(phase) + " " + hex.EncodeToString(sum[:]) + "\n")
	}
	sum := sha256.Sum256([]byte(lines.String()))
	return "sha256:" + hex.EncodeToString(sum[:])
}
