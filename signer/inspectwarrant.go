package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// warrantFact is what a script says it is for.
type warrantFact struct {
	Profile   string      `json:"profile"`
	Phase     string      `json:"phase"`
	Serial    int64       `json:"serial"`
	NotBefore string      `json:"notBefore,omitempty"`
	NotAfter  string      `json:"notAfter,omitempty"` // absent: without an end
	Leave     string      `json:"leaveSHA256,omitempty"`
	Uninstall string      `json:"uninstallSHA256,omitempty"`
	Targets   []string    `json:"targets"`
	Params    []paramFact `json:"params"`
	Timeout   int         `json:"timeoutSeconds"`
}

// paramFact is a parameter that the script takes. Its value is not in the warrant.
type paramFact struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Secret   bool   `json:"secret"`
	Matcher  string `json:"matcher"` // type, enum, sha256 or re
	Takes    string `json:"takes"`   // the words after it
}

// describeWarrant reads the warrant of a script, if it has one.
func describeWarrant(text []byte) (*warrantFact, string) {
	w, err := warrant.Find(text)
	if err != nil {
		return nil, err.Error()
	}
	if w == nil {
		return nil, ""
	}
	f := &warrantFact{
		Profile: w.Profile, Phase: string(w.Phase), Serial: w.Serial, Leave: w.LeaveSHA256, Uninstall: w.UninstallSHA256,
		Params: []paramFact{}, Timeout: w.TimeoutSeconds(),
	}
	if w.HasNotBefore {
		f.NotBefore = stamp(time.Unix(w.NotBefore, 0))
	}
	if !w.Never {
		f.NotAfter = stamp(time.Unix(w.NotAfter, 0))
	}
	for _, t := range w.Targets {
		f.Targets = append(f.Targets, t.String())
	}
	for _, p := range w.Params {
		f.Params = append(f.Params, paramFact{p.Name, p.Required, p.Secret, p.Matcher.Kind, p.Matcher.Value})
	}
	return f, ""
}

// write shows the warrant of a phase, a line for each thing that a reader looks for.
func (f *warrantFact) write(b *bytes.Buffer, phase string) {
	line := func(text string) { fmt.Fprintf(b, "  %s: warrant: %s\n", phase, escaped(text)) }
	line(fmt.Sprintf("serial %d%s, for %s, at most %d s, as %s of %s", f.Serial, f.term(), strings.Join(f.Targets, ", "), f.Timeout, f.Phase, f.Profile))
	for _, vouched := range []struct{ phase, digest string }{{"leave", f.Leave}, {"uninstall", f.Uninstall}} {
		if vouched.digest != "" {
			line("vouches for " + vouched.phase + " with sha256 " + vouched.digest)
		}
	}
	for _, p := range f.Params {
		line(p.text())
	}
	if len(f.Params) == 0 {
		line("takes no parameters but those that are always sent")
	}
}

func (f *warrantFact) term() string {
	switch {
	case f.NotBefore == "" && f.NotAfter == "":
		return ", without an end"
	case f.NotBefore == "":
		return ", until " + f.NotAfter
	case f.NotAfter == "":
		return ", from " + f.NotBefore + ", without an end"
	default:
		return ", from " + f.NotBefore + " until " + f.NotAfter
	}
}

func (p paramFact) text() string {
	words := "takes " + p.Name + ", optional"
	if p.Required {
		words = "takes " + p.Name + ", required"
	}
	if p.Secret {
		words += ", secret"
	}
	return words + ": " + p.Matcher + " " + p.Takes
}
