//go:build linux && amd64

package shimhost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
)

// Step is one system call by which a process of the shim changes, or syncs, what is kept.
type Step struct {
	Call string // write, fsync, rename, …
	Path string // of the file or directory; where a file is renamed, its new name
}

func (s Step) String() string { return s.Call + " " + s.Path }

// Watcher is asked about each step before it happens, and told after it did.
type Watcher struct {
	// Before says what becomes of step N: 0 lets it happen, Crash ends all
	// processes of the shim there, and another error is what the call fails with.
	Before func(n int, s Step) syscall.Errno
	// After is called when the call has succeeded.
	After func(n int, s Step)
}

// Crash, as the answer of Before, ends every process of the shim at once.
const Crash = syscall.Errno(0xfff)

// Crashed is the exit code of a shim that was ended so.
const Crashed = -1

// Watch runs the shim on an envelope, and stops all its processes at each step whose path
// is below one of places.
func Watch(text []byte, w Watcher, places ...string) (Answer, error) {
	files, err := standardFiles(text)
	if err != nil {
		return Answer{}, err
	}
	runtime.LockOSThread() // whoever traces is one thread
	defer runtime.UnlockOSThread()
	pid, err := syscall.ForkExec(Shim, []string{Shim}, &syscall.ProcAttr{
		Env: []string{}, Dir: "/",
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys:   &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return Answer{}, err
	}
	t := &tracer{Watcher: w, places: places, shim: pid, tasks: map[int]*task{pid: {}}}
	if err := t.run(); err != nil {
		return Answer{}, err
	}
	var said [3]string
	for i := 1; i < 3; i++ {
		content, err := os.ReadFile(files[i].Name())
		if err != nil {
			return Answer{}, err
		}
		said[i] = string(content)
	}
	return Answer{Code: t.code(), Stdout: said[1], Stderr: said[2]}, nil
}

func standardFiles(text []byte) ([3]*os.File, error) {
	var files [3]*os.File
	if err := os.WriteFile("/run/envelope", text, 0o600); err != nil {
		return files, err
	}
	for i, name := range []string{"envelope", "stdout", "stderr"} {
		flags := os.O_RDONLY
		if i > 0 {
			flags = os.O_RDWR | os.O_CREATE | os.O_TRUNC
		}
		file, err := os.OpenFile("/run/"+name, flags, 0o600)
		if err != nil {
			return files, err
		}
		files[i] = file
	}
	return files, nil
}

// tracer follows the shim and all that it starts by ptrace(2).
type tracer struct {
	Watcher
	places []string
	shim   int
	status syscall.WaitStatus
	over   bool
	tasks  map[int]*task
	steps  int
}

// task is one traced process.
type task struct {
	inside bool // of a system call
	begun  bool
	step   *Step
	number int
	fail   syscall.Errno
}

const traceOptions = syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK |
	syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACEEXEC | exitKill

const exitKill = 0x100000 // PTRACE_O_EXITKILL

func (t *tracer) run() error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(t.shim, &status, 0, nil); err != nil {
		return fmt.Errorf("waiting for the shim: %v", err)
	}
	if err := syscall.PtraceSetOptions(t.shim, traceOptions); err != nil {
		return fmt.Errorf("tracing the shim: %v", err)
	}
	t.tasks[t.shim].begun = true
	if err := syscall.PtraceSyscall(t.shim, 0); err != nil {
		return err
	}
	for len(t.tasks) > 0 || t.strays() {
		pid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if errors.Is(err, syscall.ECHILD) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.stopped(pid, status); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) stopped(pid int, status syscall.WaitStatus) error {
	if status.Exited() || status.Signaled() {
		delete(t.tasks, pid)
		if pid == t.shim {
			t.status = status
			t.killAll() // what outlives the shim has nothing to do with what is kept
		}
		return nil
	}
	one := t.tasks[pid]
	if one == nil {
		one = &task{}
		t.tasks[pid] = one
		if t.ended() {
			t.killAll()
		}
	}
	signal := status.StopSignal()
	switch {
	case signal == syscall.SIGTRAP|0x80:
		if err := t.atCall(pid, one); err != nil {
			return err
		}
		signal = 0
	case signal == syscall.SIGTRAP, signal == syscall.SIGSTOP && !one.begun:
		signal = 0
	}
	one.begun = true
	if err := syscall.PtraceSyscall(pid, int(signal)); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("going on with process %d: %v", pid, err)
	}
	return nil
}

// atCall is at the begin or the end of a system call.
func (t *tracer) atCall(pid int, one *task) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		return err
	}
	one.inside = !one.inside
	if one.inside {
		return t.before(pid, one, &regs)
	}
	if one.step == nil {
		return nil
	}
	step := *one.step
	one.step = nil
	if one.fail != 0 {
		regs.Rax = uint64(-int64(one.fail))
		one.fail = 0
		return syscall.PtraceSetRegs(pid, &regs)
	}
	if int64(regs.Rax) >= 0 && t.After != nil && !t.over {
		t.After(one.number, step)
	}
	return nil
}

