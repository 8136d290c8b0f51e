package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestVerifyAcceptsWhatIsSigned(t *testing.T) {
	w := newWorld(t)
	for name, key := range map[string]testkit.Signer{"Ed25519": w.alice, "ECDSA": w.bob} {
		t.Run(name, func(t *testing.T) {
			wantVerified(t, w.verify(w.profile(goodScripts(), w.signedBy(key, goodScripts()))))
		})
	}
}

// bad is a profile that must be refused.
type bad struct {
	scripts    map[script.Phase]string
	signatures any
	reason     string
}

// edited gives good signatures with the join one changed.
func (w *world) edited(change func(string) string) map[script.Phase]string {
	all := w.signedBy(w.alice, goodScripts())
	all[script.Join] = change(all[script.Join])
	return all
}

// other gives good signatures over good scripts, with another join script beside them.
func (w *world) other(join, reason string) bad {
	scripts := goodScripts()
	scripts[script.Join] = join
	return bad{scripts, w.signedBy(w.alice, goodScripts()), reason}
}

func (w *world) badProfiles() map[string]bad {
	good := goodScripts()
	join := good[script.Join]
	without := w.signedBy(w.alice, good)
	delete(without, script.Join)
	swapped := w.signedBy(w.alice, good)
	swapped[script.Join] = swapped[script.Leave]
	armored := func(b testkit.Blob) func(string) string { return func(string) string { return b.Armor() } }
	blob := testkit.NewBlob(w.t, w.alice, script.Namespace, []byte(join))
	dsa, cert := blob, blob
	dsa.Key = wire("ssh-dss", "x")
	cert.Key = wire("ssh-ed25519-cert-v01@openssh.com", "x")
	weak := testkit.NewSigner(w.t, "rsa2048")
	small := blob
	small.Key = weak.PublicKey().Marshal()
	return map[string]bad{
		"absent signatures":            {good, nil, "Unsigned"},
		"empty signatures":             {good, map[string]string{}, "Unsigned"},
		"an empty text as a signature": {good, map[string]string{"install": "", "join": "", "leave": ""}, "Unsigned"},
		"null signatures":              {good, map[string]any{"install": nil, "join": nil, "leave": nil}, "Unsigned"},
		"one phase unsigned":           {good, without, "Unsigned"},
		"a key the policy lacks":       {good, w.signedBy(w.stranger, good), "SignerUnknown"},
		"another namespace":            {good, w.edited(func(string) string { return testkit.Sign(w.t, w.alice, "file", []byte(join)) }), "WrongNamespace"},
		"another phase's signature":    {good, swapped, "BytesChanged"},
		"one byte altered":             w.other("#!/bin/sh\necho joim\n", "BytesChanged"),
		"a lost final newline":         w.other(strings.TrimSuffix(join, "\n"), "NewlineChanged"),
		"CRLF":                         w.other(strings.ReplaceAll(join, "\n", "\r\n"), "NewlineChanged"),
		"a template":                   w.other("echo {{ .Name }}\n", "TemplateFound"),
		"a NUL":                        w.other("echo \x00\n", "Malformed"),
		"a warrant put in":             w.other("#warrant: v1\n", "BytesChanged"),
		"an empty script":              w.other("", "Malformed"),
		"text before the armor":        {good, w.edited(func(s string) string { return "x\n" + s }), "SignatureMalformed"},
		"text behind the armor":        {good, w.edited(func(s string) string { return s + "x\n" }), "SignatureMalformed"},
		"truncated base64":             {good, w.edited(func(s string) string { return strings.Replace(s, "=", "", 1) }), "SignatureMalformed"},
		"1 MiB of junk":                {good, w.edited(func(string) string { return strings.Repeat("x", 1<<20) }), "SignatureMalformed"},
		"a DSA key":                    {good, w.edited(armored(dsa)), "KeyTypeRefused"},
		"a broken certificate":         {good, w.edited(armored(cert)), "SignatureMalformed"},
		"RSA below 3072 bits":          {good, w.edited(armored(small)), "KeyTypeRefused"},
	}
}

func wire(parts ...string) []byte {
	return ssh.Marshal(struct{ A, B string }{parts[0], parts[1]})
}

