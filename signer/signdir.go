package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// dirOptions name the profile that a directory becomes.
type dirOptions struct{ profile, version string }

// dns1123 is what metadata.name of a cluster-scoped object may be (RFC 1123, as Kubernetes has it).
var dns1123 = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// profileVersion is the pattern of SSHJoinProfile.spec.version.
var profileVersion = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// directory signs the phase scripts of a directory. It gives the profile, and the signature files that
// are to be written.
func (s *scriptSigner) directory(dir string, opts dirOptions) ([]byte, []file, error) {
	d, err := readScripts(dir)
	if err != nil {
		return nil, nil, undecided(err)
	}
	if d == nil {
		return nil, nil, undecided(fmt.Errorf("%s: %w", dir, errNoScripts))
	}
	name := opts.profile
	if name == "" {
		name = d.name
		s.c.say("note", "the profile is named %q after the directory; --profile gives it another name", name)
	}
	if !dns1123.MatchString(name) || len(name) > 253 {
		return nil, nil, usage("%.80q cannot be the name of a profile: use a-z, 0-9, - and . in --profile", name)
	}
	context := dir + ": " + object.KindJoinProfile + "/" + name
	var files []file
	for _, phase := range script.Phases() {
		text, there := d.scripts[phase]
		if !there {
			continue
		}
		path := filepath.Join(dir, scriptFile(phase)+".sig")
		old := d.signatures[phase]
		signed, err := s.phase(phase, text, string(old))
		if err != nil {
			return nil, nil, refused(context, err)
		}
		d.signatures[phase] = []byte(signed)
		files = append(files, file{path: path, old: old, data: []byte(signed)})
	}
	profile, err := s.profile(name, opts.version, d)
	if err != nil {
		return nil, nil, refused(context, err)
	}
	return profile, files, nil
}

// file is a file to be written; old is nil where there is none yet.
type file struct {
	path      string
	old, data []byte
}

func (f file) write() error {
	if f.old == nil {
		return output.Create(f.path, f.data, 0o644)
	}
	return output.Replace(f.path, f.old, f.data)
}

// profile writes a signed SSHJoinProfile, and reads it again as the API server would.
func (s *scriptSigner) profile(name, version string, d *scriptDir) ([]byte, error) {
	raw, err := profileJSON(name, version, d)
	if err != nil {
		return nil, err
	}
	was, err := object.ParseJoinProfile(raw)
	if err != nil {
		return nil, err
	}
	for _, style := range []yaml.Style{yaml.LiteralStyle, yaml.DoubleQuotedStyle} {
		text, err := profileYAML(name, version, d, style)
		if err != nil {
			return nil, err
		}
		f, err := manifest.Read(text)
		if err != nil {
			continue
		}
		objects, err := f.Objects()
		if err != nil || len(objects) != 1 {
			continue
		}
		p, err := parseProfile(objects[0])
		if err != nil || !sameScripts(p, was) {
			continue // a script that a literal block cannot hold: with CR, for example
		}
		return text, s.covered(p, was)
	}
	return nil, decision.Errorf(decision.Malformed, "the scripts cannot be written as YAML")
}

func sameScripts(a, b *object.JoinProfile) bool {
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && bytes.Equal(left, right)
}

func profileYAML(name, version string, d *scriptDir, style yaml.Style) ([]byte, error) {
	texts := func(m map[script.Phase][]byte) *yaml.Node {
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, phase := range script.Phases() {
			if text, there := m[phase]; there {
				n.Content = append(n.Content, scalarNode(string(phase), 0), scalarNode(string(text), style))
			}
		}
		return n
	}
	doc := mapping(
		member{"apiVersion", scalarNode(profileAPIVersion, 0)},
		member{"kind", scalarNode(object.KindJoinProfile, 0)},
		member{"metadata", mapping(member{"name", scalarNode(name, 0)})},
		member{"spec", mapping(
			member{"version", scalarNode(version, yaml.DoubleQuotedStyle)},
			member{"scripts", texts(d.scripts)},
			member{"signatures", texts(d.signatures)},
		)},
	)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("writing YAML: %v", err)
	}
	return b.Bytes(), enc.Close()
}

func scalarNode(text string, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style}
}

// member is a name and a node in a mapping.
type member struct {
	name  string
	value *yaml.Node
}

func mapping(members ...member) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, m := range members {
		n.Content = append(n.Content, scalarNode(m.name, 0), m.value)
	}
	return n
}
