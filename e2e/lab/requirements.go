//go:build linux

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Missing is one thing that a lab needs and this machine lacks.
type Missing struct {
	What string // "iproute2 (no ip in PATH)"
	Fix  string // the command that mends it
}

// requiredTools: program, the Debian package that has it.
func requiredTools() [][2]string {
	return [][2]string{
		{"ip", "iproute2"},
		{"nsenter", "util-linux"},
		{"bash", "bash"},
		{"/usr/sbin/sshd", "openssh-server"},
		{"ssh-keygen", "openssh-client"},
		{"sudo", "sudo"},
		{"flock", "util-linux"},
	}
}

// Requirements names what is missing; nothing is the good answer.
func Requirements() []Missing {
	var missing []Missing
	if os.Geteuid() != 0 {
		missing = append(missing, Missing{"root (namespaces, mounts and links are made)", "run it as root, for example with sudo -E"})
	}
	for _, t := range requiredTools() {
		if _, err := exec.LookPath(t[0]); err != nil {
			missing = append(missing, Missing{fmt.Sprintf("%s (no %s)", t[1], t[0]), "apt-get install -y " + t[1]})
		}
	}
	if b, err := os.ReadFile("/proc/filesystems"); err == nil && !strings.Contains(string(b), "\toverlay\n") {
		missing = append(missing, Missing{"overlay file system in the kernel", "modprobe overlay"})
	}
	return missing
}

func missingError(missing []Missing) error {
	lines := make([]string, 0, len(missing))
	for _, m := range missing {
		lines = append(lines, fmt.Sprintf("  %s: %s", m.What, m.Fix))
	}
	return fmt.Errorf("a lab cannot run here, missing:\n%s", strings.Join(lines, "\n"))
}
