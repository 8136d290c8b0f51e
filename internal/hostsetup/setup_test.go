package hostsetup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/shim"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestASetupIsWhatThePolicySays(t *testing.T) {
	w := newWorld(t)
	s, notes, err := New(w.policy(t), testkit.Now(), shipped(t), w.options())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range s.Files {
		if f.Path != ShimPath && f.Path != sshdPath && f.Path != sudoersPath && !strings.HasSuffix(f.Path, "revoked_keys") {
			got[strings.TrimPrefix(f.Path, TrustDir+"/")] = string(f.Content)
		}
	}
	want := map[string]string{
		"allowed_signers": "install@*,join@*,leave@*,uninstall@*,kpssh namespaces=\"kpssh\" " + w.alice.Line + "\n",
		"root_signers":    "root namespaces=\"hostwarrant-statement\" " + w.root.Line + "\n",
		"floors":          "tls-bootstrap 40\nweb-* 1\n",
		"cluster":         "id prod-1\nendpoint " + endpoint + "\nca-sha256 " + caDigest + "\n",
		"shim.conf": "# Rendered by hostwarrant host provision; what accepted statements say wins.\nwarrant=required\nclass=small\nthreshold-install=1\n" +
			"threshold-join=1\nthreshold-leave=1\nthreshold-uninstall=1\nroot-threshold=1\nmax-validity=90d\nsigners-expire=1811548800\n" +
			"kubelet-key=/var/lib/kubelet/pki/kubelet-client.key.tmp\n",
		"authorized_keys": "restrict,command=\"/opt/kpssh/kpssh-shim\",from=\"10.0.0.0/8,192.0.2.5\" " + w.login.Line + "\n",
	}
	// 2027-05-29T00:00:00Z
	want["shim.conf"] = strings.Replace(want["shim.conf"], "1811548800", fmt.Sprint(w.policy(t).Expires.Unix()), 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	list, err := krl.Parse(s.file(TrustDir + "/revoked_keys").Content)
	if err != nil || list.Revoked(w.alice.PublicKey()) {
		t.Errorf("revoked_keys: %v", err)
	}
	var said []string
	for _, n := range notes {
		said = append(said, n.Level+": "+n.Text)
	}
	if diff := cmp.Diff([]string{
		`note: signer "signer-1" is for other hosts (class large), left out`,
		"note: the policy does not require warrants and these hosts do: they refuse scripts without one (--warrant optional takes them)",
	}, said); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if s.LoginAddress != "192.0.2.5" || s.Absent != nil {
		t.Errorf("login address %s, absent %v", s.LoginAddress, s.Absent)
	}
}

// Who sets a host up by hand, with the settings that ship beside the shim, gets what a setup gives.
func TestTheShippedSettingsAreThoseOfASetup(t *testing.T) {
	w := newWorld(t)
	shipped, err := shim.Files().ReadFile("etc/shim.conf")
	if err != nil {
		t.Fatal(err)
	}
	rendered := string(w.setup(t).file(TrustDir + "/shim.conf").Content)
	filled := strings.NewReplacer("@CLASS@", "small", "@END@", fmt.Sprint(w.policy(t).Expires.Unix())).Replace(string(shipped))
	settings := 0
	for line := range strings.Lines(filled) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		settings++
		if !strings.Contains(rendered, "\n"+line) {
			t.Errorf("a setup does not say %q", line)
		}
	}
	if settings < 4 {
		t.Errorf("only %d settings ship", settings)
	}
}

