package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/shim"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// hostWorld has a policy that pins a cluster, and a release that the carried shim is of.
type hostWorld struct {
	*world
	release testkit.Signer
	flags   []string
}

func newHostWorld(t *testing.T) *hostWorld {
	t.Helper()
	w := &hostWorld{world: newWorld(t), release: testkit.NewSigner(t, "ed25519")}
	document := strings.Replace(testkit.PolicyDocument(w.alice, w.bob), "clusters: {any: {}}",
		fmt.Sprintf(`clusters: {prod-1: {endpoints: ["https://10.0.0.5:6443"], caSHA256: ["%x"]}, half: {endpoints: ["https://10.0.0.5:6443"]}}`, sha256.Sum256(nil)), 1)
	program, err := shim.Files().ReadFile("kpssh-shim")
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  kpssh-shim\n", sha256.Sum256(program))
	w.write("SHA256SUMS", sums)
	w.write("SHA256SUMS.sig", testkit.Sign(t, w.release, "hostwarrant-release", []byte(sums)))
	w.write("login.pub", testkit.NewSigner(t, "ed25519").Line+" relay\n")
	w.flags = []string{
		"--policy", w.writePolicy("host-policy.json", w.read(w.write("host-document", document))), "--root", w.pubs, "--cluster", "prod-1", "--class", "small",
		"--checksums", w.path("SHA256SUMS"), "--release-key", w.write("release.pub", `release namespaces="hostwarrant-release" `+w.release.Line+"\n"),
	}
	return w
}

func (w *hostWorld) provision(args ...string) result {
	return w.hostwarrant(append(append([]string{"host", "provision"}, w.flags...), args...)...)
}

// without gives the flags but one, with its value.
func (w *hostWorld) without(flag string) []string {
	var kept []string
	for i := 0; i < len(w.flags); i += 2 {
		if w.flags[i] != flag {
			kept = append(kept, w.flags[i:i+2]...)
		}
	}
	return append([]string{"host", "provision"}, kept...)
}

func TestHostProvisionRendersThreeForms(t *testing.T) {
	w := newHostWorld(t)
	r := w.provision("--login-key", w.path("login.pub"), "--from", "10.0.0.0/8", "--from", "2001:db8::1")
	if r.code != exitDone || !strings.HasPrefix(r.out, "#!/bin/sh\n") || !strings.Contains(r.out, `from="10.0.0.0/8,2001:db8::1" ssh-ed25519 `) || strings.Contains(r.err, "warning") {
		t.Fatalf("exit %d, %s, %.200s", r.code, r.err, r.out)
	}
	script := w.path("setup.sh")
	if again := w.provision("--login-key", w.path("login.pub"), "--from", "10.0.0.0/8", "--from", "2001:db8::1", "-o", script); again.code != exitDone || w.read(script) != r.out {
		t.Errorf("to a file: %d, %s", again.code, again.err)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the script's mode: %v, %v", info, err)
	}
	if r := w.provision("--format", "cloud-init"); r.code != exitDone || !strings.HasPrefix(r.out, "#cloud-config\n") || !strings.Contains(r.err, "note: the user data has ") {
		t.Errorf("cloud-init: %d, %s", r.code, r.err)
	}
	role := w.path("role")
	if r := w.provision("--format", "ansible", "-o", role); r.code != exitDone || w.read(filepath.Join(role, "tasks", "main.yml"))[:4] != "---\n" {
		t.Errorf("ansible: %d, %s", r.code, r.err)
	}
	before := w.read(filepath.Join(role, "vars", "main.yml"))
	wantFailed(t, w.provision("--format", "ansible", "-o", role), exitUsage, "is not empty")
	if r := w.provision("--format", "ansible", "-o", role, "--from", "192.0.2.9", "--login-key", w.path("login.pub"), "--force"); r.code != exitDone || w.read(filepath.Join(role, "vars", "main.yml")) == before {
		t.Errorf("over an older role: %d, %s", r.code, r.err)
	}
	if r := w.hostwarrant("host", "provision", "--remove"); r.code != exitDone || !strings.Contains(r.out, "\npurge=no\n") {
		t.Errorf("removal: %d, %s", r.code, r.err)
	}
	if r := w.hostwarrant("host", "provision", "--remove", "--purge", "--format", "ansible", "-o", w.path("gone")); r.code != exitDone || !strings.Contains(w.read(filepath.Join(w.path("gone"), "vars", "main.yml")), "hostwarrant_purge: true\n") {
		t.Errorf("removal by a role: %d, %s", r.code, r.err)
	}
}

