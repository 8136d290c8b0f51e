package main

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/hostwarrant/hostwarrant/signer/output"
)

// outputFile refuses the name of a format where -o names a file: other commands take formats there.
func outputFile(path string) error {
	if slices.Contains([]string{"text", "json", "yaml", "sarif"}, path) {
		return usage("-o is the file to write here, not a format: ./%s if the file is called that", path)
	}
	return nil
}

// newFile is the file of -o. One that is there is replaced only with --force.
func newFile(path string, data []byte, force bool) (output.Change, error) {
	change := output.Change{Path: path, Data: data}
	if !force {
		return change, nil
	}
	old, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return change, nil
	}
	if err != nil {
		return change, undecided(err)
	}
	if bytes.Contains(old, []byte("PRIVATE KEY-----")) {
		return change, usage("-o %s is a private key: it is not replaced, not even with --force", path)
	}
	change.Old = old
	return change, nil
}

// writeFailed makes a mistake in usage of a file that is in the way.
func writeFailed(err error) error {
	if errors.Is(err, output.ErrExists) {
		return &failure{code: exitUsage, err: err, hint: "give another file to -o, or --force to replace it"}
	}
	return undecided(err)
}

// writeOut writes the file of -o where it is all that a command writes.
func writeOut(path string, data []byte, force bool) error {
	change, err := newFile(path, data, force)
	if err != nil {
		return err
	}
	if err := output.All([]output.Change{change}); err != nil {
		return writeFailed(err)
	}
	return nil
}
