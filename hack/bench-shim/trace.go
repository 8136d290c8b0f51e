package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// traced runs the shim once under strace, which sees every program start and every sync
// of the whole process tree, and returns what it wrote.
func (b *table) traced(kib int, fresh bool) (string, error) {
	kind := "same"
	if fresh {
		kind = "new"
	}
	if kind == "same" { // the mark must be that of these bytes
		if _, _, err := b.once("new", kib); err != nil {
			return "", err
		}
	}
	plain, err := b.command(kind, kib)
	if err != nil {
		return "", err
	}
	trace := filepath.Join(b.dir, "trace")
	cmd := exec.Command("strace", append([]string{
		"-f", "--seccomp-bpf", "-qq", "-ttt", "-s", "200", "-o", trace,
		"-e", "trace=execve,fsync,fdatasync,syncfs,sync,fork,vfork,clone,clone3,exit_group", "--",
	}, plain.Args...)...)
	cmd.Stdin, cmd.Env = plain.Stdin, []string{}
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("under strace: %v: %s", err, said)
	}
	text, err := os.ReadFile(trace)
	return string(text), err
}

// count says how many programs one run starts, and how often it syncs.
func (b *table) count(kib int, fresh bool) (string, error) {
	text, err := b.traced(kib, fresh)
	if err != nil {
		return "", err
	}
	programs := len(regexp.MustCompile(`(?m)execve\(.*= 0$|<\.\.\. execve resumed>.*= 0$`).FindAllString(text, -1))
	forks := len(regexp.MustCompile(`(?m)(fork|clone3?)[ (].*= [1-9][0-9]*$`).FindAllString(text, -1))
	syncs := len(regexp.MustCompile(`(?m) (fsync|fdatasync|syncfs|sync)\(`).FindAllString(text, -1))
	return fmt.Sprintf("%d (%d forks), %d", programs, forks, syncs), nil
}

// profile prints what one run of 4 KiB starts and when, with the same mark and a new one.
func (b *table) profile(out io.Writer) error {
	for _, fresh := range []bool{false, true} {
		text, err := b.traced(4, fresh)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "--- new mark: %v; ms since the start under strace, process, call\n", fresh)
		var begun float64
		for line := range strings.Lines(text) {
			var pid int
			var at float64
			if _, err := fmt.Sscanf(line, "%d %f", &pid, &at); err != nil {
				continue
			}
			if begun == 0 {
				begun = at
			}
			_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
			_, call, _ = strings.Cut(strings.TrimSpace(call), " ")
			fmt.Fprintf(out, "%7.2f %6d %s\n", (at-begun)*1000, pid, strings.TrimSpace(call))
		}
	}
	return nil
}
