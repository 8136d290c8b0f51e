//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markerVariable is in the environment of everything that a lab starts. It is how Down finds a process that was
// started but not yet written to the journal when its parent was killed.
const markerVariable = "HOSTWARRANT_LAB"

// stopGrace is how long a process may take to end after SIGTERM. kube-apiserver with open watches would take 20 s
// and more, and has nothing to lose here: etcd holds the data.
const stopGrace = 3 * time.Second

// pollEvery is the period of every wait on a condition that the kernel does not announce.
const pollEvery = 50 * time.Millisecond

// Program is a process that lives as long as its lab, with its output in a file of the state directory.
type Program struct {
	Name string
	Log  string // path of its standard output and error

	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid after done
}

// StartProgram starts cmd in a session of its own, so that Ctrl-C in a terminal does not reach it, and records it.
// Standard output and error go to <state>/log/<name>.log.
func (l *Lab) StartProgram(name string, cmd *exec.Cmd) (*Program, error) {
	if err := l.errClosed(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	log := l.state.path("log", name+".log")
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, markerVariable+"="+l.id)
	cmd.Stdout, cmd.Stderr = f, f
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	p := &Program{Name: name, Log: log, cmd: cmd, done: make(chan struct{})}
	err = l.launch(p)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// launch starts the process unless the lab is closing, and writes its pid to the journal.
func (l *Lab) launch(p *Program) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("the lab is closed")
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	l.programs = append(l.programs, p)
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	start, err := startTime(p.PID())
	if err != nil {
		return nil // it has ended already; whoever waits for it reports that
	}
	return l.state.record(entry{Kind: kindProcess, Name: p.Name, PID: p.PID(), Start: start})
}

// PID is the process's id in the namespace of this program.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Program) Done() <-chan struct{} { return p.done }

// Stop sends SIGTERM, and SIGKILL when the process has not ended in time, and waits for its end.
func (p *Program) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return p.Kill()
	}
}

// Kill sends SIGKILL and waits for the end of the process.
func (p *Program) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Pause stops the process where it is, as a machine does that hangs: its connections stay, and nothing answers.
func (p *Program) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets it go on, without knowing how much time has gone by.
func (p *Program) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Program) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Tail returns the last lines of the process's log.
func (p *Program) Tail(lines int) string { return tail(p.Log, lines) }

func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// until polls a condition until it holds, the context ends, or the process (if given) has ended.
func until(ctx context.Context, p *Program, what string, holds func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var done <-chan struct{}
	if p != nil {
		done = p.done
	}
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-done:
			return fmt.Errorf("waiting for %s: %s has ended (%v); the end of its log:\n%s", what, p.Name, p.err, p.Tail(20))
		case <-ctx.Done():
			if p == nil {
				return fmt.Errorf("waiting for %s: %w; last answer: %v", what, ctx.Err(), err)
			}
			return fmt.Errorf("waiting for %s: %w; last answer: %v; the end of the log of %s:\n%s", what, ctx.Err(), err, p.Name, p.Tail(20))
		}
	}
}

// startTime is field 22 of /proc/PID/stat: with the pid it names one process for the time the machine is up.
// A process that has ended and only waits for its parent counts as gone.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the command name may hold blanks
	if len(f) < 20 {
		return 0, fmt.Errorf("reading /proc/%d/stat: %d fields", pid, len(f))
	}
	if s := string(f[0]); s == "Z" || s == "X" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(string(f[19]), 10, 64)
}

// marked lists the processes that carry the marker of the lab with this id, but for the calling one.
func marked(id string) []entry {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	want := []byte(markerVariable + "=" + id)
	var found []entry
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", d.Name(), "environ"))
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if !bytes.Equal(v, want) {
				continue
			}
			if start, err := startTime(pid); err == nil {
				found = append(found, entry{Kind: kindProcess, Name: "process", PID: pid, Start: start})
			}
		}
	}
	return found
}
