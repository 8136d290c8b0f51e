//go:build linux

package upstream

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/e2e/guide"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/upstream/client"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// migration is one host on its way.
type migration struct {
	*world
	*guide.Desk
	host *lab.Host
	// raw is the SSHHost as it was before.
	raw string
}

const rawHost = `apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHHost
metadata:
  name: host-1
  namespace: pool
  labels:
    karpenter.dklesev.github.io/host-class: bm
spec:
  address: 10.0.0.21
  user: root
  execMode: Raw
  sshKeySecretRef: {name: host-1-ssh}
  capacity: {cpu: "2", memory: 4Gi}
`

func newMigration(t *testing.T) *migration {
	t.Helper()
	m := &migration{world: newWorld(t), raw: rawHost}
	m.Desk = &guide.Desk{
		Dir: t.TempDir(), Page: guide.Read(t, filepath.Join(shared.Lab(t).Root(), "docs", "operations", "migration.md")),
		Instead: strings.NewReplacer("192.0.2.5", shared.Lab(t).Addr().String()),
	}
	operator := testkit.NewSigner(t, "ed25519")
	m.host = shared.Host(t, lab.HostOptions{
		Name: "host-1", Bare: true,
		Files: map[string]lab.File{"/root/.ssh/authorized_keys": {Content: []byte(operator.Line + "\n"), Mode: 0o600}},
	})
	files := map[string]string{
		"root": string(m.root.PEM), "root.pub": m.root.Line + "\n", "signer": string(m.signer.PEM), "operator": string(operator.PEM),
		"relay": string(m.login.PEM), "relay.pub": m.login.Line + "\n",
		"profile.yaml": published, "host-1.yaml": m.raw, "its-shim": read(t, filepath.Join("standin", "kpssh-shim")),
	}
	maps.Copy(files, testkit.Release(t, []byte(read(t, filepath.Join(shared.Lab(t).Root(), "shim", "kpssh-shim")))))
	for name, text := range files {
		testkit.WriteFile(t, m.Dir, name, []byte(text))
	}
	m.KnowHost(t, "host-1", m.host.Addr.String(), m.host.KnownHostLine())
	m.writePolicy(t, 1, "")
	return m
}

// writePolicy writes the TrustPolicy with what the guide says, as it is before somebody signs.
func (m *migration) writePolicy(t *testing.T, version int, more string) {
	t.Helper()
	now := time.Now().UTC()
	document := fmt.Sprintf(`version: %d
clusters: {prod-1: {endpoints: [%q], caSHA256: ["%x"]}}
issued: %q
expires: %q
mode: enforce
rootVersion: 1
joinProfiles:
  requireWarrant: false
  unguarded:
  - {profiles: [legacy], until: %[6]q}
  hosts:
    users: [root, kpssh]
    raw:
    - {host: pool/host-1, until: %[6]q}
    ports: [22]
    shimCommands: [/opt/kpssh/kpssh-shim]
    profiles: {bm: ["*"]}
    namespaces: {pool: {classes: [bm], nodeNames: ["*"]}}
  signers:
  - {name: alice, key: %[7]q}
floors: {tls-bootstrap: 1}
%[8]s`, version, endpoint, sha256.Sum256([]byte(clusterCA)), now.Add(-time.Hour).Format(time.RFC3339), now.Add(60*24*time.Hour).Format(time.RFC3339),
		now.Add(20*24*time.Hour).Format(time.RFC3339), m.signer.Line, more)
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"document": document, "signatures": []string{testkit.Sign(t, m.root, trustpolicy.Namespace, []byte(document))}},
	})
	must(t, err)
	testkit.WriteFile(t, m.Dir, "trust-policy.yaml", text)
}

// profile signs the next version of the profile, as the guide's first step does.
func (m *migration) profile(t *testing.T, serial int) client.Profile {
	t.Helper()
	out := m.Run(t, fmt.Sprintf("hostwarrant sign profile.yaml --key signer --serial %d --target 'class bm'", serial))
	return readProfile(t, out)
}

