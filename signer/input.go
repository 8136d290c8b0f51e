package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// input is one thing to look at: a file, stdin, or a directory of phase scripts.
type input struct {
	path string
	root string // the argument that it was found by
	data []byte
	dir  *scriptDir
}

// scriptDir holds the phase scripts of a profile and their detached signatures.
type scriptDir struct {
	name       string // the directory's own name, which stands for the profile's unless one is given
	scripts    map[script.Phase][]byte
	signatures map[script.Phase][]byte
	terms      []byte // of warrant.yaml; nil where there is none
}

// gather finds what the paths hold: "-" is stdin; directories are walked as kubectl apply -R does.
func (c *cli) gather(paths []string) ([]input, error) {
	var all []input
	for _, path := range paths {
		found, err := c.gatherOne(path)
		if err != nil {
			return nil, undecided(err)
		}
		for i := range found {
			found[i].root = path
		}
		all = append(all, found...)
	}
	return all, nil
}

// holding keeps which arguments held something. One that held nothing is an error although others did:
// a pipeline that made nothing must not pass. Objects of kinds that are skipped are something, but
// where there are no others, nothing was done.
type holding struct {
	paths map[string]bool
	any   bool
}

// take notes what an input gave.
func (h *holding) take(in input, found int) {
	if h.paths == nil {
		h.paths = map[string]bool{}
	}
	h.any = h.any || found > 0
	h.paths[in.root] = h.paths[in.root] || found > 0 || in.hasObjects()
}

// missing is the error for the first argument that held nothing, nil where each held something.
func (h *holding) missing(paths []string, what, hint string) error {
	for _, path := range paths {
		if !h.any || !h.paths[path] {
			return &failure{code: exitUndecided, err: fmt.Errorf("%s: there is nothing to %s", path, what), hint: hint}
		}
	}
	return nil
}

// hasObjects tells a text with objects, of whatever kind, from one without any.
func (in input) hasObjects() bool {
	f, err := manifest.Read(in.data)
	if err != nil {
		return false
	}
	objects, err := f.Objects()
	return err == nil && slices.ContainsFunc(objects, func(o manifest.Object) bool { return o.Kind != "" })
}

func (c *cli) gatherOne(path string) ([]input, error) {
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			// A link to a directory that is named is meant; those inside are not followed.
			if path, err = filepath.EvalSymlinks(path); err != nil {
				return nil, err
			}
			return c.walk(path)
		}
	}
	data, err := c.read(path)
	if err != nil {
		return nil, err
	}
	return []input{{path: path, data: data}}, nil
}

func (c *cli) walk(dir string) ([]input, error) {
	var all []input
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			scripts, err := readScripts(path)
			if err == nil && scripts != nil {
				all = append(all, input{path: path, dir: scripts})
			}
			return err
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			c.say("note", "%s: a link to a directory, not followed", path)
			return nil
		}
		data, err := readRegular(path)
		if err == nil && isTerms(all, path, data) {
			return nil
		}
		all = append(all, input{path: path, data: data})
		return err
	})
	return all, err
}

// isTerms tells the warrant.yaml of a directory of scripts from a manifest of that name.
func isTerms(before []input, path string, data []byte) bool {
	beside := func(in input) bool { return in.dir != nil && in.path == filepath.Dir(path) }
	if filepath.Base(path) != termsFile || !slices.ContainsFunc(before, beside) {
		return false
	}
	_, err := parseTerms(data)
	return err == nil
}

// readScripts reads the phase scripts of a directory; nil where it has none.
func readScripts(dir string) (*scriptDir, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &scriptDir{name: filepath.Base(absolute), scripts: map[script.Phase][]byte{}, signatures: map[script.Phase][]byte{}}
	for _, phase := range script.Phases() {
		path := filepath.Join(dir, scriptFile(phase))
		if err := readInto(d.scripts, phase, path); err != nil {
			return nil, err
		}
		if err := readInto(d.signatures, phase, path+".sig"); err != nil {
			return nil, err
		}
	}
	if len(d.scripts)+len(d.signatures) == 0 {
		return nil, nil
	}
	d.terms, err = readRegular(filepath.Join(dir, termsFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return d, err
}

func scriptFile(phase script.Phase) string { return string(phase) + ".sh" }

// readInto reads a file that may be absent.
func readInto(into map[script.Phase][]byte, phase script.Phase, path string) error {
	data, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	into[phase] = data
	return err
}

// readRegular reads a file that nobody named: a pipe or a device among them would block for ever.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readFile(path)
}

// read reads a file, or stdin for "-".
func (c *cli) read(path string) ([]byte, error) {
	if path == "-" {
		return limited("stdin", c.in)
	}
	return readFile(path)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return limited(path, f)
}

func limited(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, manifest.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %v", name, err)
	}
	if len(data) > manifest.MaxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, manifest.MaxFile)
	}
	return data, nil
}

// isDetached tells a trust policy document from a Kubernetes object.
func isDetached(data []byte) bool {
	f, err := manifest.Read(data)
	if err != nil || len(f.Docs) != 1 {
		return false
	}
	return f.Docs[0].Get("kind") == nil && f.Docs[0].Get("clusters") != nil
}

// blocks takes a text of armored signatures apart.
func blocks(text string) []string {
	const end = "-----END SSH SIGNATURE-----"
	var all []string
	for _, part := range strings.SplitAfter(text, end) {
		if part = strings.TrimPrefix(part, "\n"); part != "" {
			all = append(all, part+"\n")
		}
	}
	return all
}