func TestVerifyRefusesBadProfilesInTheClustersWords(t *testing.T) {
	w := newWorld(t)
	for name, tt := range w.badProfiles() {
		t.Run(name, func(t *testing.T) {
			text := w.profile(tt.scripts, tt.signatures)
			r := w.verify(text)
			wantRefused(t, r, tt.reason)
			p, err := object.ParseJoinProfile([]byte(text))
			if err != nil {
				return // the engine is not asked
			}
			policy := testkit.Policy(t, testkit.PolicyDocument(w.alice, w.bob), w.root)
			want := verify.JoinProfile(verify.Snapshot{Policy: policy, Now: testkit.Now()}, p).Message()
			if got := strings.TrimSpace(r.out); !strings.HasSuffix(got, ": refused: "+want) {
				t.Errorf("want the engine's words %q, got %q", want, got)
			}
		})
	}
}

func TestVerifyRefusesKeysOfThePolicyThatMayNotSign(t *testing.T) {
	w := newWorld(t)
	sk, untouched := testkit.NewSigner(t, "sk-ed25519"), testkit.NewSigner(t, "sk-ed25519-untouched")
	rsa := testkit.NewSigner(t, "rsa3072")
	w.policy = w.writePolicy("policy.json", testkit.PolicyDocument(sk, untouched, rsa))
	good := w.signedBy(rsa, goodScripts())
	wantVerified(t, w.verify(w.profile(goodScripts(), good)))

	r := w.verify(w.profile(goodScripts(), w.signedBy(sk, goodScripts())))
	wantVerified(t, r)
	if !strings.Contains(r.err, "hostwarrant: warning: ") || !strings.Contains(r.err, "security key") {
		t.Errorf("want a warning about the security key, got %q", r.err)
	}
	blob := testkit.NewBlob(t, rsa, script.Namespace, []byte(goodScripts()[script.Join]))
	blob.Signature = wire("ssh-rsa", strings.Repeat("x", 384)) // SHA-1
	good[script.Join] = blob.Armor()
	wantRefused(t, w.verify(w.profile(goodScripts(), good)), "KeyTypeRefused")
	good[script.Join] = untouchedSignature(t, untouched, goodScripts()[script.Join])
	wantRefused(t, w.verify(w.profile(goodScripts(), good)), "TouchMissing")
}

// untouchedSignature signs as a token that nobody touched: our own code refuses to write that.
func untouchedSignature(t *testing.T, key testkit.Signer, text string) string {
	t.Helper()
	touched := testkit.NewSigner(t, "sk-ed25519")
	b := testkit.NewBlob(t, touched, script.Namespace, []byte(text))
	sig, err := key.Sign(nil, signedData(t, script.Namespace, text))
	if err != nil {
		t.Fatal(err)
	}
	b.Key = key.PublicKey().Marshal()
	b.Signature = append(wire(sig.Format, string(sig.Blob)), sig.Rest...)
	return b.Armor()
}

func TestVerifyWantsDistinctKeysForAThreshold(t *testing.T) {
	w := newWorld(t)
	document := strings.Replace(testkit.PolicyDocument(w.alice, w.bob), "thresholds: {}", "thresholds: {join: 2}", 1)
	w.policy = w.writePolicy("policy.json", document)
	signatures := w.signedBy(w.alice, goodScripts())
	twice := signatures[script.Join] + testkit.Sign(t, w.alice, script.Namespace, []byte(goodScripts()[script.Join]))
	both := signatures[script.Join] + testkit.Sign(t, w.bob, script.Namespace, []byte(goodScripts()[script.Join]))

	wantRefused(t, w.verify(w.profile(goodScripts(), signatures)), "ThresholdNotMet")
	signatures[script.Join] = twice
	wantRefused(t, w.verify(w.profile(goodScripts(), signatures)), "ThresholdNotMet")
	signatures[script.Join] = both
	wantVerified(t, w.verify(w.profile(goodScripts(), signatures)))
}