func readProfile(t *testing.T, text string) client.Profile {
	t.Helper()
	var o struct {
		Spec struct{ Scripts, Signatures map[string]string }
	}
	must(t, yaml.Unmarshal([]byte(text), &o))
	return client.Profile{Scripts: o.Spec.Scripts, Signatures: o.Spec.Signatures}
}

// ends wants an exit code of a phase that the controller sends.
func (m *migration) ends(t *testing.T, p client.Profile, phase string, want int) {
	t.Helper()
	params := client.Leave("10.0.0.21", "")
	if phase == "install" || phase == "join" {
		params = installParams(t)
	}
	if got := m.theirCaller(t, m.host, phase, p, params); got.code != want {
		t.Fatalf("%s ends with %d, want %d: %s", phase, got.code, want, got.stderr)
	}
}

// rawWorks runs a script as the controller's Raw mode does.
func (m *migration) rawWorks(t *testing.T, p client.Profile) {
	t.Helper()
	testkit.WriteFile(t, m.Dir, "script", []byte(p.Scripts["join"]))
	m.Run(t, "ssh root@host-1 'rm -rf /etc/kubernetes'; ssh root@host-1 'bash -s' <script; ssh root@host-1 'test -e /etc/kubernetes/kubelet.conf'")
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in %s", word, text)
		}
	}
}

// TestTheMigrationGuide takes one host from raw to required and all the way back, by the commands of
// docs/operations/migration.md. Where a stage is meant to stop or to allow something, it is tried.
func TestTheMigrationGuide(t *testing.T) {
	m := newMigration(t)
	m.cluster(t)
	m.journal(t)
	bare := plain(t, "leave", "#!/bin/sh\ntrue\n", m.signer)

	m.Follow(t, "Before the first host", 0)
	out := m.Follow(t, "Before the first host", 1)
	contains(t, out, "verified: SSHJoinProfile/tls-bootstrap", "excused: SSHHost/host-1")
	contains(t, m.FollowInTime(t, "Before the first host", 2), "trustpolicy.hostwarrant.dev/cluster serverside-applied", "sshjoinprofile.karpenter.dklesev.github.io/tls-bootstrap serverside-applied")
	first := readProfile(t, read(t, filepath.Join(m.Dir, "profile.yaml")))
	m.rawWorks(t, first)

	contains(t, m.Follow(t, "From raw to optional", 0), "as trust policy 1 says")
	m.rawWorks(t, first)
	if facts := m.Follow(t, "From raw to optional", 1); !regexp.MustCompile(`^[0-9]+\n[0-9]+\n[a-z0-9_]+\n`).MatchString(facts) {
		t.Errorf("a probe prints %q", facts)
	}
	contains(t, m.Follow(t, "From raw to optional", 2), "verified: SSHHost/host-1")
	m.shownKeyIsFirst(t)
	contains(t, m.storedMode(t), "root Raw")
	contains(t, m.FollowInTime(t, "From raw to optional", 3), "secret/host-1-ssh created")
	contains(t, m.storedMode(t), "kpssh Verified")
	m.ends(t, first, "install", 0)
	m.ends(t, first, "join", 0)
	m.ends(t, bare, "leave", 0)
	second := m.profile(t, 2)
	m.ends(t, second, "join", 0)
	m.ends(t, first, "join", 20)

	m.bareRuns(t, 1)
	contains(t, m.Follow(t, "From optional to required", 1), "as trust policy 1 says")
	m.ends(t, second, "join", 0)
	m.ends(t, bare, "leave", 14)

	m.Follow(t, "Back to optional", 0)
	m.ends(t, bare, "leave", 0)
	m.ends(t, first, "join", 20)

	m.backToItsShim(t, first, bare)
	m.Follow(t, "Back to optional", 0)
	m.ends(t, bare, "leave", 0)
	m.ends(t, first, "join", 20) // the mark is still there

	m.backToRaw(t, first)
	contains(t, m.Follow(t, "Which signers get kpssh", 0), "verified: TrustPolicy/cluster", "verified: SSHJoinProfile/tls-bootstrap")
	m.Page.AllUsed(t)
}

