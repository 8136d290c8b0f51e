package mark

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
)

// InTree finds the marks of all Go files and shell scripts below root: product code
// only, neither tests and their data nor what stands beside the programs.
func InTree(root fs.FS) (Found, error) {
	var found Found
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(name, ".go"):
			in, err := InGo(name, source)
			if err != nil {
				return err
			}
			found.add(in)
		case isShell(source):
			found.add(InShell(name, source))
		}
		return nil
	})
	return found, err
}

func skipped(dir string) bool {
	switch path.Base(dir) {
	case "testdata", "hack", "e2e", "testkit", "bin", "tests":
		return true
	}
	return dir != "." && strings.HasPrefix(path.Base(dir), ".")
}

func isShell(source []byte) bool {
	first, _, _ := bytes.Cut(source, []byte("\n"))
	return bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(bytes.TrimSpace(first), []byte("sh"))
}