func (t *tracer) before(pid int, one *task, regs *syscall.PtraceRegs) error {
	step := stepOf(pid, regs)
	if step == nil || t.over || !t.below(step.Path) {
		return nil
	}
	t.steps++
	one.step, one.number = step, t.steps
	if t.Before == nil {
		return nil
	}
	switch errno := t.Before(t.steps, *step); errno {
	case 0:
		return nil
	case Crash:
		t.over = true
		t.killAll()
		return nil
	default:
		one.fail = errno
		regs.Orig_rax = ^uint64(0) // no call
		return syscall.PtraceSetRegs(pid, regs)
	}
}

func (t *tracer) below(path string) bool {
	for _, place := range t.places {
		if path == place || strings.HasPrefix(path, place+"/") {
			return true
		}
	}
	return false
}

func (t *tracer) killAll() {
	for pid := range t.tasks {
		// an error says that it is gone already
		if syscall.Kill(pid, syscall.SIGKILL) != nil {
			delete(t.tasks, pid)
		}
	}
}

// ended says that the shim is gone, or on its way.
func (t *tracer) ended() bool { return t.over || t.tasks[t.shim] == nil }

// strays finds processes that were started when their parent was killed, before it could
// tell of them. They would hold the shim's lock, stopped, for as long as this program runs.
func (t *tracer) strays() bool {
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return false
	}
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("\nTracerPid:\t%d\n", syscall.Gettid())) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			t.tasks[pid] = &task{}
		}
	}
	t.killAll()
	return len(t.tasks) > 0
}

func (t *tracer) code() envelope.ExitCode {
	if t.over || !t.status.Exited() {
		return Crashed
	}
	return envelope.ExitCode(t.status.ExitStatus())
}

// stepOf reads a system call that changes or syncs files, or gives nil.
func stepOf(pid int, regs *syscall.PtraceRegs) *Step {
	byName := func(call string, dir int, at uint64) *Step { return &Step{call, pathAt(pid, dir, at)} }
	byFile := func(call string) *Step { return &Step{call, link(pid, fmt.Sprintf("fd/%d", int(regs.Rdi)))} }
	const here = atFDCWD
	switch regs.Orig_rax {
	case syscall.SYS_OPEN:
		if regs.Rsi&writing == 0 {
			return nil
		}
		return byName("open", here, regs.Rdi)
	case syscall.SYS_OPENAT:
		if regs.Rdx&writing == 0 {
			return nil
		}
		return byName("open", int(int32(regs.Rdi)), regs.Rsi)
	case syscall.SYS_WRITE, syscall.SYS_WRITEV, syscall.SYS_PWRITE64, syscall.SYS_FTRUNCATE:
		return byFile("write")
	case sysCopyFileRange: // its second file is the one written
		return &Step{"write", link(pid, fmt.Sprintf("fd/%d", int(regs.Rdx)))}
	case syscall.SYS_SENDFILE:
		return byFile("write")
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC, sysSyncFS:
		return byFile("fsync")
	case syscall.SYS_RENAME:
		return byName("rename", here, regs.Rsi)
	case syscall.SYS_RENAMEAT, sysRenameAt2:
		return byName("rename", int(int32(regs.Rdx)), regs.R10)
	case syscall.SYS_UNLINK, syscall.SYS_RMDIR:
		return byName("unlink", here, regs.Rdi)
	case syscall.SYS_UNLINKAT:
		return byName("unlink", int(int32(regs.Rdi)), regs.Rsi)
	case syscall.SYS_MKDIR:
		return byName("mkdir", here, regs.Rdi)
	case syscall.SYS_MKDIRAT:
		return byName("mkdir", int(int32(regs.Rdi)), regs.Rsi)
	default:
		return nil
	}
}

const (
	atFDCWD          = -100
	writing          = syscall.O_CREAT | syscall.O_TRUNC
	sysRenameAt2     = 316
	sysSyncFS        = 306
	sysCopyFileRange = 326
)

func link(pid int, name string) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return ""
	}
	return path
}

// pathAt reads a path that a call was given.
func pathAt(pid, dir int, at uint64) string {
	var path []byte
	for len(path) < syscall.PathMax {
		var word [8]byte
		if n, err := syscall.PtracePeekData(pid, uintptr(at), word[:]); err != nil || n != len(word) {
			break
		}
		before, _, ended := strings.Cut(string(word[:]), "\x00")
		path = append(path, before...)
		if ended {
			break
		}
		at += uint64(len(word))
	}
	if filepath.IsAbs(string(path)) {
		return filepath.Clean(string(path))
	}
	base := link(pid, "cwd")
	if dir != atFDCWD {
		base = link(pid, fmt.Sprintf("fd/%d", dir))
	}
	return filepath.Join(base, string(path))
}