func TestVerifyJudgesHosts(t *testing.T) {
	w := newWorld(t)
	host := func(spec map[string]any) string {
		all := map[string]any{"address": "10.0.0.1", "user": "kpssh", "execMode": "Verified", "trustedSigners": []string{w.alice.Line}}
		for k, v := range spec {
			all[k] = v
		}
		return w.json(map[string]any{
			"apiVersion": profileAPIVersion, "kind": "SSHHost", "metadata": map[string]any{"name": "host-a", "namespace": "pool"}, "spec": all,
		})
	}
	for name, tt := range map[string]struct {
		spec   map[string]any
		reason string // "" for verified
	}{
		"a good host":                          {nil, ""},
		"signers that the webhook fills in":    {map[string]any{"trustedSigners": nil}, ""},
		"the allowed shim":                     {map[string]any{"shimCommand": "/opt/kpssh/kpssh-shim"}, ""},
		"Raw":                                  {map[string]any{"execMode": "Raw"}, "RawRefused"},
		"no execMode, which the CRD makes Raw": {map[string]any{"execMode": nil}, "RawRefused"},
		"a signer outside the policy":          {map[string]any{"trustedSigners": []string{w.stranger.Line}}, "SignersNotInPolicy"},
		"a foreign shim":                       {map[string]any{"shimCommand": "/bin/sh"}, "ShimCommandRefused"},
		"root":                                 {map[string]any{"user": "root"}, "UserRefused"},
		"no user, which the CRD makes root":    {map[string]any{"user": nil}, "UserRefused"},
		"another port":                         {map[string]any{"port": 2222}, "PortRefused"},
		"a malformed key":                      {map[string]any{"trustedSigners": []string{"ssh-ed25519 AAAA"}}, "Malformed"},
		"a text where a number belongs":        {map[string]any{"port": "22"}, "Malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := w.verify(host(tt.spec)); tt.reason == "" {
				wantVerified(t, r)
			} else {
				wantRefused(t, r, tt.reason)
			}
		})
	}
}

func TestVerifyJudgesTrustPolicyObjectsAgainstTheOneInForce(t *testing.T) {
	w := newWorld(t)
	document := testkit.PolicyDocument(w.alice, w.bob)
	replace := func(old, new string) string { return strings.Replace(document, old, new, 1) }
	wantVerified(t, w.verify(w.policyObject(document, w.root)))
	wantVerified(t, w.verify(w.policyObject(replace("version: 3", "version: 4"), w.root)))
	wantRefused(t, w.verify(w.policyObject(replace("version: 3", "version: 2"), w.root)), "PolicyRollback")
	wantRefused(t, w.verify(w.policyObject(document+"# other\n", w.root)), "PolicyEquivocation")
	wantRefused(t, w.verify(w.policyObject(document)), "PolicyUnsigned")
	wantRefused(t, w.verify(w.policyObject(document, w.stranger)), "PolicyUnsigned")
	wantRefused(t, w.verify(w.policyObject(replace("thresholds: {}", "thresholds: {join: 0}"), w.root)), "PolicyMalformed")
	wantRefused(t, w.verify(w.policyObject(replace("{any: {}}", "{prod-1: {}}"), w.root)), "PolicyWrongCluster")
	wantRefused(t, w.verify(w.policyObject(replace("2027-05-29", "2026-11-30"), w.root)), "PolicyExpired")
	other := strings.Replace(w.policyObject(document, w.root), `"name":"cluster"`, `"name":"other"`, 1)
	wantRefused(t, w.verify(other), "PolicyMalformed")
}

