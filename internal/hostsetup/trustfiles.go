package hostsetup

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Floors are the lines of a host's floors file.
func Floors(p *trustpolicy.Policy) []string {
	var lines []string
	for _, profile := range slices.Sorted(maps.Keys(p.Floors)) {
		lines = append(lines, fmt.Sprintf("%s %d", profile, p.Floors[profile]))
	}
	return lines
}

// Lines is the text of a file: each line ends with LF.
func Lines(lines []string) []byte {
	var b bytes.Buffer
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return b.Bytes()
}

// rootSigners are the keys that statements for the host are signed with.
func rootSigners(roots *trustpolicy.Roots) []string {
	var lines []string
	for _, key := range roots.Keys {
		lines = append(lines, fmt.Sprintf("root namespaces=%q %s", statement.Namespace, keyLine(key)))
	}
	return lines
}

// keyLine is a public key in OpenSSH's one-line form, without a comment.
func keyLine(key ssh.PublicKey) string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
}

// clusterLines pin the cluster that the host may join; nil where the policy pins
// none and the host may do without.
func clusterLines(p *trustpolicy.Policy, o Options) ([]string, error) {
	c := p.Cluster(o.Cluster)
	pinned := len(c.Endpoints) > 0 && len(c.CASHA256) > 0
	// check: ClusterUnpinned: a host that knows no endpoint and CA joins the cluster of whoever names one
	if !pinned && (o.WarrantRequired || len(c.Endpoints)+len(c.CASHA256) > 0) {
		return nil, decision.Errorf(decision.ClusterUnpinned, "the policy names %d endpoints and %d CA digests of cluster %s, and a host needs one of each",
			len(c.Endpoints), len(c.CASHA256), o.Cluster).Try("give endpoints and caSHA256 under clusters in the policy, and sign it again")
	}
	if !pinned {
		return nil, nil
	}
	lines := []string{"id " + o.Cluster}
	for _, endpoint := range c.Endpoints {
		// check: PolicyMalformed: a line break in a URL would be a line of the host's own file
		if strings.ContainsFunc(endpoint, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, decision.Errorf(decision.PolicyMalformed, "the endpoint %.80q of cluster %s is no URL", endpoint, o.Cluster)
		}
		lines = append(lines, "endpoint "+endpoint)
	}
	for _, digest := range c.CASHA256 {
		lines = append(lines, "ca-sha256 "+digest)
	}
	return lines, nil
}

// shimConf are the shim's settings (docs/spec/shim.md, shim.conf).
func shimConf(p *trustpolicy.Policy, o Options) []string {
	warrant := "optional"
	if o.WarrantRequired {
		warrant = "required"
	}
	lines := []string{"# Rendered by hostwarrant host provision; what accepted statements say wins.", "warrant=" + warrant, "class=" + o.Class}
	for _, phase := range script.Phases() {
		lines = append(lines, fmt.Sprintf("threshold-%s=%d", phase, p.Thresholds[phase]))
	}
	lines = append(lines,
		fmt.Sprintf("root-threshold=%d", p.Roots().Threshold),
		fmt.Sprintf("max-validity=%dd", int(p.MaxValidity/(24*time.Hour))),
		fmt.Sprintf("signers-expire=%d", p.Expires.Unix()))
	for _, setting := range []struct {
		name  string
		value int64
	}{{"max-serial-step", o.MaxSerialStep}, {"output-max", o.OutputMax}} {
		if setting.value > 0 {
			lines = append(lines, fmt.Sprintf("%s=%d", setting.name, setting.value))
		}
	}
	if o.KubeletKey != "" {
		lines = append(lines, "kubelet-key="+o.KubeletKey)
	}
	return lines
}

// authorizedKeys fills the shipped template in, a line for each login key; without
// one nobody may log in.
func authorizedKeys(template []byte, o Options) ([]byte, error) {
	var b bytes.Buffer
	for line := range strings.Lines(string(template)) {
		if strings.HasPrefix(line, "#") {
			continue // it tells people how to fill the template in
		}
		if !strings.Contains(line, "@FROM@") || !strings.Contains(line, "@KEY@") {
			return nil, decision.Errorf(decision.Internal, "the authorized_keys that ships with the shim has no place for a key and where it comes from")
		}
		for _, key := range o.LoginKeys {
			b.WriteString(strings.NewReplacer("@FROM@", strings.Join(o.From, ","), "@KEY@", keyLine(key)).Replace(line))
		}
	}
	return b.Bytes(), nil
}
