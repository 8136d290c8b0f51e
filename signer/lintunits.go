package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// lintUnit is one script to lint, and where it stands.
type lintUnit struct {
	path, document, profile string
	phase                   script.Phase
	text                    []byte
	field                   *scriptField // nil for a file of its own
}

// lintUnits finds the scripts that paths hold. phase is for those whose file name does not say it.
func (c *cli) lintUnits(paths []string, phase script.Phase) ([]lintUnit, error) {
	inputs, err := c.gather(paths)
	if err != nil {
		return nil, err
	}
	var all []lintUnit
	var held holding
	for _, in := range inputs {
		units, err := c.unitsOf(in, phase)
		if err != nil {
			return nil, err
		}
		held.take(in, len(units))
		all = append(all, units...)
	}
	return all, held.missing(paths, "lint", "give phase scripts, or files or directories that hold them or SSHJoinProfile objects")
}

func (c *cli) unitsOf(in input, phase script.Phase) ([]lintUnit, error) {
	switch {
	case in.dir != nil:
		var all []lintUnit
		for _, p := range script.Phases() {
			if text := in.dir.scripts[p]; len(bytes.TrimSpace(text)) > 0 {
				all = append(all, lintUnit{path: filepath.Join(in.path, scriptFile(p)), phase: p, text: text})
			}
		}
		return all, nil
	case isScript(in, phase):
		if phase == "" {
			phase = script.Phase(strings.TrimSuffix(filepath.Base(in.path), ".sh"))
		}
		if !phase.Known() {
			return nil, usage("%s: the file name does not say which phase it is: give --phase", name(in.path))
		}
		// An empty script is none: a pipeline that lints nothing must not pass.
		if len(bytes.TrimSpace(in.data)) == 0 {
			return nil, nil
		}
		return []lintUnit{{path: name(in.path), phase: phase, text: in.data}}, nil
	default:
		return c.profileUnits(in)
	}
}

// isScript tells a script from a file of objects: by its name; on stdin by --phase or its first two bytes.
func isScript(in input, phase script.Phase) bool {
	if in.path == "-" {
		return phase != "" || bytes.HasPrefix(in.data, []byte("#!"))
	}
	return !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(in.path))
}

// name is how messages name a path.
func name(path string) string {
	if path == "-" {
		return "stdin"
	}
	return path
}

// profileUnits finds the scripts of the SSHJoinProfiles in a file.
func (c *cli) profileUnits(in input) ([]lintUnit, error) {
	f, err := manifest.Read(in.data)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %v", name(in.path), err))
	}
	objects, err := f.Objects()
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %v", name(in.path), err))
	}
	var all []lintUnit
	for _, o := range objects {
		if o.Kind != object.KindJoinProfile || !isGuarded(o) {
			c.say("note", "%s: %s holds no phase scripts, skipped", place(name(in.path), o.Where), objectName(o))
			continue
		}
		if err := o.Node.Check(); err != nil {
			return nil, undecided(fmt.Errorf("%s: %s: %v", place(name(in.path), o.Where), objectName(o), err))
		}
		scripts := o.Node.Path("spec", "scripts")
		for _, phase := range script.Phases() {
			node := scripts.Get(string(phase))
			if node.Str() == "" {
				continue
			}
			all = append(all, lintUnit{
				path: name(in.path), document: o.Where, profile: o.Kind + "/" + o.Name, phase: phase, text: []byte(node.Str()),
				field: newScriptField(f.Data, node),
			})
		}
	}
	return all, nil
}

// row words a finding for the file in which the script stands.
func (u lintUnit) row(f lint.Finding, ignored string) lintRow {
	r := lintRow{
		Path: u.path, Document: u.document, Profile: u.profile, Phase: string(u.phase), Rule: f.Rule, Severity: f.Severity.String(),
		Line: f.Line, Column: f.Col, EndLine: f.EndLine, EndColumn: f.EndCol, ScriptLine: f.Line, Message: f.Message, Hint: f.Hint, Ignored: ignored,
	}
	if u.field != nil {
		r.Line, r.Column = u.field.at(f.Line, f.Col)
		r.EndLine, r.EndColumn = u.field.at(f.EndLine, f.EndCol)
	}
	return r
}

// scriptField is the place of a script in a YAML or JSON file.
type scriptField struct {
	node   *manifest.Node
	indent []int // characters before each line of the script; nil where it does not stand line by line
}

// newScriptField compares a literal block with the script, line by line: what differs has no place of its own.
func newScriptField(data []byte, node *manifest.Node) *scriptField {
	field := &scriptField{node: node}
	if node.Style != manifest.LiteralB {
		return field
	}
	file := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	var indent []int
	for i, line := range strings.Split(strings.TrimSuffix(node.Text, "\n"), "\n") {
		at := node.Line + i
		if at >= len(file) {
			break
		}
		before, found := strings.CutSuffix(file[at], line)
		if !found || strings.Trim(before, " ") != "" {
			return field
		}
		indent = append(indent, utf8.RuneCountInString(before))
	}
	field.indent = indent
	return field
}

// at turns a place in the script into one in the file. What is behind the last line belongs to that one.
func (f *scriptField) at(line, col int) (int, int) {
	if len(f.indent) == 0 {
		return f.node.Line, f.node.Col
	}
	if line > len(f.indent) {
		line, col = len(f.indent), 1
	}
	return f.node.Line + line, f.indent[line-1] + col
}

// relative makes a path below the working directory relative, as code hosts want it.
func relative(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
