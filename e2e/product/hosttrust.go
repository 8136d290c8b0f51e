//go:build linux

package product

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// HostClass is the class of the hosts that HostTrust sets up, and of an SSHHost without a label.
const HostClass = "default"

// signersExpire is how far ahead the end of the hosts' signers lies.
const signersExpire = 30 * 24 * time.Hour

// HostTrust says by what hosts judge.
type HostTrust struct {
	Lab           *lab.Lab
	ControlPlane  *lab.ControlPlane // the cluster that they may join, and no other
	ClusterID     string
	Policy, Roots string // files: the trust policy, and the roots that signed it
}

// HostOptions are those of a host that requires warrants. Its files are made from the policy as an
// operator makes them, with the hostwarrant command.
func (t HostTrust) HostOptions(ctx context.Context) (lab.HostOptions, error) {
	o := lab.HostOptions{ShimConf: ShimConf("required")}
	signers, err := t.render(ctx, "allowed_signers", "--class", HostClass)
	if err != nil {
		return o, err
	}
	revoked, err := t.render(ctx, "krl")
	if err != nil {
		return o, err
	}
	floors, err := t.render(ctx, "floors")
	if err != nil {
		return o, err
	}
	roots, err := t.rootSigners()
	if err != nil {
		return o, err
	}
	ca, err := t.ControlPlane.CA()
	if err != nil {
		return o, err
	}
	o.AllowedSigners = signers
	o.TrustFiles = map[string]string{
		"revoked_keys": revoked,
		"root_signers": roots,
		"floors":       floors,
		"cluster":      fmt.Sprintf("id %s\nendpoint %s\nca-sha256 %x\n", t.ClusterID, t.ControlPlane.RESTConfig().Host, sha256.Sum256(ca)),
	}
	return o, nil
}

// ShimConf is /etc/kpssh/shim.conf with warrants required or optional.
func ShimConf(warrant string) string {
	return fmt.Sprintf("warrant=%s\nclass=%s\nmax-validity=90d\nsigners-expire=%d\n", warrant, HostClass, time.Now().Add(signersExpire).Unix())
}

// rootSigners lets the hosts take statements by the roots.
func (t HostTrust) rootSigners() (string, error) {
	roots, err := os.ReadFile(t.Roots)
	if err != nil {
		return "", fmt.Errorf("reading the roots: %w", err)
	}
	var file strings.Builder
	for key := range strings.Lines(string(roots)) {
		file.WriteString(`root namespaces="hostwarrant-statement" ` + key)
	}
	return file.String(), nil
}

// render is what "hostwarrant policy render" prints.
func (t HostTrust) render(ctx context.Context, file string, args ...string) (string, error) {
	args = append([]string{"policy", "render", file, t.Policy, "--root", t.Roots, "--cluster", t.ClusterID}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(t.Lab.Root(), "bin", "hostwarrant"), args...)
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("hostwarrant %s: %w: %s", strings.Join(args, " "), err, cmd.Stderr)
	}
	return string(out), nil
}