// The first policy sets a host up once it pins the cluster: by endpoint and CA, and by nothing less.
func TestHostProvisionTakesThePolicyOfInit(t *testing.T) {
	w := newHostWorld(t)
	ca, err := testkit.ClusterCA()
	if err != nil {
		t.Fatal(err)
	}
	file := w.write("ca.crt", string(ca))
	for name, c := range map[string]struct {
		flags  []string
		code   int
		reason string
	}{
		"pinned":          {[]string{"--cluster", "prod-1=https://10.0.0.5:6443", "--cluster-ca", "prod-1=" + file}, exitDone, ""},
		"without the CA":  {[]string{"--cluster", "prod-1=https://10.0.0.5:6443"}, exitRefused, "ClusterUnpinned"},
		"without the URL": {[]string{"--cluster", "prod-1", "--cluster-ca", "prod-1=" + file}, exitRefused, "ClusterUnpinned"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := filepath.Join(t.TempDir(), "keys")
			if r := w.hostwarrant(append([]string{"init", keys}, c.flags...)...); r.code != exitDone || strings.Contains(r.out, "cannot be set up") != (c.code != exitDone) {
				t.Fatalf("init: exit %d, %s%s", r.code, r.out, r.err)
			}
			r := w.hostwarrant("host", "provision", "--policy", filepath.Join(keys, "trust-policy.yaml"), "--root", filepath.Join(keys, "root.pub"),
				"--cluster", "prod-1", "--class", "default", "--checksums", w.path("SHA256SUMS"), "--release-key", w.path("release.pub"))
			if c.code != exitDone {
				wantFailed(t, r, c.code, c.reason)
			} else if r.code != exitDone || !strings.Contains(r.out, fmt.Sprintf("\nendpoint https://10.0.0.5:6443\nca-sha256 %x\n", sha256.Sum256(ca))) {
				t.Errorf("exit %d, %s, %.200s", r.code, r.err, r.out)
			}
		})
	}
}