func TestSetupsOfOtherHosts(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(*Options)
		file   string
		has    string
		note   string
	}{
		"another class":          {func(o *Options) { o.Class = "large" }, "allowed_signers", w.bob.Line, ""},
		"upstream's shim":        {func(o *Options) { o.Class, o.ForUpstreamShim = "large", true }, "allowed_signers", "uninstall@*,kpssh namespaces=\"kpssh\" " + w.bob.Line, "karpenter-provider-ssh's shim does not hold it to that"},
		"nobody logs in":         {func(o *Options) { o.LoginKeys = nil }, "authorized_keys", "", "nobody may log in as kpssh"},
		"scripts of both kinds":  {func(o *Options) { o.WarrantRequired = false }, "shim.conf", "warrant=optional\n", ""},
		"a key of the kubelet's": {func(o *Options) { o.KubeletKey = "/var/lib/kubelet/key" }, "shim.conf", "\nkubelet-key=/var/lib/kubelet/key\n", ""},
		"bounds":                 {func(o *Options) { o.MaxSerialStep, o.OutputMax = 5, 512 }, "shim.conf", "\nmax-serial-step=5\noutput-max=512\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.options()
			c.change(&o)
			s, notes, err := New(w.policy(t), testkit.Now(), shipped(t), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(s.file(TrustDir + "/" + c.file).Content); !strings.Contains(got, c.has) || c.has == "" && got != "" {
				t.Errorf("%s: %s", c.file, got)
			}
			if !strings.Contains(fmt.Sprint(notes), c.note) {
				t.Errorf("notes %v", notes)
			}
		})
	}
	o := w.options()
	o.Cluster, o.WarrantRequired = "bare-1", false
	s, notes, err := New(w.policy(t), testkit.Now(), shipped(t), o)
	if err != nil || len(s.Absent) != 1 || s.Absent[0] != TrustDir+"/cluster" || s.file(clusterPath).Path != "" || !strings.Contains(fmt.Sprint(notes), "pins no endpoint and CA of cluster bare-1") {
		t.Errorf("a cluster that is not pinned: %v, %v, %v", s, notes, err)
	}
}

func TestNoSetupForWhatPolicyAndOptionsDoNotGive(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		document func(string) string
		options  func(*Options)
		want     decision.Reason
	}{
		"a class that no namespace has":       {nil, func(o *Options) { o.Class = "smal" }, decision.HostClassRefused},
		"a cluster without endpoint and CA":   {nil, func(o *Options) { o.Cluster = "bare-1" }, decision.ClusterUnpinned},
		"a cluster without CA":                {nil, func(o *Options) { o.Cluster, o.WarrantRequired = "half-1", false }, decision.ClusterUnpinned},
		"an endpoint with a line break":       {func(d string) string { return strings.Replace(d, endpoint, endpoint+`\nid other`, 1) }, nil, decision.PolicyMalformed},
		"an endpoint with a blank":            {func(d string) string { return strings.Replace(d, endpoint, endpoint+` x`, 1) }, nil, decision.PolicyMalformed},
		"a root that signs scripts":           {func(d string) string { return strings.Replace(d, w.alice.Line, w.root.Line, 1) }, nil, decision.SignerScope},
		"a login key that signs scripts":      {nil, func(o *Options) { o.LoginKeys[0] = w.bob.PublicKey() }, decision.SignerScope},
		"a login key that is a root":          {nil, func(o *Options) { o.LoginKeys[0] = w.root.PublicKey() }, decision.SignerScope},
		"a template that lost where from":     {nil, nil, decision.Internal},
		"nothing wrong, which is a near miss": {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			changed, o, files := *w, w.options(), shipped(t)
			if c.document != nil {
				changed.document = c.document(w.document)
			}
			if c.options != nil {
				c.options(&o)
			}
			if c.want == decision.Internal {
				files.AuthorizedKeys = []byte("restrict @KEY@\n")
			}
			s, _, err := New(changed.policy(t), testkit.Now(), files, o)
			if c.want == "" {
				if err != nil || s == nil {
					t.Errorf("a good setup: %v", err)
				}
				return
			}
			wantReason(t, err, c.want)
		})
	}
}

