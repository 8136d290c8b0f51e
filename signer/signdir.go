package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// dirOptions name the profile that a directory becomes.
type dirOptions struct{ profile string }

// dns1123 is what metadata.name of a cluster-scoped object may be (RFC 1123, as Kubernetes has it).
var dns1123 = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// profileVersion is the pattern of SSHJoinProfile.spec.version.
var profileVersion = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// directory signs the phase scripts of a directory. It gives the profile, and the files that are to be
// written: scripts whose warrant changed, and signatures.
func (s *signing) directory(dir string, o signOptions) ([]byte, []output.Change, error) {
	read, err := readScripts(dir)
	if err != nil {
		return nil, nil, undecided(err)
	}
	if read == nil {
		return nil, nil, undecided(fmt.Errorf("%s: %w", dir, errNoScripts))
	}
	if read.terms != nil && o.terms.file == "" && s.others != onlyAdd {
		given, err := parseTerms(read.terms)
		if err != nil {
			return nil, nil, undecided(fmt.Errorf("%s: %v", filepath.Join(dir, termsFile), err))
		}
		s.terms, s.termsFile = o.terms.over(given), filepath.Join(dir, termsFile)
	}
	name, err := s.profileName(read, o.dir.profile)
	if err != nil {
		return nil, nil, err
	}
	d := read.draft(name)
	s.subject = dir + ": " + object.KindJoinProfile + "/" + name
	if err := s.signDraft(d, read, o.version); err != nil {
		return nil, nil, inContext(s.subject, err)
	}
	profile, err := s.profile(d)
	if err != nil {
		return nil, nil, refused(s.subject, err)
	}
	return profile, read.changes(dir, d), nil
}

func (s *signing) signDraft(d *draft, read *scriptDir, version string) error {
	if !read.warranted() {
		d.version = version
	}
	if err := s.prepare(d); err != nil {
		return err
	}
	for _, phase := range d.phases() {
		// check: BytesChanged: a second signer must not sign other bytes than the first
		if s.others == onlyAdd && !bytes.Equal(d.scripts[phase], read.scripts[phase]) {
			return decision.Errorf(decision.BytesChanged, "with --add the scripts may not change").At(string(phase)).
				Try("let the first signer sign again")
		}
	}
	// check: WarrantMismatch: a version that is not the serial would be refused by the cluster
	if version != "" && version != d.version {
		return decision.Errorf(decision.WarrantMismatch, "--version %s is not the serial %s of the warrant", version, d.version).
			Try("leave out --version: it is the serial")
	}
	return s.sign(d)
}

// profileName is what the directory's profile is called.
func (s *signing) profileName(read *scriptDir, flag string) (string, error) {
	name := flag
	if name == "" {
		name = s.terms.Profile
	}
	if name == "" {
		name = read.profile()
	}
	if name == "" {
		name = read.name
		s.c.say("note", "the profile is named %q after the directory; --profile gives it another name", name)
	}
	if !dns1123.MatchString(name) || len(name) > 253 {
		return "", usage("%.80q cannot be the name of a profile: use a-z, 0-9, - and . in --profile", name)
	}
	return name, nil
}

// profile is the name that the warrants of the scripts give, or "".
func (d *scriptDir) profile() string {
	for _, w := range d.warrants() {
		return w.Profile
	}
	return ""
}

func (d *scriptDir) warranted() bool { return len(d.warrants()) > 0 }

// warrants are those that can be read, in the order of phases.
func (d *scriptDir) warrants() []*warrant.Warrant {
	var all []*warrant.Warrant
	for _, phase := range script.Phases() {
		if w, err := warrant.Find(d.scripts[phase]); err == nil && w != nil {
			all = append(all, w)
		}
	}
	return all
}

