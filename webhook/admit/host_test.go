package admit

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestSSHHostIsAdmittedOnlyAsThePolicyAllows(t *testing.T) {
	w := newWorld(t)
	good := w.host()
	stranger := testkit.NewSigner(t, "ed25519")
	for name, c := range map[string]struct {
		object fields
		want   decision.Reason
		where  string
	}{
		"as the policy says":               {good, decision.Verified, ""},
		"with the allowed shim command":    {with(good, "shimCommand", "/opt/kpssh/kpssh-shim"), decision.Verified, ""},
		"a comment after the key":          {with(good, "trustedSigners", []string{w.signer.Line + " ci@example"}), decision.Verified, ""},
		"Raw":                              {with(good, "execMode", "Raw"), decision.RawRefused, "spec.execMode"},
		"execMode left out":                {with(good, "execMode", nil), decision.RawRefused, "spec.execMode"},
		"execMode in other letters":        {with(good, "execMode", "verified"), decision.RawRefused, "spec.execMode"},
		"a foreign signer":                 {with(good, "trustedSigners", []string{stranger.Line}), decision.SignersNotInPolicy, "spec.trustedSigners[0]"},
		"a foreign signer after a good":    {with(good, "trustedSigners", []string{w.signer.Line, stranger.Line}), decision.SignersNotInPolicy, "spec.trustedSigners[1]"},
		"no signers":                       {with(good, "trustedSigners", []string{}), decision.SignersNotInPolicy, "spec.trustedSigners"},
		"a foreign shim command":           {with(good, "shimCommand", "/bin/sh"), decision.ShimCommandRefused, "spec.shimCommand"},
		"the shim command with a tail":     {with(good, "shimCommand", "/opt/kpssh/kpssh-shim; id"), decision.ShimCommandRefused, "spec.shimCommand"},
		"user root":                        {with(good, "user", "root"), decision.UserRefused, "spec.user"},
		"user left out, which is root":     {with(good, "user", nil), decision.UserRefused, "spec.user"},
		"another port":                     {with(good, "port", 2222), decision.PortRefused, "spec.port"},
		"a key that is no key":             {with(good, "trustedSigners", []string{"ssh-ed25519 AAAA"}), decision.Malformed, "spec.trustedSigners[0]"},
		"a key with options before it":     {with(good, "trustedSigners", []string{`command="id" ` + w.signer.Line}), decision.Malformed, "spec.trustedSigners[0]"},
		"a key of 2048 RSA bits":           {with(good, "trustedSigners", []string{testkit.NewSigner(t, "rsa2048").Line}), decision.KeyTypeRefused, "spec.trustedSigners[0]"},
		"trustedSigners of another type":   {with(good, "trustedSigners", "all"), decision.Malformed, "spec.trustedSigners"},
		"spec in capitals, read by nobody": {fields{"apiVersion": good["apiVersion"], "kind": good["kind"], "metadata": good["metadata"], "Spec": good["spec"]}, decision.Malformed, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.handle(t, create(t, c.object))
			if reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
			if c.where != "" && !strings.HasPrefix(r.Result.Message, "SSHHost/host-a: "+c.where+": ") {
				t.Errorf("message %q does not name %s", r.Result.Message, c.where)
			}
		})
	}
}

func TestUpdateOfSSHHostIsExemptOnlyIfGuardedContentIsUnchanged(t *testing.T) {
	w := newWorld(t)
	good, raw := w.host(), with(w.host(), "execMode", "Raw")
	class := func(o fields, name string) fields {
		return withIn(o, "metadata", "labels", fields{"karpenter.dklesev.github.io/host-class": name})
	}
	for name, c := range map[string]struct {
		was, is fields
		allowed bool
		want    decision.Reason
	}{
		"Raw from before, an annotation changes":      {raw, withIn(raw, "metadata", "annotations", fields{"a": "b"}), true, ""},
		"Raw from before, its status changes":         {raw, fields{"apiVersion": raw["apiVersion"], "kind": raw["kind"], "metadata": raw["metadata"], "spec": raw["spec"], "status": fields{"state": "Available"}}, true, ""},
		"Raw from before, its host class changes":     {raw, class(raw, "large"), false, decision.RawRefused},
		"Raw from before becomes Verified":            {raw, good, true, decision.Verified},
		"Verified becomes Raw":                        {good, raw, false, decision.ModeDowngrade},
		"Verified becomes Raw by leaving it out":      {good, with(good, "execMode", nil), false, decision.ModeDowngrade},
		"under deletion, Verified becomes Raw":        {deleting(good), deleting(raw), false, decision.ModeDowngrade},
		"under deletion, the finalizer of a Raw goes": {deleting(raw), withIn(deleting(raw), "metadata", "finalizers", nil), true, ""},
		"Verified, its host class changes":            {good, class(good, "large"), true, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.handle(t, update(t, c.was, c.is))
			if r.Allowed != c.allowed || reason(r) != c.want {
				t.Fatalf("allowed %v, %q: %s; want %v, %q", r.Allowed, reason(r), r.Result.Message, c.allowed, c.want)
			}
		})
	}
}