func TestHostProvisionRefuses(t *testing.T) {
	w := newHostWorld(t)
	other := testkit.NewSigner(t, "ed25519")
	otherSig := w.write("other.sig", testkit.Sign(t, other, "hostwarrant-release", []byte(w.read(w.path("SHA256SUMS")))))
	for name, c := range map[string]struct {
		args []string
		code int
		word string
	}{
		"no policy":                     {w.without("--policy"), exitUsage, "--policy says what the host must hold"},
		"no roots":                      {w.without("--root"), exitUsage, "--root says"},
		"no cluster":                    {w.without("--cluster"), exitUsage, "--cluster says"},
		"no class":                      {w.without("--class"), exitUsage, "--class says"},
		"any cluster":                   {append(w.without("--cluster"), "--cluster", "any"), exitUsage, "--cluster is the id of one cluster"},
		"another cluster":               {append(w.without("--cluster"), "--cluster", "prod-2"), exitUndecided, "PolicyWrongCluster"},
		"a cluster that is not pinned":  {append(w.without("--cluster"), "--cluster", "half"), exitRefused, "ClusterUnpinned"},
		"a class of no namespace":       {append(w.without("--class"), "--class", "tiny"), exitRefused, "HostClassRefused"},
		"a class that is no label":      {append(w.without("--class"), "--class", "a b"), exitUsage, "--class is a Kubernetes label value"},
		"no checksums":                  {w.without("--checksums"), exitUsage, "the shim must be a release's"},
		"no release key":                {w.without("--release-key"), exitUsage, "the shim must be a release's"},
		"another shim":                  {w.with("--shim", w.write("shim", "#!/bin/sh\n")), exitRefused, "BytesChanged"},
		"a shim that is not there":      {w.with("--shim", w.path("none")), exitUndecided, "reading --shim"},
		"checksums of somebody else's":  {w.with("--checksums-signature", otherSig), exitRefused, "SignerUnknown"},
		"a missing signature":           {w.with("--checksums-signature", w.path("none")), exitUndecided, "SHA256SUMS.sig come with the release"},
		"no release at hand":            {append(w.without("--checksums"), "--checksums", w.path("none")), exitUndecided, "hint: SHA256SUMS and SHA256SUMS.sig come with the release"},
		"a key that is nobody's":        {append(w.without("--release-key"), "--release-key", w.write("release-key.pub", w.alice.Line+" me@here\n")), exitUndecided, "begins with a key, and whose it is comes first"},
		"checked and unchecked":         {w.with("--unsigned-shim"), exitUsage, "--unsigned-shim looks at no checksums"},
		"a key from anywhere":           {w.with("--login-key", w.path("login.pub")), exitUsage, "--login-key and --from go together"},
		"an address for nobody":         {w.with("--from", "10.0.0.1"), exitUsage, "--login-key and --from go together"},
		"a network with bits too many":  {w.with("--from", "10.0.0.1/8", "--login-key", w.path("login.pub")), exitUsage, "--from is an address"},
		"a pattern of addresses":        {w.with("--from", "10.*", "--login-key", w.path("login.pub")), exitUsage, "--from is an address"},
		"a quote in an address":         {w.with("--from", `10.0.0.1" ssh`, "--login-key", w.path("login.pub")), exitUsage, "--from is an address"},
		"an address with a zone":        {w.with("--from", "fe80::1%eth0", "--login-key", w.path("login.pub")), exitUsage, "--from is an address"},
		"a private login key":           {w.with("--from", "10.0.0.1", "--login-key", w.write("login", string(w.alice.PEM))), exitUndecided, "is a private key"},
		"a login key that signs":        {w.with("--from", "10.0.0.1", "--login-key", w.write("alice.pub", w.alice.Line+"\n")), exitRefused, "SignerScope"},
		"a login key that is none":      {w.with("--from", "10.0.0.1", "--login-key", w.write("x.pub", "x\n")), exitUndecided, "--login-key"},
		"a relative key of the kubelet": {w.with("--kubelet-key", "a/b"), exitUsage, "--kubelet-key is an absolute path"},
		"a line of settings":            {w.with("--kubelet-key", "/a\nwarrant=optional"), exitUsage, "--kubelet-key is an absolute path"},
		"too little output":             {w.with("--output-max", "511"), exitUsage, "--output-max is 512 to"},
		"warrants, perhaps":             {w.with("--warrant", "maybe"), exitUsage, "--warrant takes required or optional"},
		"another form":                  {w.with("--format", "puppet"), exitUsage, "--format takes sh, cloud-init or ansible"},
		"a role without a directory":    {w.with("--format", "ansible"), exitUsage, "a role is a directory"},
		"a format for a file":           {w.with("-o", "json"), exitUsage, "-o is the file to write"},
		"a file that is there":          {w.with("-o", w.path("SHA256SUMS")), exitUsage, "exists already"},
		"purge alone":                   {w.with("--purge"), exitUsage, "--purge goes with --remove"},
		"user data that removes":        {[]string{"host", "provision", "--remove", "--format", "cloud-init"}, exitUsage, "removes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, w.hostwarrant(c.args...), c.code, c.word)
		})
	}
	r := w.hostwarrant(append(w.without("--checksums")[:2:2], "--policy", w.flags[1], "--root", w.pubs, "--cluster", "prod-1", "--class", "small", "--unsigned-shim")...)
	if r.code != exitDone || !strings.Contains(r.err, "warning: nobody vouches for the shim") {
		t.Errorf("to try things out: exit %d, %s", r.code, r.err)
	}
	wantFailed(t, w.at(testkit.Now().AddDate(1, 0, 0), "", append([]string{"host", "provision"}, w.flags...)...), exitRefused, "PolicyExpired")
}

func (w *hostWorld) with(args ...string) []string {
	return append(append([]string{"host", "provision"}, w.flags...), args...)
}