// bareRuns counts the runs without a warrant that the guide's search of the journal finds.
func (m *migration) bareRuns(t *testing.T, want int) {
	t.Helper()
	search := strings.TrimSpace(m.Page.Block(t, "From optional to required", 0))
	if found := m.Run(t, search+" || :"); strings.Count(found, "\n") != want {
		t.Errorf("want %d runs without a warrant, found %q", want, found)
	}
	if all := m.Run(t, "ssh root@host-1 'journalctl -t kpssh-shim'"); strings.Count(all, " profile=tls-bootstrap ") == 0 {
		t.Errorf("the journal has no run with a warrant: %q", all)
	}
}

// TestAHostWithItsShimGoesTheSameWay sets a host up as one that has karpenter-provider-ssh's shim: an
// account with a home, its keys there, a rule of sudo that takes arguments, a Match block.
func TestAHostWithItsShimGoesTheSameWay(t *testing.T) {
	m := newMigration(t)
	bare := plain(t, "leave", "#!/bin/sh\ntrue\n", m.signer)
	testkit.WriteFile(t, m.Dir, "prepare", fmt.Appendf(nil, `set -eu
useradd -m kpssh
mkdir -p /home/kpssh/.ssh /etc/kpssh
printf 'restrict,command="/opt/kpssh/kpssh-shim" %%s\n' '%s' '%s' >/home/kpssh/.ssh/authorized_keys
chown -R kpssh:kpssh /home/kpssh/.ssh
chmod 700 /home/kpssh/.ssh
echo 'kpssh ALL=(root) NOPASSWD: /opt/kpssh/kpssh-shim' >/etc/sudoers.d/kpssh
chmod 440 /etc/sudoers.d/kpssh
echo 'kpssh namespaces="kpssh" %s' >/etc/kpssh/allowed_signers
printf 'Match User kpssh\n\tForceCommand /opt/kpssh/kpssh-shim\n\tPermitTTY no\n' >/etc/ssh/sshd_config.d/50-kpssh.conf
kill -HUP "$(cat /run/sshd.pid)"
`, m.login.Line, m.other.Line, m.signer.Line))
	m.Run(t, "ssh root@host-1 'mkdir /opt/kpssh && cat >/opt/kpssh/kpssh-shim && chmod 755 /opt/kpssh/kpssh-shim' <its-shim")
	m.Run(t, "ssh root@host-1 'cat >/root/prepare && sh /root/prepare' <prepare")
	testkit.Eventually(t, time.Minute, "sshd to read its configuration again", func() bool {
		_, err := m.theirs(t, m.host).Probe(t.Context())
		return err == nil
	})
	m.ends(t, bare, "leave", 0)
	second := m.theirs(t, m.host)
	second.PrivateKey = m.other.PEM
	_, err := second.Probe(t.Context())
	must(t, err)

	m.Follow(t, "Before the first host", 0)
	m.Follow(t, "Before the first host", 1)
	m.Run(t, "ssh root@host-1 'rm /etc/ssh/sshd_config.d/50-kpssh.conf'")
	contains(t, m.Follow(t, "From raw to optional", 0), "as trust policy 1 says")
	m.ends(t, bare, "leave", 0)
	if _, err := second.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("a key in the account's home still counts: %v", err)
	}
	p := readProfile(t, read(t, filepath.Join(m.Dir, "profile.yaml")))
	m.ends(t, p, "join", 0)
	m.ends(t, client.Profile{Scripts: map[string]string{"leave": p.Scripts["join"]}, Signatures: map[string]string{"leave": p.Signatures["join"]}}, "leave", 16)
}

