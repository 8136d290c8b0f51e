//go:build linux

package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ErrUp is returned by New when the state directory holds a lab already.
var ErrUp = errors.New("a lab is already up")

// entry is one line of the journal: a thing that Down has to undo.
type entry struct {
	Kind  string `json:"kind"` // lab, process, link, cgroup
	Name  string `json:"name"`
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"` // start time of the process, so that a reused pid is never signalled
}

const (
	kindLab     = "lab"
	kindProcess = "process"
	kindLink    = "link"
	kindCgroup  = "cgroup" // by its directory
)

// state is the state directory with its journal.
type state struct {
	dir string
	mu  sync.Mutex
}

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

// createState makes the directory, or takes an empty one, and writes the first line of the journal.
func createState(dir, id string) (*state, error) {
	if dir == "" {
		d, err := os.MkdirTemp("", "hostwarrant-lab-")
		if err != nil {
			return nil, fmt.Errorf("making the lab's state directory: %w", err)
		}
		dir = d
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the lab's state directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o700); err != nil {
		return nil, fmt.Errorf("making the lab's state directory: %w", err)
	}
	f, err := os.OpenFile(journalPath(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w in %s (take it down first: make demo-down)", ErrUp, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("making the lab's journal: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("making the lab's journal: %w", err)
	}
	s := &state{dir: dir}
	return s, s.record(entry{Kind: kindLab, Name: id})
}

// record appends one entry. It is called before the thing is made.
func (s *state) record(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing the lab's journal: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.OpenFile(journalPath(s.dir), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("writing the lab's journal: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the lab's journal: %w", err)
	}
	return nil
}

// readJournal returns the entries in the order in which they were written.
func readJournal(dir string) ([]entry, error) {
	f, err := os.Open(journalPath(dir))
	if err != nil {
		return nil, err
	}
	entries, err := parseJournal(f)
	return entries, errors.Join(err, f.Close())
}

// parseJournal leaves a torn last line out (the writer was killed): nothing was made for it yet.
func parseJournal(r io.Reader) ([]entry, error) {
	var entries []entry
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		var e entry
		if json.Unmarshal(sc.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries, sc.Err()
}

// path joins names below the state directory.
func (s *state) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// lockState takes the directory's lock for Down, so that two of them do not run at once.
func lockState(dir string) (func() error, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
