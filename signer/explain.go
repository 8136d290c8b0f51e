package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// explain adds to refusals what the file tells and the object in the cluster does not: the line, how
// the script is written in it, and, where another of the paths holds the signed bytes, the first byte
// that differs. The decision and its words stay the cluster's.
func explain(all []verdict) {
	for i := range all {
		v := &all[i]
		if v.Decision.Allowed() || v.profile == nil {
			continue
		}
		phase := script.Phase(v.Decision.Where)
		if !phase.Known() {
			continue
		}
		v.place(phase)
		if v.Decision.Reason == decision.SignatureMalformed {
			v.explainStyle("signatures", phase)
		}
		if changed(v.Decision.Reason) {
			v.explainStyle("scripts", phase)
			v.explainDifference(phase, all)
		}
	}
}

func changed(r decision.Reason) bool {
	return r == decision.BytesChanged || r == decision.NewlineChanged
}

var lineNumber = regexp.MustCompile(`\bline ([0-9]{1,7})\b`)

// place finds the line of the file that a refusal is about: that of the script, and where the words
// name a line of the script and it is written line by line, that one.
func (v *verdict) place(phase script.Phase) {
	n := v.script(phase)
	if n == nil {
		return
	}
	v.Line = n.Line
	m := lineNumber.FindStringSubmatch(v.Decision.What)
	if m == nil || n.Style != manifest.LiteralB {
		return
	}
	if line, err := strconv.Atoi(m[1]); err == nil {
		v.Line += line
	}
}

func (v *verdict) script(phase script.Phase) *manifest.Node {
	if v.node == nil {
		return nil
	}
	return v.node.Path("spec", "scripts", string(phase))
}

func (v *verdict) detail(format string, args ...any) {
	v.Details = append(v.Details, fmt.Sprintf(format, args...))
}

// explainStyle names a way of writing that changes the bytes of what is written.
func (v *verdict) explainStyle(field string, phase script.Phase) {
	if v.node == nil {
		return
	}
	n := v.node.Path("spec", field, string(phase))
	if n == nil {
		return
	}
	at := fmt.Sprintf("spec.%s.%s, line %d", field, phase, n.Line)
	lost := v.Decision.Reason == decision.NewlineChanged
	switch {
	case n.Style == manifest.Folded:
		v.detail("%s: it is a folded block scalar (>), which joins lines: write it with |", at)
	case n.Style == manifest.Plain, n.Style == manifest.Single:
		v.detail("%s: it is written without a block scalar, which joins lines: write it with |", at)
	case n.Style == manifest.LiteralB && lost && n.Chomp == '-':
		v.detail("%s: the block scalar says |-, which drops the final newline: write it with |", at)
	case n.Style == manifest.LiteralB && lost && n.Chomp == '+':
		v.detail("%s: the block scalar says |+, which keeps the empty lines behind it: write it with |", at)
	}
}

// maxSources bounds the texts that are tried for one refusal: each costs a verification.
const maxSources = 16

// explainDifference looks for the signed bytes among all that was given.
func (v *verdict) explainDifference(phase script.Phase, all []verdict) {
	signatures, err := sshsig.ParseAllWithCertificates([]byte(v.profile.Signatures[phase]))
	if err != nil {
		return
	}
	tried := 0
	for _, other := range all {
		if other.profile == nil || other.profile == v.profile || other.profile.Name != v.profile.Name {
			continue
		}
		if tried++; tried > maxSources {
			return
		}
		text := []byte(other.profile.Scripts[phase])
		for _, sig := range signatures {
			if sig.Verify(script.Namespace, text) == nil {
				v.detail("the signed bytes are those of %s; the first that differs is %s", place(other.Path, other.Document),
					difference(text, []byte(v.profile.Scripts[phase])))
				return
			}
		}
	}
}

// difference tells where two texts part, and how they go on there.
func difference(signed, got []byte) string {
	at := 0
	for at < min(len(signed), len(got)) && signed[at] == got[at] {
		at++
	}
	for at > 0 && at < len(signed) && !utf8.RuneStart(signed[at]) {
		at--
	}
	before := signed[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("on line %d, column %d: signed %s, here %s", line, column, excerpt(signed[at:]), excerpt(got[at:]))
}

func excerpt(text []byte) string {
	if len(text) == 0 {
		return "the end"
	}
	end := bytes.IndexByte(text, '\n') + 1
	if end == 0 {
		end = len(text)
	}
	return fmt.Sprintf("%.40q", text[:end])
}
