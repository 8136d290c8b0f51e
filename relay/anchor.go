package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/internal/inforce"
)

// readAnchor reads what this relay was given out of band: the root keys and the
// cluster's id. It is read once: an anchor that changes needs a new process.
func readAnchor(dir string) (inforce.Anchor, error) {
	text, err := readFile(filepath.Join(dir, inforce.RootsFile))
	if err != nil {
		return inforce.Anchor{}, err
	}
	id, err := readFile(filepath.Join(dir, inforce.ClusterIDFile))
	if err != nil {
		return inforce.Anchor{}, err
	}
	anchor, err := inforce.ParseAnchor(text, id)
	if err != nil {
		return inforce.Anchor{}, fmt.Errorf("reading the anchor in %s: %v", dir, err)
	}
	return anchor, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the anchor: %w", err)
	}
	if info.Size() > inforce.MaxAnchorFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, inforce.MaxAnchorFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the anchor: %w", err)
	}
	return text, nil
}

// ownCA is the CA bundle with which this relay itself checks the API server; nil
// where it uses none of its own.
func ownCA(c *rest.Config) ([]byte, error) {
	if len(c.CAData) > 0 || c.CAFile == "" {
		return c.CAData, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's CA: %w", err)
	}
	return text, nil
}