func TestVerifyWithAPolicyThatCannotBeUsed(t *testing.T) {
	w := newWorld(t)
	good := w.write("profile.json", w.profile(goodScripts(), w.signedBy(w.alice, goodScripts())))
	document := testkit.PolicyDocument(w.alice)
	for name, tt := range map[string]struct{ policy, word string }{
		"unsigned":        {w.policyObject(document), "PolicyUnsigned"},
		"another root":    {w.policyObject(document, w.stranger), "PolicyUnsigned"},
		"another cluster": {w.policyObject(strings.Replace(document, "{any: {}}", "{prod-1: {}}", 1), w.root), "PolicyWrongCluster"},
		"threshold 0":     {w.policyObject(strings.Replace(document, "thresholds: {}", "thresholds: {join: 0}", 1), w.root), "PolicyMalformed"},
		"not a policy":    {w.profile(goodScripts(), nil), "neither a TrustPolicy object nor a policy document"},
		"not YAML":        {"{", "did not find"},
		"a policy twice":  {w.policyObject(document, w.root) + w.policyObject(document, w.root), "more than one TrustPolicy"},
		"a key twice":     {strings.Replace(w.policyObject(document, w.root), `"spec":{`, `"spec":{"document":"",`, 1), "stands twice"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := w.write("bad-policy.json", tt.policy)
			wantFailed(t, w.hostwarrant("verify", good, "--policy", policy, "--root", w.pubs), exitUndecided, tt.word)
		})
	}
	wantFailed(t, w.hostwarrant("verify", good, "--policy", w.path("none"), "--root", w.pubs), exitUndecided, "none")
	wantFailed(t, w.hostwarrant("verify", good, "--policy", w.policy, "--root", w.path("none")), exitUndecided, "none")
	wantFailed(t, w.hostwarrant("verify", good, "--policy", w.policy, "--root", good), exitUndecided, "root key on line 1")
	r := w.at(testkit.Now().Add(365*24*time.Hour), "", "verify", good, "--policy", w.policy, "--root", w.pubs)
	wantRefused(t, r, "PolicyExpired")
}

func TestVerifyTakesADocumentWithDetachedSignatures(t *testing.T) {
	w := newWorld(t)
	document := testkit.PolicyDocument(w.alice)
	policy := w.write("doc.yaml", document)
	good := w.write("profile.json", w.profile(goodScripts(), w.signedBy(w.alice, goodScripts())))
	wantFailed(t, w.hostwarrant("verify", good, "--policy", policy, "--root", w.pubs), exitUndecided, "PolicyUnsigned")
	w.write("doc.yaml.sig", testkit.Sign(t, w.root, "hostwarrant-policy", []byte(document)))
	wantVerified(t, w.hostwarrant("verify", good, "--policy", policy, "--root", w.pubs))
	w.write("doc.yaml.sig", testkit.Sign(t, w.root, "hostwarrant-policy", []byte(document+"\n")))
	wantFailed(t, w.hostwarrant("verify", good, "--policy", policy, "--root", w.pubs), exitUndecided, "NewlineChanged")
}

