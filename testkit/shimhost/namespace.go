package shimhost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// inside tells a program that it runs in the namespaces that Again made.
const inside = "SHIMHOST_INSIDE"

// Again is this program once more, with args, in mount and process-id namespaces of its
// own: what it mounts and leaves running ends with it.
func Again(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Inside reports whether Again started this program.
func Inside() bool { return os.Getenv(inside) != "" }

// Shells are what a host may have as /bin/sh.
func Shells() []string { return []string{"dash", "busybox", "bash"} }

// mountPlaces puts memory over every place that the shim knows.
func mountPlaces() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %v", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %v", err)
	}
	for _, place := range []string{"/mnt", "/opt", "/run"} {
		if err := syscall.Mount("tmpfs", place, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting %s: %v", place, err)
		}
	}
	for _, place := range []string{"/etc", "/var/lib"} {
		upper, work := "/mnt/upper"+place, "/mnt/work"+place
		if err := makeDirs(upper, work); err != nil {
			return err
		}
		if err := syscall.Mount("overlay", place, "overlay", 0, "lowerdir="+place+",upperdir="+upper+",workdir="+work); err != nil {
			return fmt.Errorf("mounting %s: %v", place, err)
		}
	}
	if err := makeDirs(Etc, State, "/opt/kpssh"); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", State, "tmpfs", 0, "mode=700"); err != nil {
		return fmt.Errorf("mounting %s: %v", State, err)
	}
	return nil
}

func makeDirs(paths ...string) error {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// UseShell makes one of Shells the /bin/sh of this namespace, until the next call.
func UseShell(shell string) error {
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		return err
	}
	for syscall.Unmount(sh, 0) == nil {
	}
	if shell == filepath.Base(sh) {
		return nil
	}
	if err := syscall.Mount("/bin/"+shell, sh, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("making %s the /bin/sh: %v", shell, err)
	}
	return nil
}
