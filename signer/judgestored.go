package main

import (
	"bytes"
	"encoding/json"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// stored takes what the files hold for what the cluster holds: each object is judged beside all others.
// What cannot be read is left out here, and refused where it is judged.
func (j *judge) stored(inputs []input) *verify.Held {
	held := &verify.Held{Profiles: map[string]*verify.ProfileFacts{}}
	for _, in := range inputs {
		if in.dir != nil {
			name := j.profileOf(in.dir)
			if raw, err := in.dir.draft(name).json(); err == nil {
				j.hold(held, object.KindJoinProfile, raw)
			}
			continue
		}
		f, err := manifest.Read(in.data)
		if err != nil {
			continue
		}
		objects, err := f.Objects()
		if err != nil {
			continue
		}
		for _, o := range objects {
			if !isGuarded(o) || isFragment(o) || o.Node.Check() != nil {
				continue
			}
			if raw, err := o.Node.JSON(); err == nil {
				j.hold(held, o.Kind, j.placed(o.Kind, raw))
			}
		}
	}
	return held
}

// hold adds one object.
func (j *judge) hold(held *verify.Held, kind string, raw []byte) {
	switch kind {
	case object.KindJoinProfile:
		if p, err := object.ParseJoinProfile(raw); err == nil {
			held.Profiles[p.Name] = verify.FactsOf(p)
		}
	case object.KindHost:
		if h, err := object.ParseHost(raw); err == nil {
			held.AllHosts = append(held.AllHosts, h)
		}
	case object.KindNodeClass:
		if c, err := object.ParseNodeClass(raw); err == nil {
			held.Classes = append(held.Classes, c)
		}
	case object.KindHostStatement:
		if h, err := object.ParseHostStatement(raw); err == nil {
			held.Statements = append(held.Statements, h)
		}
	case object.KindHostRun:
		if r, err := object.ParseHostRun(raw); err == nil {
			held.Runs = append(held.Runs, r)
		}
	}
}

// placed gives an object that names no namespace the one that kubectl would.
func (j *judge) placed(kind string, raw []byte) []byte {
	if kind != object.KindHost && kind != object.KindHostRun {
		return raw
	}
	if m, err := object.ParseMeta(raw); err != nil || m.Namespace != "" {
		return raw
	}
	return withField(raw, "metadata", "namespace", j.namespace)
}

// filled does what the mutating webhook does before the validating one looks.
func (j *judge) filled(kind string, raw []byte) []byte {
	if kind != object.KindHost {
		return raw
	}
	h, err := object.ParseHost(raw)
	if err != nil {
		return raw
	}
	signers, _ := verify.FillSigners(j.snapshot, h)
	if len(signers) == 0 {
		return raw
	}
	return withField(raw, "spec", "trustedSigners", signers)
}

// withField sets one field of a part of an object. What cannot be read comes back as it is.
func withField(raw []byte, part, name string, value any) []byte {
	var o map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&o); err != nil {
		return raw
	}
	inner, ok := o[part].(map[string]any)
	if !ok {
		return raw
	}
	inner[name] = value
	out, err := json.Marshal(o)
	if err != nil {
		return raw
	}
	return out
}
