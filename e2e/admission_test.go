//go:build linux

package e2e

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// scripts are the phases of the tests' profiles.
func scripts() map[string]string {
	return map[string]string{
		"install": "#!/usr/bin/env bash\nset -euo pipefail\necho install\n",
		"join":    "#!/usr/bin/env bash\nset -euo pipefail\necho join \"$KPSSH_NODE_NAME\"\n",
		"leave":   "#!/usr/bin/env bash\nset -euo pipefail\necho leave\n",
	}
}

// signatures signs every script.
func signatures(t *testing.T, s testkit.Signer, texts map[string]string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for phase, text := range texts {
		all[phase] = testkit.Sign(t, s, "kpssh", []byte(text))
	}
	return all
}

// profile is the JSON of an SSHJoinProfile.
func profile(t *testing.T, name string, texts, signed map[string]string) []byte {
	t.Helper()
	spec := object{"version": "1", "scripts": texts}
	if signed != nil {
		spec["signatures"] = signed
	}
	return encode(t, object{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHJoinProfile", "metadata": object{"name": name}, "spec": spec,
	})
}

// join returns the scripts with the join script edited.
func join(edit func(string) string) map[string]string {
	texts := scripts()
	texts["join"] = edit(texts["join"])
	return texts
}

func TestApplyOfSSHJoinProfile(t *testing.T) {
	i := install(t)
	signed := signatures(t, i.signer, scripts())
	stranger := testkit.NewSigner(t, "ed25519")
	oneUnsigned := maps.Clone(signed)
	delete(oneUnsigned, "leave")
	for name, c := range map[string]struct {
		object []byte
		says   string
	}{
		"unsigned":              {profile(t, "p-apply", scripts(), nil), "SSHJoinProfile/p-apply: install: Unsigned: "},
		"one phase unsigned":    {profile(t, "p-apply", scripts(), oneUnsigned), "SSHJoinProfile/p-apply: leave: Unsigned: "},
		"an unknown key":        {profile(t, "p-apply", scripts(), signatures(t, stranger, scripts())), "SignerUnknown"},
		"one byte changed":      {profile(t, "p-apply", join(func(s string) string { return s + "#\n" }), signed), "join: BytesChanged: "},
		"a final newline lost":  {profile(t, "p-apply", join(func(s string) string { return strings.TrimSuffix(s, "\n") }), signed), "join: NewlineChanged: "},
		"CRLF":                  {profile(t, "p-apply", join(func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }), signed), "join: NewlineChanged: "},
		"a template":            {profile(t, "p-apply", join(func(s string) string { return s + "{{ .Vars }}\n" }), signed), "join: TemplateFound: "},
		"signed, as it must be": {profile(t, "p-apply", scripts(), signed), ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range [][]string{{"apply", "-f", "-"}, {"apply", "--server-side", "-f", "-"}, {"create", "-f", "-"}} {
				dry := slices.Concat(how, []string{"--dry-run=server"})
				if c.says != "" {
					i.refused(t, c.object, how, c.says)
					i.refused(t, c.object, dry, c.says)
					continue
				}
				i.succeeds(t, c.object, dry...)
				i.succeeds(t, c.object, how...)
				i.succeeds(t, nil, "delete", "sshjoinprofile", "p-apply")
			}
		})
	}
}