func TestVerifyRefusesTextThatCanBeReadInTwoWays(t *testing.T) {
	w := newWorld(t)
	r := w.hostwarrant("sign", w.write("p.yaml", plainProfile), "--key", w.key("alice", w.alice))
	good := r.out
	wantVerified(t, w.verify(good))
	inSpec := func(line string) string { return strings.Replace(good, "  version: '7'\n", "  version: '7'\n"+line, 1) }
	goodJSON := w.profile(goodScripts(), w.signedBy(w.alice, goodScripts()))
	wantVerified(t, w.verify(goodJSON))
	inJSON := func(member string) string { return strings.Replace(goodJSON, `"spec":{`, `"spec":{`+member+`,`, 1) }
	for name, text := range map[string]string{
		"a key twice":                       inSpec("  version: '8'\n"),
		"a kind twice":                      "kind: ConfigMap\n" + good,
		"a kind in another case":            "Kind: ConfigMap\n" + good,
		"items twice":                       "items: []\n" + good + "items: []\n",
		"an alias":                          inSpec("  a: &a x\n  b: *a\n"),
		"an anchor that nobody uses":        inSpec("  a: &a x\n"),
		"a merge key":                       inSpec("  <<: {a: b}\n"),
		"a merge key that holds kind":       "<<: {kind: SSHJoinProfile}\n",
		"an alias as kind":                  "x: &k SSHJoinProfile\nkind: *k\n",
		"an explicit tag":                   inSpec("  a: !!binary eA==\n"),
		"a tag that says nothing":           inSpec("  a: ! 1\n"),
		"a key that is no text":             inSpec("  1: a\n"),
		"a key that is a YAML 1.1 boolean":  inSpec("  on: a\n"),
		"a number that JSON does not have":  inSpec("  a: .inf\n"),
		"a marker with text":                good + "--- # next\nkind: X\n",
		"an end marker":                     good + "...\nkind: X\n",
		"a directive":                       "%YAML 1.1\n---\n" + good,
		"a byte order mark":                 "\ufeff" + good,
		"one in a later document":           good + "---\n\ufeff" + good,
		"one inside a document":             strings.Replace(good, "# kept", "# \ufeff", 1),
		"a space that is none to YAML":      "\u00a0" + `{a: b,"apiVersion":"karpenter.dklesev.github.io/v1beta1","kind":"SSHJoinProfile"}`,
		"one in a later document, NEL":      good + "---\n\u0085{}\n",
		"more blanks than kubectl looks at": strings.Repeat("\n", 4100) + good,
		"a guarded kind without apiVersion": strings.Replace(good, "apiVersion: karpenter.dklesev.github.io/v1beta1\n", "", 1),
		"a NUL":                             good + "# \x00\n",
		"text that is not UTF-8":            good + "x: \"\xff\"\n",
		"not a map":                         "- a\n",
		"broken YAML":                       good + "x: {\n",
		"a list item without a kind":        "apiVersion: karpenter.dklesev.github.io/v1beta1\nkind: SSHJoinProfileList\nitems:\n- metadata: {name: p}\n",
		"a JSON key twice":                  inJSON(`"version":"1","version":"2"`),
		"a JSON key twice, once as \\u0076": inJSON(`"version":"1","\u0076ersion":"2"`),
		"JSON that is not UTF-8":            inJSON("\"x\":\"\xff\""),
		"a number where text belongs":       inSpec("  signatures: {join: 1}\n"),
		"a script that is a boolean":        strings.Replace(good, "    leave: |-\n      #!/bin/sh\n      echo leave\n", "    leave: yes\n", 1),
		"an unknown phase":                  strings.Replace(good, "  scripts:\n", "  scripts:\n    Join: x\n", 1),
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, w.verify(text), "Malformed") })
	}
}

func TestVerifyNamesWhatItSkipsAndCountsOnlyWhatItJudged(t *testing.T) {
	w := newWorld(t)
	good := w.profile(goodScripts(), w.signedBy(w.alice, goodScripts()))
	list := `{"apiVersion":"v1","kind":"List","items":[` + good + `,` + w.profile(goodScripts(), nil) + `]}`
	other := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: &a {k: v}\n"

	r := w.verify(other + "---\n" + good + "\n")
	wantVerified(t, r)
	if !strings.Contains(r.err, "document 1: ConfigMap/x is of no kind that is guarded, skipped") {
		t.Errorf("the ConfigMap is not named: %q", r.err)
	}
	r = w.verify(list)
	wantRefused(t, r, "Unsigned")
	if !strings.Contains(r.out, "object.json, items[0]: verified: ") || !strings.Contains(r.out, "object.json, items[1]: refused: ") {
		t.Errorf("want both items, got %q", r.out)
	}
	wantFailed(t, w.verify(other), exitUndecided, "nothing to verify")
	wantFailed(t, w.verify(""), exitUndecided, "nothing to verify")
	wantFailed(t, w.verify("# nothing but a comment\n"), exitUndecided, "nothing to verify")
	wantFailed(t, w.verify("---\n---\n"), exitUndecided, "nothing to verify")
	wantFailed(t, w.verify(strings.ReplaceAll(good, "karpenter.dklesev.github.io/", "other.example/")), exitUndecided, "nothing to verify")
	wantFailed(t, w.hostwarrant("verify", t.TempDir(), "--policy", w.policy, "--root", w.pubs), exitUndecided, "nothing to verify")
	wantFailed(t, w.hostwarrant("verify", w.path("none"), "--policy", w.policy, "--root", w.pubs), exitUndecided, "none")
	wantVerified(t, w.withInput(good, "verify", "-", "--policy", w.policy, "--root", w.pubs))
}