func TestRevokedAndExpiredSignersAreLeftOut(t *testing.T) {
	w := newWorld(t)
	w.document = strings.Replace(w.document, "revoked: {signers: []}", fmt.Sprintf("revoked: {signers: [%q]}", w.alice.Fingerprint), 1)
	s, notes, err := New(w.policy(t), testkit.Now(), shipped(t), w.options())
	if err != nil {
		t.Fatal(err)
	}
	list, err := krl.Parse(s.file(TrustDir + "/revoked_keys").Content)
	if err != nil || !list.Revoked(w.alice.PublicKey()) || list.Revoked(w.bob.PublicKey()) {
		t.Errorf("revoked_keys: %v", err)
	}
	if len(s.file(TrustDir+"/allowed_signers").Content) != 0 || !strings.Contains(fmt.Sprint(notes), "no signer of the policy may sign for these hosts") {
		t.Errorf("notes %v", notes)
	}
}

func TestTheShimMustBeThatOfASignedRelease(t *testing.T) {
	w := newWorld(t)
	shim := []byte("#!/bin/sh\n")
	sums := "aa  other\n" + sumOf(shim) + "  kpssh-shim\n"
	keys := `release namespaces="hostwarrant-release" ` + w.root.Line + "\n"
	sign := func(text string) string { return testkit.Sign(t, w.root, releaseNamespace, []byte(text)) }
	for name, c := range map[string]struct {
		shim, sums, signature, keys string
		want                        decision.Reason
	}{
		"a release's":               {string(shim), sums, sign(sums), keys, ""},
		"in binary mode":            {string(shim), sumOf(shim) + " *kpssh-shim\n", sign(sumOf(shim) + " *kpssh-shim\n"), keys, ""},
		"another shim":              {"#!/bin/sh\n#\n", sums, sign(sums), keys, decision.BytesChanged},
		"under another name":        {string(shim), sumOf(shim) + "  hostwarrant\n", sign(sumOf(shim) + "  hostwarrant\n"), keys, decision.BytesChanged},
		"in a longer line":          {string(shim), sumOf(shim) + "  kpssh-shim.old\n", sign(sumOf(shim) + "  kpssh-shim.old\n"), keys, decision.BytesChanged},
		"checksums that changed":    {string(shim), sums + "\n", sign(sums), keys, decision.SignatureInvalid},
		"another signer":            {string(shim), sums, testkit.Sign(t, w.alice, releaseNamespace, []byte(sums)), keys, decision.SignerUnknown},
		"another namespace":         {string(shim), sums, testkit.Sign(t, w.root, "file", []byte(sums)), keys, decision.WrongNamespace},
		"a key for something else":  {string(shim), sums, sign(sums), `release namespaces="kpssh" ` + w.root.Line + "\n", decision.SignerScope},
		"a key of somebody else's":  {string(shim), sums, sign(sums), `alice namespaces="hostwarrant-release" ` + w.root.Line + "\n", decision.SignerScope},
		"no signature":              {string(shim), sums, "", keys, decision.SignatureMalformed},
		"an empty list that counts": {string(shim), "", sign(""), keys, decision.BytesChanged},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckShim([]byte(c.shim), []byte(c.sums), []byte(c.signature), parsedKeys(t, c.keys), testkit.Now())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantReason(t, err, c.want)
		})
	}
}

func TestPinnedIsTheMatchBlock(t *testing.T) {
	pinned := Pinned(shipped(t).SSHD)
	for _, line := range []string{"forcecommand " + ShimPath, "authorizedkeysfile /etc/kpssh/authorized_keys", "disableforwarding yes", "permittty no", "permituserenvironment no", "acceptenv KPSSH_NOTHING"} {
		if !strings.Contains("\n"+strings.Join(pinned, "\n")+"\n", "\n"+line+"\n") {
			t.Errorf("%q lacks %q", pinned, line)
		}
	}
	if len(pinned) != 22 {
		t.Errorf("%d lines", len(pinned))
	}
	defaults, rule := defaultsAndRule(shipped(t).Sudoers)
	if rule != `(root) NOPASSWD: /opt/kpssh/kpssh-shim ""` || len(defaults) != 5 || defaults[0] != "!log_input" {
		t.Errorf("sudoers: %q, %q", defaults, rule)
	}
}