func TestEveryWayToChangeASignedProfileIsJudged(t *testing.T) {
	i := install(t)
	signed := signatures(t, i.signer, scripts())
	good := profile(t, "p-change", scripts(), signed)
	bad := profile(t, "p-change", join(strings.ToUpper), signed)
	i.succeeds(t, good, "apply", "-f", "-")
	i.remove(t, "sshjoinprofile", "p-change")
	ways := map[string]struct {
		stdin []byte
		args  []string
	}{
		"apply":                       {bad, []string{"apply", "-f", "-"}},
		"server-side apply by others": {bad, []string{"apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"}},
		"replace":                     {bad, []string{"replace", "-f", "-"}},
		"JSON patch":                  {nil, []string{"patch", "sshjoinprofile", "p-change", "--type=json", "-p", `[{"op":"replace","path":"/spec/scripts/join","value":"id\n"}]`}},
		"merge patch":                 {nil, []string{"patch", "sshjoinprofile", "p-change", "--type=merge", "-p", `{"spec":{"scripts":{"join":"id\n"}}}`}},
		"merge patch, no signatures":  {nil, []string{"patch", "sshjoinprofile", "p-change", "--type=merge", "-p", `{"spec":{"signatures":null}}`}},
		"dry run of a patch":          {nil, []string{"patch", "sshjoinprofile", "p-change", "--dry-run=server", "--type=merge", "-p", `{"spec":{"scripts":{"join":"id\n"}}}`}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { i.refused(t, way.stdin, way.args, "SSHJoinProfile/p-change: ") })
	}
	t.Run("a label is nobody's business", func(t *testing.T) {
		i.succeeds(t, nil, "label", "sshjoinprofile", "p-change", "team=a")
	})
	t.Run("under deletion", func(t *testing.T) {
		i.succeeds(t, nil, "patch", "sshjoinprofile", "p-change", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
		i.succeeds(t, nil, "delete", "sshjoinprofile", "p-change", "--wait=false")
		for name, way := range ways {
			if way.args[0] == "patch" {
				t.Run(name, func(t *testing.T) { i.refused(t, way.stdin, way.args, "SSHJoinProfile/p-change: ") })
			}
		}
		i.succeeds(t, nil, "patch", "sshjoinprofile", "p-change", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		if r := i.kubectl(t, nil, "get", "sshjoinprofile", "p-change"); !strings.Contains(r.Stderr, "NotFound") {
			t.Errorf("the object is still there: %s%s", r.Stdout, r.Stderr)
		}
	})
}

// host is the JSON of an SSHHost with changes to its spec.
func host(t *testing.T, name string, changes object) []byte {
	t.Helper()
	spec := object{
		"address": "10.0.0.21", "user": "kpssh", "execMode": "Verified",
		"sshKeySecretRef": object{"name": "pool-ssh-key"}, "capacity": object{"cpu": "2", "memory": "4Gi"},
	}
	maps.Copy(spec, changes)
	return encode(t, object{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHHost", "metadata": object{"name": name, "namespace": "pool"}, "spec": spec,
	})
}

func TestApplyOfSSHHost(t *testing.T) {
	i := install(t)
	stranger := testkit.NewSigner(t, "ed25519")
	for name, c := range map[string]struct {
		changes object
		says    string
	}{
		"Raw":                    {object{"execMode": "Raw"}, "RawRefused"},
		"a foreign signer":       {object{"trustedSigners": []string{stranger.Line}}, "SignersNotInPolicy"},
		"a foreign shim command": {object{"shimCommand": "/bin/sh"}, "ShimCommandRefused"},
		"user root":              {object{"user": "root"}, "UserRefused"},
		"a malformed key":        {object{"trustedSigners": []string{"ssh-ed25519 AAAA"}}, "Malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			i.refused(t, host(t, "h-apply", c.changes), []string{"apply", "-f", "-"}, "SSHHost/h-apply: spec.", c.says)
		})
	}
}

func TestTrustedSignersAreFilledInFromThePolicy(t *testing.T) {
	i := install(t)
	i.succeeds(t, host(t, "h-fill", nil), "apply", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", "h-fill")
	filled := func() string {
		return i.succeeds(t, nil, "get", "-n", "pool", "sshhost", "h-fill", "-o", "jsonpath={.spec.trustedSigners}").Stdout
	}
	if want := `["` + i.signer.Line + `"]`; filled() != want {
		t.Fatalf("trustedSigners is %s; want %s", filled(), want)
	}
	t.Run("applying it again changes nothing", func(t *testing.T) {
		if r := i.succeeds(t, host(t, "h-fill", nil), "apply", "-f", "-"); !strings.Contains(r.Stdout, "unchanged") {
			t.Error(r.Stdout)
		}
	})
	t.Run("taking them away puts them back", func(t *testing.T) {
		i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", "h-fill", "--type=merge", "-p", `{"spec":{"trustedSigners":null}}`)
		if filled() == "" {
			t.Error("trustedSigners is empty")
		}
	})
	t.Run("Verified to Raw", func(t *testing.T) {
		i.refused(t, nil, []string{"patch", "-n", "pool", "sshhost", "h-fill", "--type=merge", "-p", `{"spec":{"execMode":"Raw"}}`}, "ModeDowngrade")
	})
	t.Run("a status update is not judged", func(t *testing.T) {
		i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", "h-fill", "--subresource=status", "--type=merge", "-p", `{"spec":{"execMode":"Raw"},"status":{"state":"Available"}}`)
		if mode := i.succeeds(t, nil, "get", "-n", "pool", "sshhost", "h-fill", "-o", "jsonpath={.spec.execMode} {.status.state}").Stdout; mode != "Verified Available" {
			t.Errorf("after a status update: %s", mode)
		}
	})
}

func TestTrustPolicyInTheCluster(t *testing.T) {
	i := install(t)
	if !strings.Contains(i.beforePolicy, "PolicyUnavailable") {
		t.Errorf("/readyz before there was a policy: %q", i.beforePolicy)
	}
	for name, c := range map[string]struct {
		object []byte
		says   string
	}{
		"signed by a signer":          {i.trustPolicy(t, policyDocument(t, i.version+1, i.signer), i.signer), "PolicyUnsigned"},
		"same version, other bytes":   {i.trustPolicy(t, i.document+"# more\n", i.root), "PolicyEquivocation"},
		"for another cluster":         {i.trustPolicy(t, strings.Replace(policyDocument(t, i.version+1, i.signer), "e2e: "+clusterEntry, "prod: {}", 1), i.root), "PolicyWrongCluster"},
		"a threshold that is nothing": {i.trustPolicy(t, strings.Replace(policyDocument(t, i.version+1, i.signer), "thresholds: {}", "thresholds: {join: 0}", 1), i.root), "PolicyMalformed"},
	} {
		t.Run(name, func(t *testing.T) {
			i.refused(t, c.object, []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "TrustPolicy/cluster: ", c.says)
		})
	}
	t.Run("unsigned, refused by the schema already", func(t *testing.T) {
		r := i.kubectl(t, i.trustPolicy(t, policyDocument(t, i.version+1, i.signer)), "apply", "--server-side", "--force-conflicts", "-f", "-")
		if r.Code == 0 || !strings.Contains(r.Stderr, "spec.signatures in body should have at least 1 items") {
			t.Errorf("exit %d: %s", r.Code, r.Stderr)
		}
	})
	t.Run("deletion", func(t *testing.T) {
		// The admission policy beside us is asked first; it answers also while we do not.
		for _, args := range [][]string{{"delete", "trustpolicy", "cluster"}, {"delete", "trustpolicy", "--all"}} {
			if r := i.kubectl(t, nil, args...); r.Code == 0 || !strings.Contains(r.Stderr, "the TrustPolicy is not deleted while it guards") {
				t.Errorf("exit %d: %s", r.Code, r.Stderr)
			}
		}
		asks(t, i.poster(t, i.at), reviewOf(t, admissionv1.Delete, nil, i.trustPolicy(t, i.document, i.root))).deny(t, "InUse")
	})
	t.Run("the controller reports it in force", func(t *testing.T) {
		i.succeeds(t, nil, "wait", "--for=condition=InForce", "--timeout=30s", "trustpolicy", "cluster")
	})
	t.Run("policyz", func(t *testing.T) {
		code, body := get(t, i.webhook.Health+"/policyz")
		if code != 200 || !strings.Contains(body, `"inForce": true`) || strings.Contains(body, "ssh-ed25519") {
			t.Errorf("%d: %s", code, body)
		}
	})
}

func TestServingCAIsRotatedWithoutARestart(t *testing.T) {
	i := install(t)
	bundle := func() string {
		return i.succeeds(t, nil, "get", "validatingwebhookconfiguration", "hostwarrant", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}").Stdout
	}
	before := bundle()
	if first, _, _ := strings.Cut(before, " "); first == "" {
		t.Fatal("no caBundle")
	} else if pem, err := base64.StdEncoding.DecodeString(first); err != nil || !strings.HasPrefix(string(pem), "-----BEGIN CERTIFICATE-----") {
		t.Fatalf("caBundle is %q", pem)
	}
	i.succeeds(t, nil, "patch", "-n", "hostwarrant-system", "secret", "hostwarrant-webhook-ca", "--type=merge", "-p", `{"data":null}`)
	eventually(t, "another caBundle", func() bool { return bundle() != before })
	eventually(t, "the webhook to be trusted again", func() bool {
		r := i.kubectl(t, profile(t, "p-rotate", scripts(), nil), "apply", "-f", "-")
		return strings.Contains(r.Stderr, "Unsigned")
	})
	t.Run("a lost Secret stops nothing", func(t *testing.T) {
		i.succeeds(t, nil, "delete", "-n", "hostwarrant-system", "secret", "hostwarrant-webhook-ca")
		i.refused(t, profile(t, "p-rotate", scripts(), nil), []string{"apply", "-f", "-"}, "Unsigned")
		before = bundle()
		i.succeeds(t, []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"hostwarrant-webhook-ca","namespace":"hostwarrant-system"}}`), "apply", "-f", "-")
		eventually(t, "another caBundle", func() bool { return bundle() != before })
	})
}

func TestWithoutTheWebhookNothingGuardedChanges(t *testing.T) {
	i := install(t)
	good := profile(t, "p-restart", scripts(), signatures(t, i.signer, scripts()))
	eventually(t, "the webhook to be trusted", func() bool { return i.kubectl(t, good, "apply", "-f", "-").Code == 0 })
	i.remove(t, "sshjoinprofile", "p-restart")
	must(t, i.webhook.Stop())
	if r := i.kubectl(t, profile(t, "p-restart2", scripts(), signatures(t, i.signer, scripts())), "apply", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, "failed calling webhook") {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
	t.Run("but finalizers and labels do", func(t *testing.T) {
		i.succeeds(t, nil, "label", "sshjoinprofile", "p-restart", "team=b")
	})
	i.startWebhook(t.Context(), t)
	must(t, i.webhook.Wait(t.Context(), "/readyz"))
	i.refused(t, profile(t, "p-restart2", scripts(), nil), []string{"apply", "-f", "-"}, "Unsigned")
	i.succeeds(t, good, "apply", "-f", "-")
}

func TestProgramsHaveNoRightsTheyDoNotNeed(t *testing.T) {
	i := install(t)
	for name, c := range map[string]struct {
		account, want string
		args          []string
	}{
		"webhook reads the policy":               {"webhook", "yes", []string{"get", "trustpolicies/cluster"}},
		"webhook updates its CA":                 {"webhook", "yes", []string{"update", "secrets/hostwarrant-webhook-ca", "-n", "hostwarrant-system"}},
		"webhook reads other Secrets":            {"webhook", "no", []string{"get", "secrets/other", "-n", "hostwarrant-system"}},
		"webhook makes Secrets":                  {"webhook", "no", []string{"create", "secrets", "-n", "hostwarrant-system"}},
		"webhook writes the policy":              {"webhook", "no", []string{"update", "trustpolicies/cluster"}},
		"webhook writes webhook configurations":  {"webhook", "no", []string{"patch", "validatingwebhookconfigurations/hostwarrant"}},
		"controller patches our configurations":  {"controller", "yes", []string{"patch", "validatingwebhookconfigurations/hostwarrant"}},
		"controller patches others'":             {"controller", "no", []string{"patch", "validatingwebhookconfigurations/other"}},
		"controller deletes ours":                {"controller", "no", []string{"delete", "validatingwebhookconfigurations/hostwarrant"}},
		"controller writes the policy":           {"controller", "no", []string{"update", "trustpolicies/cluster"}},
		"relay writes profiles":                  {"relay", "no", []string{"update", "sshjoinprofiles"}},
		"relay writes hosts":                     {"relay", "no", []string{"patch", "sshhosts", "-n", "pool"}},
		"relay reads Secrets of host namespaces": {"relay", "yes", []string{"get", "secrets", "-n", "pool"}},
		"relay reads Secrets elsewhere":          {"relay", "no", []string{"get", "secrets", "-n", "kube-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := i.kubectl(t, nil, append([]string{"auth", "can-i", "--as=system:serviceaccount:hostwarrant-system:hostwarrant-" + c.account}, c.args...)...)
			if got := strings.TrimSpace(r.Stdout); got != c.want {
				t.Errorf("%s; want %s (%s)", got, c.want, r.Stderr)
			}
		})
	}
}
