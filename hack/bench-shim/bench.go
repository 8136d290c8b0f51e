package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit/shimhost"
)

// size is a script's size with the ratio that may not be passed (docs/spec/shim.md).
type size struct {
	kib   int
	bound float64
}

func sizes() []size { return []size{{4, 4}, {64, 3.75}, {256, 3.5}} }

func bench(o options, out io.Writer) error {
	setting := "warrant=required\n"
	if o.plain {
		setting = "warrant=optional\n"
	}
	host, err := shimhost.New(o.shim, setting)
	if err != nil {
		return err
	}
	dir := filepath.Join("/run", "bench")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	b := &table{host: host, dir: dir, plain: o.plain, serials: map[int]int64{}}
	if o.profile {
		return b.profile(out)
	}
	fmt.Fprintf(out, "shim as root, with a run-id, state in memory; ms, median of %d runs that took turns; (ratio) to verify && bash alone\n", o.runs)
	fmt.Fprintf(out, "%-5s %8s %6s %8s %14s %14s %8s %14s %14s   %s\n", "sh", "script", "bound", "alone", "same mark", "new mark", "CPU", "same mark", "new mark", "programs, syncs: same mark · new mark")
	for _, shell := range o.shells {
		if err := shimhost.UseShell(shell); err != nil {
			return err
		}
		if err := b.rows(shell, o.runs, out); err != nil {
			return err
		}
	}
	return nil
}

// table is one host on which everything is measured.
type table struct {
	host    *shimhost.Host
	dir     string
	plain   bool
	serials map[int]int64 // by size: each size is a profile of its own
}

// rows measures one shell.
func (b *table) rows(shell string, runs int, out io.Writer) error {
	times, work := map[string][]time.Duration{}, map[string][]time.Duration{}
	for i := range runs + 2 { // the first two warm up
		for _, s := range sizes() {
			for _, kind := range []string{"alone", "same", "new"} {
				took, busy, err := b.once(kind, s.kib)
				if err != nil {
					return fmt.Errorf("%s, %d KiB, %s: %v", shell, s.kib, kind, err)
				}
				if i >= 2 {
					key := fmt.Sprint(kind, s.kib)
					times[key] = append(times[key], took)
					work[key] = append(work[key], busy)
				}
			}
		}
	}
	for _, s := range sizes() {
		same, err := b.count(s.kib, false)
		if err != nil {
			return err
		}
		fresh, err := b.count(s.kib, true)
		if err != nil {
			return err
		}
		cell := func(of map[string][]time.Duration, kind string) string {
			return fmt.Sprintf("%.1f (%.2f)", median(of, kind, s.kib), median(of, kind, s.kib)/median(of, "alone", s.kib))
		}
		fmt.Fprintf(out, "%-5s %4d KiB %6.2f %8.2f %14s %14s %8.2f %14s %14s   %s · %s\n", shell, s.kib, s.bound,
			median(times, "alone", s.kib), cell(times, "same"), cell(times, "new"), median(work, "alone", s.kib), cell(work, "same"), cell(work, "new"), same, fresh)
	}
	return nil
}

func median(of map[string][]time.Duration, kind string, kib int) float64 {
	list := of[fmt.Sprint(kind, kib)]
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

// once takes the time of one run, and the processor time of all its processes that ended
// before it did.
func (b *table) once(kind string, kib int) (took, busy time.Duration, err error) {
	cmd, err := b.command(kind, kib)
	if err != nil {
		return 0, 0, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := os.Create(filepath.Join(b.dir, "answer"))
	if err != nil {
		return 0, 0, err
	}
	defer answer.Close()
	cmd.Stdout = answer
	begun := time.Now()
	err = cmd.Run()
	took = time.Since(begun)
	if err != nil {
		return 0, 0, fmt.Errorf("%v: %s", err, said.Bytes())
	}
	text, err := os.ReadFile(answer.Name())
	if err != nil {
		return 0, 0, err
	}
	if !strings.Contains(string(text), "\njoined ") && !strings.HasPrefix(string(text), "joined ") {
		return 0, 0, fmt.Errorf("the script did not run: %q", text)
	}
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// command prepares a run: alone, or by the shim with the same mark or a new one.
func (b *table) command(kind string, kib int) (*exec.Cmd, error) {
	if kind == "new" || b.serials[kib] == 0 {
		b.serials[kib]++
	}
	profile := fmt.Sprintf("other-%d", kib)
	var w *warrant.Warrant
	if !b.plain {
		w = b.host.Warrant(profile, script.Join, b.serials[kib])
	}
	text, err := shimhost.Script(kib<<10, w)
	if err != nil {
		return nil, err
	}
	if kind != "alone" {
		sent, err := b.host.Envelope(script.Join, "", text, shimhost.Params())
		if err != nil {
			return nil, err
		}
		return withInput(exec.Command(shimhost.Shim), filepath.Join(b.dir, "envelope"), sent)
	}
	sig, err := b.host.Sign(text)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"script": text, "script.sig": sig} {
		if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	principal := "join@" + profile
	cmd := exec.Command("/bin/sh", "-c", "ssh-keygen -Y verify -f "+shimhost.Etc+"/allowed_signers -I "+principal+
		" -n kpssh -s script.sig <script && bash script")
	cmd.Dir = b.dir
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "KPSSH_NODE_NAME=node-1"}
	return cmd, nil
}

func withInput(cmd *exec.Cmd, path string, content []byte) (*exec.Cmd, error) {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	cmd.Stdin = file
	cmd.Env = []string{}
	return cmd, err
}
