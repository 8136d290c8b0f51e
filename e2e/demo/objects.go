//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// writeObjects writes the files that the story applies, and the Secrets that hold login key and
// pinned host keys.
func (s *story) writeObjects(ctx context.Context) error {
	unsigned, err := s.profileYAML("")
	if err != nil {
		return err
	}
	template, err := s.profileYAML("echo {{ .Vars.token }}\n")
	if err != nil {
		return err
	}
	var hosts []string
	for _, host := range s.hosts() {
		hosts = append(hosts, hostYAML(host))
	}
	files := map[string]string{"unsigned.yaml": unsigned, "template.yaml": template, "hosts.yaml": strings.Join(hosts, "---\n")}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	for _, host := range s.hosts() {
		key := filepath.Join(s.dir, "login-key")
		pin := filepath.Join(s.dir, host.Name+".known-host")
		if err := os.WriteFile(key, s.login.pem, 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(pin, []byte(host.KnownHostLine()+"\n"), 0o600); err != nil {
			return err
		}
		got, refused, err := s.command(ctx, "kubectl", "-n", namespace, "create", "secret", "generic", host.Name, "--from-file=privateKey="+key, "--from-file=knownHost="+pin)
		if err != nil || refused {
			return fmt.Errorf("making the Secret of %s: %v %s", host.Name, err, got.said)
		}
	}
	return nil
}

// profileYAML is an SSHJoinProfile of the scripts in profile/, with a line appended to install.
func (s *story) profileYAML(extra string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: karpenter.dklesev.github.io/v1beta1\nkind: SSHJoinProfile\nmetadata:\n  name: %s\nspec:\n  version: \"1\"\n  scripts:\n", profile)
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		script, err := os.ReadFile(filepath.Join(s.lab.Root(), "e2e", "demo", "profile", phase+".sh"))
		if err != nil {
			return "", err
		}
		text := string(script)
		if phase == "install" {
			text += extra
		}
		fmt.Fprintf(&b, "    %s: |\n", phase)
		for line := range strings.Lines(text) {
			b.WriteString("      " + line)
		}
	}
	return b.String(), nil
}

func hostYAML(h *lab.Host) string {
	return fmt.Sprintf(`apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHHost
metadata:
  name: %s
  namespace: %s
spec:
  address: %s
  user: kpssh
  execMode: Verified
  sshKeySecretRef:
    name: %s
  capacity:
    cpu: "2"
    memory: 4Gi
`, h.Name, namespace, h.Addr, h.Name)
}
