package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// judge gives the cluster's verdict on inputs.
type judge struct {
	c        *cli
	anchor   verify.Anchor
	snapshot verify.Snapshot
	profile  string // name for directories of scripts
	// namespace is that of objects that name none.
	namespace string
}

// verdict is a decision, where the object was found, and what the file tells beyond it.
type verdict struct {
	Path     string
	Document string
	Line     int // of the file, from 1; 0 where there is none
	Decision decision.Decision
	Details  []string

	profile *object.JoinProfile // nil for other kinds, and where it cannot be read
	node    *manifest.Node      // nil for a directory of scripts
}

// input judges all that one input holds. What it holds but is not guarded is named on stderr.
func (j *judge) input(in input) []verdict {
	if in.dir != nil {
		d, p := j.scripts(in.dir)
		return []verdict{{Path: in.path, Decision: d, profile: p}}
	}
	if statement.Is(in.data) {
		v := inFile(in, errors.New("is a root statement, not an object of a cluster"))
		v.Decision.Hint = "hostwarrant statement verify FILE --root ROOTS"
		return []verdict{v}
	}
	if isConfigFile(in.data) {
		return []verdict{j.config(in)}
	}
	f, err := manifest.Read(in.data)
	if err != nil {
		return []verdict{inFile(in, err)}
	}
	objects, err := f.Objects()
	// check: Malformed: an object whose kind is in doubt could be a guarded one
	if err != nil {
		return []verdict{inFile(in, err)}
	}
	var all []verdict
	for _, o := range objects {
		// check: Malformed: an object of which it is in doubt whether it is a guarded one
		if o.APIVersion == "" && slices.Contains(guardedKinds(), o.Kind) {
			v := unreadable(object.Meta{Kind: o.Kind, Name: o.Name}, errors.New("has no apiVersion"))
			v.Path, v.Document, v.Line = in.path, o.Where, o.Node.Line
			all = append(all, v)
			continue
		}
		if v, guarded := j.object(o); guarded {
			v.Path, v.Document = in.path, o.Where
			all = append(all, v)
			continue
		}
		j.c.say("note", "%s: %s is of no kind that is guarded, skipped", place(in.path, o.Where), objectName(o))
	}
	return all
}

// inFile is the verdict on a file of which it is not certain what it holds.
func inFile(in input, err error) verdict {
	v := unreadable(object.Meta{Kind: "File", Name: filepath.Base(in.path)}, err)
	v.Path = in.path
	return v
}

func place(path, where string) string {
	if strings.ContainsFunc(path, odd) {
		path = fmt.Sprintf("%q", path)
	}
	if where == "" {
		return path
	}
	return path + ", " + where
}

func guardedKinds() []string {
	return append(verify.Kinds(), object.KindTrustPolicy)
}

// isGuarded tells whether an object is of a kind that is judged.
func isGuarded(o manifest.Object) bool {
	return slices.Contains(guardedKinds(), o.Kind) && o.Group() == object.GroupOf(o.Kind)
}

// object judges one object; false where its kind is not guarded.
func (j *judge) object(o manifest.Object) (verdict, bool) {
	if !isGuarded(o) {
		return verdict{}, false
	}
	meta := object.Meta{Kind: o.Kind, Name: o.Name}
	// check: Malformed: kubectl and we could read two objects in one text
	if err := o.Node.Check(); err != nil {
		return unreadable(meta, err), true
	}
	raw, err := o.Node.JSON()
	if err != nil {
		return unreadable(meta, err), true
	}
	v := verdict{Line: o.Node.Line}
	if v.Decision, v.profile = j.raw(meta, raw); v.profile != nil {
		v.node = o.Node
	}
	return v, true
}

// raw judges the JSON that the API server would get. It gives the profile too, where it is one.
func (j *judge) raw(meta object.Meta, raw []byte) (decision.Decision, *object.JoinProfile) {
	if meta.Kind == object.KindTrustPolicy {
		t, err := object.ParseTrustPolicy(raw)
		if err != nil {
			return decision.From(err).Denied(meta.Kind, meta.Name), nil
		}
		p, d := verify.TrustPolicy(j.anchor, j.snapshot.Policy, t, j.snapshot.Now)
		if d.Allowed() && j.snapshot.ForUpstreamShim {
			for _, n := range hostsetup.UnheldByUpstreamShim(p) {
				d.Warnings = append(d.Warnings, n.Text)
			}
		}
		return d, nil
	}
	raw = j.filled(meta.Kind, j.placed(meta.Kind, raw))
	r := verify.Request{Operation: verify.Create, Kind: meta.Kind, Name: meta.Name, Object: raw}
	if named, err := object.ParseMeta(raw); err == nil {
		r.Namespace = named.Namespace
	}
	d := verify.Admission(j.snapshot, r).Decision
	if meta.Kind != object.KindJoinProfile {
		return d, nil
	}
	p, err := object.ParseJoinProfile(raw)
	if err != nil {
		return d, nil
	}
	return d, p
}

// scripts judges a directory as the profile that sign would print for it.
func (j *judge) scripts(d *scriptDir) (decision.Decision, *object.JoinProfile) {
	name := j.profileOf(d)
	meta := object.Meta{Kind: object.KindJoinProfile, Name: name}
	for _, phase := range slices.Sorted(maps.Keys(d.scripts)) {
		// check: Malformed: JSON would quietly replace bytes that are not UTF-8, and other bytes would be judged
		if err := script.Check(d.scripts[phase]); err != nil {
			return decision.From(err).At(string(phase)).Denied(meta.Kind, meta.Name), nil
		}
	}
	raw, err := d.draft(name).json()
	if err != nil {
		return decision.From(err).Denied(meta.Kind, meta.Name), nil
	}
	decided, p := j.raw(meta, raw)
	// In the cluster there is a file to sign; here it is the directory.
	decided.Hint = strings.Replace(decided.Hint, "hostwarrant sign -i FILE", "hostwarrant sign DIR", 1)
	return decided, p
}

// profileOf is the name of the profile that a directory of scripts is.
func (j *judge) profileOf(d *scriptDir) string {
	if j.profile != "" {
		return j.profile
	}
	if name := d.profile(); name != "" {
		return name
	}
	return d.name
}

// unreadable refuses what may be read in more than one way, or not at all.
func unreadable(meta object.Meta, err error) verdict {
	v := verdict{Decision: malformedAt(err).Denied(meta.Kind, meta.Name)}
	if e, ok := errors.AsType[*manifest.Error](err); ok {
		v.Line = e.Line
	}
	return v
}

// malformedAt says where a text cannot be read.
func malformedAt(err error) *decision.Error {
	if e, ok := errors.AsType[*manifest.Error](err); ok && e.Line > 0 {
		return decision.Errorf(decision.Malformed, "%s", e.What).At(fmt.Sprintf("line %d, column %d", e.Line, e.Col))
	}
	return decision.Errorf(decision.Malformed, "%v", err)
}