// A host that answers is played by an ssh in PATH: what is sent there, and what is made of the answer.
func TestHostCheckAsksOverSSH(t *testing.T) {
	w := newHostWorld(t)
	check := append([]string{"host", "check"}, w.flags...)
	program := filepath.Join(w.dir, "bin", "ssh")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	play := func(script string) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >"+w.path("args")+"\ncat >"+w.path("sent")+"\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	play(fmt.Sprintf("printf 'hostwarrant-facts: v1\\ntime %d\\nopenssh OpenSSH_9.2p1\\nrun tmpfs\\nend\\n'\n", testkit.Now().Unix()))
	r := w.hostwarrant(append(check, "--ssh", "root@host-a", "-o", "json")...)
	var found checked
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != exitRefused || found.Host != "root@host-a" || found.Policy != 3 || len(found.Findings) < 15 {
		t.Errorf("%v: exit %d, %d findings, %s", err, r.code, len(found.Findings), r.err)
	}
	if got := w.read(w.path("args")); got != "-T\n--\nroot@host-a\n"+asRoot+"\n" {
		t.Errorf("ssh was called with %q", got)
	}
	if got := w.read(w.path("sent")); got != string(hostsetup.FactsScript("192.0.2.1")) {
		t.Errorf("what was sent is %.80q", got)
	}
	if r := w.hostwarrant(append(check, "--ssh", "host-a")...); r.code != exitRefused || !strings.Contains(r.out, "\nsudo: does not let kpssh start the shim; fix: ") || strings.Count(r.out, "; fix: ") != strings.Count(r.out, "\n") {
		t.Errorf("in text: exit %d, %s%s", r.code, r.out, r.err)
	}
	play(fmt.Sprintf("printf 'hostwarrant-facts: v1\\ntime %d\\nopenssh OpenSSH_9.2p1\\nsshd-fault \\033[2Jgone\\nrun tmpfs\\nend\\n'\n", testkit.Now().Unix()))
	if r := w.hostwarrant(append(check, "--ssh", "host-a")...); !strings.Contains(r.out, `sshd: does not take its configuration: \x1b[2Jgone; fix: sshd -t`) {
		t.Errorf("what a terminal would obey: %q", r.out)
	}
	play("printf 'hostwarrant-facts: v1\\ntime 1\\n'\n")
	wantFailed(t, w.hostwarrant(append(check, "--ssh", "host-a")...), exitUndecided, "cannot be read")
	play("echo 'Permission denied (publickey).' >&2; exit 255\n")
	wantFailed(t, w.hostwarrant(append(check, "--ssh", "host-a")...), exitUndecided, "exit status 255: Permission denied (publickey).")
	play("exec head -c 20000000 /dev/zero\n")
	wantFailed(t, w.hostwarrant(append(check, "--ssh", "host-a")...), exitUndecided, "asking the host")
	wantFailed(t, w.hostwarrant(append(check, "--ssh", "-oProxyCommand=x")...), exitUsage, "--ssh is [USER@]HOST")
	wantFailed(t, w.hostwarrant(append(check, "--ssh-config", "x")...), exitUsage, "--ssh-config goes with --ssh")
	wantFailed(t, w.hostwarrant(append(check, "-o", "yaml")...), exitUsage, "-o takes text or json")
}