// shownKeyIsFirst wants the file for the Secret to hold, first, the key that the controller is shown.
func (m *migration) shownKeyIsFirst(t *testing.T) {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(read(t, filepath.Join(m.Dir, "known-host"))))
	must(t, err)
	if ssh.FingerprintSHA256(key) != m.theirs(t, m.host).Fingerprint {
		t.Errorf("known-host begins with %s", key.Type())
	}
}

// backToItsShim goes back to a shim that knows nothing of warrants.
func (m *migration) backToItsShim(t *testing.T, older, bare client.Profile) {
	t.Helper()
	m.Follow(t, "Back to its shim", 0)
	m.ends(t, older, "join", 0)
	m.ends(t, bare, "leave", 0)
	got, err := delivery.DeliverStatements(t.Context(), m.host.Target(t, m.login.PEM), lab.RelayLimits(), []statement.Signed{m.statement(t, testkit.StatementBases()["revoke"])})
	must(t, err)
	if got[0].Result != delivery.StatementsUnsupported {
		t.Errorf("a statement: %+v", got[0])
	}
}

func (m *migration) backToRaw(t *testing.T, p client.Profile) {
	t.Helper()
	verified := read(t, filepath.Join(m.Dir, "host-1.yaml"))
	printed := m.Follow(t, "Back to raw", 0)
	digest := regexp.MustCompile(`content digest: (sha256:[0-9a-f]{64})\n`).FindStringSubmatch(printed)
	if digest == nil {
		t.Fatalf("inspect prints %s", printed)
	}
	text := read(t, filepath.Join(m.Dir, "host-1.yaml"))
	if strings.Replace(text, "  trustedSigners: []\n", "", 1) != m.raw {
		t.Errorf("the object is not as it was: %s", text)
	}
	m.raw = text
	m.downgradeIs(t, verified, decision.ModeDowngrade)
	m.writePolicy(t, 2, fmt.Sprintf("waivers:\n- {kind: SSHHost, name: host-1, digest: %q, expires: %q, reason: back to Raw}\n",
		digest[1], time.Now().UTC().Add(10*24*time.Hour).Format(time.RFC3339)))
	contains(t, m.Follow(t, "Back to raw", 1), "excused: SSHHost/host-1")
	m.downgradeIs(t, verified, decision.Waived)
	m.FollowInTime(t, "Back to raw", 2)
	contains(t, m.storedMode(t), "root Raw")

	m.Follow(t, "Back to raw", 3)
	m.rawWorks(t, p)
	if _, err := m.theirs(t, m.host).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("the login key still opens something: %v", err)
	}
	m.host.Must(t, "grep -qx 'serial 2' /var/lib/hostwarrant/marks/tls-bootstrap")
}

// downgradeIs judges the update of the stored Verified object to the Raw one, by the policy as it is.
func (m *migration) downgradeIs(t *testing.T, stored string, want decision.Reason) {
	t.Helper()
	var o struct {
		Spec struct {
			Document   string
			Signatures []string
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, filepath.Join(m.Dir, "trust-policy.yaml"))), &o))
	roots, err := trustpolicy.ParseRoots([]byte(m.root.Line))
	must(t, err)
	p, err := trustpolicy.Verify(trustpolicy.Signed{Document: []byte(o.Spec.Document), Signatures: o.Spec.Signatures}, roots, "prod-1", time.Now())
	must(t, err)
	raw, err := yaml.YAMLToJSON([]byte(m.raw))
	must(t, err)
	old, err := yaml.YAMLToJSON([]byte(stored))
	must(t, err)
	answer := verify.Admission(verify.Snapshot{Policy: p, Now: time.Now(), ClusterID: "prod-1"}, verify.Request{
		Operation: verify.Update, Kind: "SSHHost", Namespace: "pool", Name: "host-1", Object: raw, Old: old,
	})
	if answer.Decision.Reason != want {
		t.Errorf("from Verified to Raw: %+v, want %s", answer.Decision, want)
	}
}