// draft is the profile that the directory stands for.
func (d *scriptDir) draft(name string) *draft {
	made := &draft{
		name: name, timeouts: map[script.Phase]time.Duration{},
		scripts: map[script.Phase][]byte{}, signatures: map[script.Phase]string{},
	}
	for phase, text := range d.scripts {
		made.scripts[phase] = text
	}
	for phase, text := range d.signatures {
		made.signatures[phase] = string(text)
	}
	for _, w := range d.warrants() {
		made.version = strconv.FormatInt(w.Serial, 10)
		made.raise(w)
	}
	return made
}

// changes are the files of a directory that a signed draft changes. All signatures are written again.
func (d *scriptDir) changes(dir string, made *draft) []output.Change {
	var files []output.Change
	for _, phase := range script.Phases() {
		text, there := made.scripts[phase]
		if !there {
			continue
		}
		path := filepath.Join(dir, scriptFile(phase))
		if !bytes.Equal(text, d.scripts[phase]) {
			files = append(files, output.Change{Path: path, Old: d.scripts[phase], Data: text})
		}
		files = append(files, output.Change{Path: path + ".sig", Old: d.signatures[phase], Data: []byte(made.signatures[phase])})
	}
	return files
}

// profile writes a signed SSHJoinProfile, and reads it again as the API server would.
func (s *signing) profile(d *draft) ([]byte, error) {
	for _, style := range []yaml.Style{yaml.LiteralStyle, yaml.DoubleQuotedStyle} {
		text, err := d.yaml(style)
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
		err = s.checkObject(objects[0], d)
		if err != nil && style == yaml.LiteralStyle && decision.From(err).Reason == decision.BytesChanged {
			continue // a script that a literal block cannot hold
		}
		return text, err
	}
	return nil, decision.Errorf(decision.Malformed, "the scripts cannot be written as YAML")
}

const profileAPIVersion = object.GroupKPSSH + "/v1beta1"

// json writes the object as the API server would get it.
func (d *draft) json() ([]byte, error) {
	scripts, timeouts := map[string]string{}, map[string]string{}
	for phase, text := range d.scripts {
		scripts[string(phase)] = string(text)
	}
	for phase, bound := range d.timeouts {
		timeouts[string(phase)] = seconds(bound)
	}
	spec := map[string]any{"scripts": scripts, "signatures": d.signatures, "timeouts": timeouts}
	if d.version != "" {
		spec["version"] = d.version
	}
	return json.Marshal(map[string]any{
		"apiVersion": profileAPIVersion, "kind": object.KindJoinProfile, "metadata": map[string]any{"name": d.name}, "spec": spec,
	})
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d/time.Second)) + "s" }

// yaml writes the object for people to read and apply.
func (d *draft) yaml(style yaml.Style) ([]byte, error) {
	scripts, signatures, timeouts := mapping(), mapping(), mapping()
	for _, phase := range script.Phases() {
		if text, there := d.scripts[phase]; there {
			add(scripts, string(phase), scalarNode(string(text), style))
			add(signatures, string(phase), scalarNode(d.signatures[phase], style))
		}
		if bound, there := d.timeouts[phase]; there {
			add(timeouts, string(phase), scalarNode(seconds(bound), 0))
		}
	}
	version := d.version
	if version == "" {
		version = "1"
	}
	spec := mapping(member{"version", scalarNode(version, yaml.DoubleQuotedStyle)})
	if len(timeouts.Content) > 0 {
		add(spec, "timeouts", timeouts)
	}
	add(spec, "scripts", scripts)
	add(spec, "signatures", signatures)
	doc := mapping(
		member{"apiVersion", scalarNode(profileAPIVersion, 0)},
		member{"kind", scalarNode(object.KindJoinProfile, 0)},
		member{"metadata", mapping(member{"name", scalarNode(d.name, 0)})},
		member{"spec", spec},
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
		add(n, m.name, m.value)
	}
	return n
}

func add(n *yaml.Node, name string, value *yaml.Node) {
	n.Content = append(n.Content, scalarNode(name, 0), value)
}