func TestMendDoesWhatThePlanSays(t *testing.T) {
	root := t.TempDir()
	state := hostState{root: root}
	at := func(path string) string { return filepath.Join(root, path) }
	if err := os.MkdirAll(at("var/lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	actions := []hostsetup.Action{
		{Deed: hostsetup.MakeDirectory, Path: "/var/lib/hostwarrant", Say: "make it"},
		{Deed: hostsetup.WriteFile, Path: "/var/lib/hostwarrant/marks/a", Content: []byte("serial 1\n"), Say: "write it"},
		{Deed: hostsetup.SetAside, Path: "/var/lib/hostwarrant/marks/a", To: "/var/lib/hostwarrant/repaired/a.1", Say: "set it aside"},
		{Deed: hostsetup.WriteFile, Path: "/var/lib/hostwarrant/marks/a", Content: []byte("serial 2\n"), Say: "write it again"},
	}
	var out, errs bytes.Buffer
	c := &cli{out: &out, err: &errs}
	err := c.mend(context.Background(), actions, nil, false, state)
	if code := c.report("", err); code != exitRefused || out.String() != "would make it\nwould write it\nwould set it aside\nwould write it again\n" || !strings.Contains(errs.String(), "4 things to mend, and nothing was done") {
		t.Errorf("a plan alone: exit %d, %q, %q", code, &out, &errs)
	}
	if _, err := os.Lstat(at("var/lib/hostwarrant")); err == nil {
		t.Error("a plan alone made something")
	}
	out.Reset()
	if err := c.mend(context.Background(), actions, nil, true, state); err != nil || !strings.HasPrefix(out.String(), "done: make it\n") {
		t.Fatalf("%v, %q, %q", err, &out, &errs)
	}
	got := map[string]string{}
	for _, path := range []string{"marks/a", "repaired/a.1"} {
		text, err := os.ReadFile(at("var/lib/hostwarrant/" + path))
		if err != nil {
			t.Fatal(err)
		}
		got[path] = string(text)
	}
	if diff := cmp.Diff(map[string]string{"marks/a": "serial 2\n", "repaired/a.1": "serial 1\n"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := state.carryOut(actions[2]); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("over what was set aside before: %v", err)
	}
	if err := state.carryOut(hostsetup.Action{Deed: "x"}); err == nil {
		t.Error("something unknown was done")
	}
	if code := c.report("", c.mend(context.Background(), nil, []string{"a mark"}, true, state)); code != exitRefused || !strings.Contains(errs.String(), "error: a mark\n") {
		t.Errorf("what stays broken: exit %d, %q", code, &errs)
	}
	out.Reset()
	if err := c.mend(context.Background(), nil, nil, true, state); err != nil || out.String() != "nothing is broken\n" {
		t.Errorf("a good host: %v, %q", err, &out)
	}
	wantFailed(t, newWorld(t).hostwarrant("host", "repair", "--serial", "1"), exitUsage, "--serial goes with --mark")
}

// repair makes no state on a machine that has nothing of ours, whatever it is asked for; beside it a host that lacks its state alone.
func TestRepairMendsHostsOnly(t *testing.T) {
	const head, end = "hostwarrant-facts: v1\ntime 1700000000\nboot 63b6dfb6-deb7-461a-8897-8f68ba802974\n", "end\n"
	for name, c := range map[string]struct {
		facts string
		o     repairOptions
		code  int
		said  string
	}{
		"never set up":             {head + end, repairOptions{}, exitUndecided, "error: this is no host that was set up"},
		"never set up, --yes":      {head + end, repairOptions{yes: true}, exitUndecided, "hint: hostwarrant host provision"},
		"never set up, by name":    {head + end, repairOptions{Repair: hostsetup.Repair{State: true, Serial: -1}}, exitUndecided, "error: this is no host that was set up"},
		"a host without its state": {head + "entry 41ed 0 0 /etc/kpssh\n" + end, repairOptions{Repair: hostsetup.Repair{Serial: -1}}, exitRefused, "1 thing to mend, and nothing was done"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := hostsetup.ParseFacts([]byte(c.facts))
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			var out, errs bytes.Buffer
			cli := &cli{out: &out, err: &errs}
			if code := cli.report("", cli.repair(t.Context(), c.o, facts, hostState{root: root})); code != c.code || !strings.Contains(errs.String(), c.said) {
				t.Errorf("exit %d, %q, %q", code, &out, &errs)
			}
			if made, err := os.ReadDir(root); err != nil || len(made) > 0 {
				t.Errorf("made %v, %v", made, err)
			}
		})
	}
}

// From the second generation of roots on a host gets the statement that named them, from which it counts.
func TestHostsStartAtTheRootsInForce(t *testing.T) {
	w := newHostWorld(t)
	next := testkit.NewSigner(t, "ed25519")
	link := (&statement.Statement{
		Kind: statement.KindRoots, Serial: 2, Issued: testkit.Now().Unix(), Cluster: "prod-1", Roots: &statement.Roots{Threshold: 1, Keys: []ssh.PublicKey{next.PublicKey()}},
	}).Text()
	document := strings.Replace(w.read(w.path("host-document")), "rootVersion: 1", "rootVersion: 2", 1)
	sign := func(s testkit.Signer, namespace string, text []byte) string {
		return testkit.Sign(t, s, namespace, text)
	}
	blocks := []string{sign(w.root, statement.Namespace, link), sign(next, statement.Namespace, link)}
	policy := func(chain []any) string {
		return w.write("next.json", w.json(map[string]any{
			"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
			"spec": map[string]any{"document": document, "signatures": []string{sign(next, trustpolicy.Namespace, []byte(document))}, "rootChain": chain},
		}))
	}
	chained := []any{map[string]any{"document": string(link), "signatures": []string{blocks[0], strings.TrimSuffix(blocks[1], "\n")}}}
	args := func(policy, root string) []string {
		return []string{"host", "provision", "--policy", policy, "--root", root, "--cluster", "prod-1", "--class", "small", "--unsigned-shim"}
	}
	kept := "/var/lib/hostwarrant/statements/roots 600 "
	r := w.hostwarrant(args(policy(chained), w.pubs)...)
	if r.code != exitDone || !strings.Contains(r.out, kept) || !strings.Contains(r.out, "END_OF_FILE'\n"+string(link)+blocks[0]+blocks[1]+"END_OF_FILE\n") || strings.Contains(r.err, "take no later one") {
		t.Errorf("by the chain: exit %d, %s", r.code, r.err)
	}
	r = w.hostwarrant(args(policy([]any{}), w.write("roots-2", string(link)))...)
	if r.code != exitDone || !strings.Contains(r.out, kept) || strings.Contains(r.err, "take no later one") {
		t.Errorf("by the anchor: exit %d, %s", r.code, r.err)
	}
	if r := w.hostwarrant(w.with()...); r.code != exitDone || strings.Contains(r.out, kept) || strings.Contains(r.err, "take no later one") {
		t.Errorf("of the first generation: exit %d, %s", r.code, r.err)
	}
}