// A path that holds nothing is not covered by another that does: a pipeline that made nothing must fail.
func TestVerifyWantsSomethingInEachPath(t *testing.T) {
	w := newWorld(t)
	good := w.write("good.json", w.profile(goodScripts(), w.signedBy(w.alice, goodScripts())))
	bad := w.profile(goodScripts(), nil)
	w.write("unsigned/p.json", bad)
	link := w.path("link")
	if err := os.Symlink(w.path("unsigned"), link); err != nil {
		t.Fatal(err)
	}
	trust := []string{"--policy", w.policy, "--root", w.pubs}
	for name, path := range map[string]string{
		"an empty file":            w.write("empty.yaml", ""),
		"a comment":                w.write("comment.yaml", "# nothing\n"),
		"an empty directory":       t.TempDir(),
		"stdin that gives nothing": "-",
		"a text without a kind":    w.write("values.yaml", "a: b\n"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, paths := range [][]string{{good, path}, {path, good}} {
				r := w.hostwarrant(slices.Concat([]string{"verify"}, paths, trust)...)
				if r.code != exitUndecided || !strings.Contains(r.err, path+": there is nothing to verify") {
					t.Errorf("%v: exit %d, %s", paths, r.code, r.err)
				}
			}
		})
	}
	other := w.write("other.yaml", "apiVersion: v1\nkind: ConfigMap\n")
	if r := w.hostwarrant(slices.Concat([]string{"verify", good, other}, trust)...); r.code != exitDone || !strings.Contains(r.err, "ConfigMap/ is of no kind that is guarded") {
		t.Errorf("an object of another kind is something: exit %d, %s", r.code, r.err)
	}
	wantFailed(t, w.hostwarrant(slices.Concat([]string{"verify", other}, trust)...), exitUndecided, "there is nothing to verify")
	wantRefused(t, w.hostwarrant(slices.Concat([]string{"verify", good, link}, trust)...), "Unsigned")
	// A refusal is a refusal, whatever the other paths hold.
	wantRefused(t, w.hostwarrant(slices.Concat([]string{"verify", w.path("empty.yaml"), link}, trust)...), "Unsigned")
}

// What stands beside scripts under the name of their terms is judged unless it is terms.
func TestVerifyJudgesAManifestThatIsCalledWarrantYAML(t *testing.T) {
	w := newWorld(t)
	signatures := w.signedBy(w.alice, goodScripts())
	for phase, text := range goodScripts() {
		w.write("tls/"+scriptFile(phase), text)
		w.write("tls/"+scriptFile(phase)+".sig", signatures[phase])
	}
	args := []string{"verify", w.path("tls"), "--policy", w.policy, "--root", w.pubs}
	w.write("tls/warrant.yaml", "serial: 1\ntargets: [any]\n")
	wantVerified(t, w.hostwarrant(args...))
	w.write("tls/warrant.yaml", w.profile(goodScripts(), nil))
	wantRefused(t, w.hostwarrant(args...), "Unsigned")
}

// A pipe that nobody writes to, or a device, would be read for ever.
func TestWalksReadRegularFilesOnly(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"pipe.yaml", "install.sh"} {
		dir := t.TempDir()
		if out, err := exec.Command(testkit.Tool(t, "mkfifo"), filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, command := range [][]string{{"verify", dir, "--policy", w.policy, "--root", w.pubs}, {"lint", dir}, {"inspect", dir}} {
			wantFailed(t, w.hostwarrant(command...), exitUndecided, "is not a regular file")
		}
	}
}

