package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// testTimeout ends a package whose tests a mutant makes hang. Far above what any needs.
const testTimeout = "10m"

// tree is a copy of the working tree that mutants may live in.
type tree struct {
	root string
	home string   // directory that goes away with it
	fast []string // directories of the packages that need no cluster, as ./dir

	passed map[string]bool // sets of packages whose tests pass without a mutant
}

// copyTree copies what git tracks or would track. The data beside the checkout that
// some tests read stays reachable under the same relative path.
func copyTree(ctx context.Context) (*tree, error) {
	top, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	t := &tree{root: filepath.Join(home, "tree"), home: home, passed: map[string]bool{}}
	if err := t.fill(ctx, top); err != nil {
		t.remove()
		return nil, err
	}
	return t, nil
}

func (t *tree) fill(ctx context.Context, top string) error {
	shared := filepath.Join(filepath.Dir(top), "shared")
	if _, err := os.Stat(shared); err == nil {
		if err := os.Symlink(shared, filepath.Join(t.home, "shared")); err != nil {
			return err
		}
	}
	files, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("listing the files of the tree: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(top, name), filepath.Join(t.root, name)); err != nil {
			return err
		}
	}
	t.fast, err = t.list(ctx, "./...")
	return err
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) { // tracked and deleted
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

func (t *tree) remove() {
	if err := os.RemoveAll(t.home); err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
	}
}

// list gives the packages of a pattern but for e2e/ and hack/: the one needs a
// cluster, the other tests the tree itself.
func (t *tree) list(ctx context.Context, pattern string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pattern)
	cmd.Dir = t.root
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var dirs []string
	for dir := range strings.FieldsSeq(string(output)) {
		name, err := filepath.Rel(t.root, dir)
		if err != nil {
			return nil, err
		}
		top, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		if top != "e2e" && top != "hack" {
			dirs = append(dirs, "./"+filepath.ToSlash(name))
		}
	}
	return dirs, nil
}

// near gives the packages at and below the directory of a file, the nearest tests.
func (t *tree) near(file string) []string {
	dir := "./" + filepath.ToSlash(filepath.Dir(file))
	var packages []string
	for _, p := range t.fast {
		if p == dir || (!strings.HasSuffix(file, ".go") && strings.HasPrefix(p, dir+"/")) {
			packages = append(packages, p)
		}
	}
	return packages
}

// far gives every package whose tests could notice: the shim's, which take minutes, see no Go code.
func (t *tree) far(file string) []string {
	if !strings.HasSuffix(file, ".go") {
		return t.fast
	}
	return slices.DeleteFunc(slices.Clone(t.fast), func(p string) bool { return p == "./shim" })
}

// passes says whether the tests of packages pass without any mutant; else a failure
// with one would mean nothing.
func (t *tree) passes(ctx context.Context, packages []string) error {
	set := strings.Join(packages, " ")
	if t.passed[set] {
		return nil
	}
	if output, err := t.test(ctx, false, packages); err != nil {
		return fmt.Errorf("tests fail without any mutant, nothing can be said about %s:\n%s", set, output)
	}
	t.passed[set] = true
	return nil
}

// test runs the tests of packages and gives what they printed.
func (t *tree) test(ctx context.Context, fresh bool, packages []string) (string, error) {
	if len(packages) == 0 {
		return "", nil
	}
	// -short as in make test-fast: the shim under one shell.
	args := []string{"test", "-short", "-vet=off", "-failfast", "-timeout", testTimeout}
	if fresh {
		args = append(args, "-count=1")
	}
	args = append(args, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.root
	cmd.Env = append(os.Environ(), "REQUIRE_TOOLS=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}
