//go:build linux

package storage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Request is one that reached the server, for its kind. A list, a watch or a create names no object.
type Request struct {
	Verb      string `json:"verb"` // get, list, watch, create, update, patch, delete, deletecollection
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	User      string `json:"user"`
}

func (s *Server) requests() string { return filepath.Join(s.dir, "requests.log") }

// Requests are those so far, in the order in which they came, that match.
func (s *Server) Requests(match func(Request) bool) ([]Request, error) {
	file, err := os.Open(s.requests())
	if err != nil {
		return nil, fmt.Errorf("reading the storage's requests: %w", err)
	}
	var found []Request
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, errors.Join(fmt.Errorf("reading the storage's requests: %q: %w", lines.Text(), err), file.Close())
		}
		if match(r) {
			found = append(found, r)
		}
	}
	return found, errors.Join(lines.Err(), file.Close())
}

// Count is how many requests with the verb there were so far, of anybody: compare before and after.
func (s *Server) Count(verb string) (int, error) {
	found, err := s.Requests(func(r Request) bool { return r.Verb == verb })
	return len(found), err
}

func (s *Server) faults() string { return filepath.Join(s.dir, "faults") }

// FailGets has the next n Gets of objects with the name, in any namespace, answered with HTTP 500.
func (s *Server) FailGets(name string, n int) error {
	if err := os.WriteFile(filepath.Join(s.faults(), name), []byte(strconv.Itoa(n)), 0o600); err != nil {
		return fmt.Errorf("having Gets of %s fail: %w", name, err)
	}
	return nil
}