// Work grows with the input, not with its square.
func TestLongLinesAndManyProfilesTakeNoTime(t *testing.T) {
	w := newWorld(t)
	long := `{"a":[` + strings.Repeat("1,", 1<<19) + "1]}"
	flow := "a: [" + strings.Repeat("a,", 1<<18) + "a]\n"
	changed := goodScripts()
	changed[script.Join] = "#!/bin/sh\necho changed\n"
	many := strings.Repeat(w.profile(changed, w.signedBy(w.alice, goodScripts()))+"\n", 200)
	began := time.Now()
	for _, text := range []string{long, flow, many} {
		if r := w.verify(text); r.code == exitDone {
			t.Errorf("exit %d", r.code)
		}
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Names of files come from others too.
func TestMessagesEscapeFileNames(t *testing.T) {
	w := newWorld(t)
	const name = "x\x1b[31m\u202ey.yaml"
	w.write("d/"+name, "kind: ConfigMap\n")
	for _, args := range [][]string{
		{"verify", w.path("d"), "--policy", w.policy, "--root", w.pubs},
		{"verify", w.path("no" + name), "--policy", w.policy, "--root", w.pubs},
		{"inspect", w.path("d/" + name)},
		{"lint", w.path("d/" + name)},
		{"sign", w.path("d/" + name), "--key", w.key("alice", w.alice)},
		{"sign", "--no" + name},
	} {
		r := w.hostwarrant(args...)
		if r.code == exitDone || strings.ContainsAny(r.out+r.err, "\x1b\u202e") {
			t.Errorf("%v: exit %d, %q%q", args, r.code, r.out, r.err)
		}
	}
}

func TestVerifyPrintsDecisionsAsJSON(t *testing.T) {
	w := newWorld(t)
	path := w.write("a/b/profile.yml", w.profile(goodScripts(), nil))
	r := w.hostwarrant("verify", w.path("a"), "--policy", w.policy, "--root", w.pubs, "-o", "json")
	var rows []row
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) != 1 || r.code != exitRefused {
		t.Fatalf("%v: exit %d, %s", err, r.code, r.out)
	}
	if rows[0].Path != path || rows[0].Reason != "Unsigned" || rows[0].Outcome != "deny" || !strings.HasPrefix(rows[0].Message, "SSHJoinProfile/tls-bootstrap: install: Unsigned: ") {
		t.Errorf("got %+v", rows[0])
	}
	wantFailed(t, w.hostwarrant("verify", path, "--policy", w.policy, "--root", w.pubs, "-o", "xml"), exitUsage, "text, json or sarif")
}

func TestVerifyPrintsSARIF(t *testing.T) {
	w := newWorld(t)
	path := w.damaged(t, func(s string) string { return strings.Replace(s, "install: |\n", "install: >\n", 1) })
	r := w.hostwarrant("verify", path, w.path("source.yaml"), "--policy", w.policy, "--root", w.pubs, "-o", "sarif")
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID, Level string
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &log); err != nil || r.code != exitRefused || len(log.Runs) != 1 || len(log.Runs[0].Results) < 1 {
		t.Fatalf("%v: exit %d, %s", err, r.code, r.out)
	}
	got := log.Runs[0].Results[0]
	for _, other := range log.Runs[0].Results[1:] { // what lint says of the source
		if other.RuleID != "Warning" || other.Level != "warning" {
			t.Errorf("got %+v as well", other)
		}
	}
	at := got.Locations[0].PhysicalLocation
	if got.RuleID != "BytesChanged" || got.Level != "error" || at.Region.StartLine != 9 || at.ArtifactLocation.URI != "file://"+path || !strings.Contains(got.Message.Text, "folded block scalar") {
		t.Errorf("got %+v", got)
	}
	good := w.hostwarrant("verify", w.path("source.yaml"), "--policy", w.policy, "--root", w.pubs, "-o", "sarif")
	if good.code != exitDone || strings.Contains(good.out, `"level": "error"`) {
		t.Errorf("exit %d, %s", good.code, good.out)
	}
}

func TestVerifyReadsDirectoriesOfScripts(t *testing.T) {
	w := newWorld(t)
	signatures := w.signedBy(w.alice, goodScripts())
	for phase, text := range goodScripts() {
		w.write("tls/"+scriptFile(phase), text)
		w.write("tls/"+scriptFile(phase)+".sig", signatures[phase])
	}
	args := []string{"verify", w.path("tls"), "--policy", w.policy, "--root", w.pubs}
	wantVerified(t, w.hostwarrant(args...))
	w.write("tls/join.sh", "echo other\n")
	wantRefused(t, w.hostwarrant(args...), "BytesChanged")
	w.write("tls/join.sh", "echo \xff\n")
	wantRefused(t, w.hostwarrant(args...), "Malformed")
	w.write("tls/join.sh", "")
	wantRefused(t, w.hostwarrant(args...), "Malformed")
	w.write("tls/join.sh", goodScripts()[script.Join])
	w.write("tls/uninstall.sh.sig", signatures[script.Join])
	wantRefused(t, w.hostwarrant(args...), "Malformed")
}
