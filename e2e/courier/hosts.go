//go:build linux

package courier

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Profile signs and applies serial 1 of a profile whose join script is the given one.
func (w *World) Profile(t testing.TB, name, join string, params ...string) {
	t.Helper()
	w.ProfileAt(t, 1, name, join, params...)
}

// ProfileAt is Profile at a serial.
func (w *World) ProfileAt(t testing.TB, serial int, name, join string, params ...string) {
	t.Helper()
	args := []string{"--serial", fmt.Sprint(serial), "--target", "class " + product.HostClass}
	for _, words := range params {
		args = append(args, "--param", words)
	}
	w.Apply(t, w.Signed(t, name, join, args...))
}

// Signed is an SSHJoinProfile, signed with what args say of its warrants.
func (w *World) Signed(t testing.TB, name, join string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for phase, text := range map[string]string{"install": "true\n", "join": join, "leave": "true\n"} {
		testkit.WriteFile(t, dir, phase+".sh", []byte("#!/usr/bin/env bash\nset -eu\n"+text))
	}
	return w.Command(t, append([]string{"sign", dir, "--key", filepath.Join(w.Keys, "signer"), "--profile", name}, args...)...)
}

// SignerLine is the public key of the one signer.
func (w *World) SignerLine(t testing.TB) string {
	t.Helper()
	line, err := os.ReadFile(filepath.Join(w.Keys, "signer.pub"))
	must(t, err)
	return strings.TrimSpace(string(line))
}

// Host starts a host that judges by the policy and requires warrants, and makes its SSHHost and Secret.
func (w *World) Host(t testing.TB, name string) *lab.Host {
	t.Helper()
	return w.HostWith(t, name, func(*lab.HostOptions) {})
}

// HostWith starts one with a change.
func (w *World) HostWith(t testing.TB, name string, change func(*lab.HostOptions)) *lab.Host {
	t.Helper()
	o, err := product.HostTrust{
		Lab: w.Lab, ControlPlane: w.ControlPlane, ClusterID: ClusterID,
		Policy: w.PolicyFile(), Roots: filepath.Join(w.Keys, "root.pub"),
	}.HostOptions(t.Context())
	must(t, err)
	o.Name, o.RelayKey = name, w.Login.PublicKey()
	change(&o)
	h, err := w.Lab.StartHost(t.Context(), o)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, h.Log(20))
		}
		must(t, h.Stop())
	})
	w.Object(t, name, h.Addr.String(), h.KnownHostLine())
	return h
}

// Object makes SSHHost and Secret. An empty knownHost is left out.
func (w *World) Object(t testing.TB, name, address, knownHost string) {
	t.Helper()
	w.Secret(t, name, w.Login, knownHost)
	w.Apply(t, fmt.Sprintf(`apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHHost
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  address: %[3]q
  user: kpssh
  execMode: Verified
  trustedSigners: [%[4]q]
  sshKeySecretRef: {name: %[1]s-ssh}
  capacity: {cpu: "2", memory: 4Gi}
`, name, Namespace, address, w.SignerLine(t)))
}

// Secret makes, or changes, the Secret of a host: the key to log in with, and its pin.
func (w *World) Secret(t testing.TB, host string, login testkit.Signer, knownHost string) {
	t.Helper()
	pin := ""
	if knownHost != "" {
		pin = fmt.Sprintf("  knownHost: %q\n", knownHost)
	}
	w.Apply(t, fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s-ssh, namespace: %s}
stringData:
  privateKey: %q
%s`, host, Namespace, string(login.PEM), pin))
}
