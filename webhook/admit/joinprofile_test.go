package admit

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// changed returns the scripts with one phase edited.
func changed(phase string, edit func(string) string) map[string]string {
	texts := scripts()
	texts[phase] = edit(texts[phase])
	return texts
}

func TestSSHJoinProfileIsAdmittedOnlyAsSigned(t *testing.T) {
	w := newWorld(t)
	signed := signedBy(t, w.signer, "kpssh", scripts())
	one := func(phase, signature string) map[string]string {
		m := maps.Clone(signed)
		m[phase] = signature
		return m
	}
	without := func(phase string) map[string]string {
		m := maps.Clone(signed)
		delete(m, phase)
		return m
	}
	stranger := testkit.NewSigner(t, "ed25519")
	broken := changed("join", func(s string) string { return "#warrant: v1\n" + s })
	weak := func(kind string) string { return signUnchecked(t, testkit.NewSigner(t, kind), scripts()["join"]) }

	for name, c := range map[string]struct {
		object fields
		want   decision.Reason
		says   string
	}{
		"signed by a key of the policy":      {profile(scripts(), signed), decision.Verified, ""},
		"no signatures":                      {profile(scripts(), nil), decision.Unsigned, "install"},
		"signatures null":                    {with(profile(scripts(), signed), "signatures", (map[string]string)(nil)), decision.Unsigned, "install"},
		"signatures empty":                   {profile(scripts(), fields{}), decision.Unsigned, "install"},
		"one phase not signed":               {profile(scripts(), without("leave")), decision.Unsigned, ": leave: "},
		"one phase signed by the empty text": {profile(scripts(), one("leave", "")), decision.Unsigned, ": leave: "},
		"signed by a key nobody named":       {profile(scripts(), signedBy(t, stranger, "kpssh", scripts())), decision.SignerUnknown, stranger.Fingerprint},
		"signed for another purpose":         {profile(scripts(), signedBy(t, w.signer, "file", scripts())), decision.WrongNamespace, ""},
		"one byte changed":                   {profile(changed("join", func(s string) string { return strings.Replace(s, "echo", "ecko", 1) }), signed), decision.BytesChanged, ": join: "},
		"final newline lost":                 {profile(changed("join", func(s string) string { return strings.TrimSuffix(s, "\n") }), signed), decision.NewlineChanged, "newline"},
		"line ends turned to CRLF":           {profile(changed("join", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }), signed), decision.NewlineChanged, "CR"},
		"signatures of two phases swapped":   {profile(scripts(), maps.Collect(maps.All(map[string]string{"install": signed["join"], "join": signed["install"], "leave": signed["leave"]}))), decision.BytesChanged, "signature of the"},
		"template in install":                {profile(changed("install", func(s string) string { return s + "{{ .Vars }}\n" }), signed), decision.TemplateFound, ": install: "},
		"template in join":                   {profile(changed("join", func(s string) string { return s + "{{ .Vars }}\n" }), signed), decision.TemplateFound, ": join: "},
		"template in leave":                  {profile(changed("leave", func(s string) string { return s + "{{ .Vars }}\n" }), signed), decision.TemplateFound, ": leave: "},
		"NUL in a script":                    {profile(changed("join", func(s string) string { return s + "\x00\n" }), signed), decision.Malformed, "NUL"},
		"armor with text before it":          {profile(scripts(), one("join", "hello\n"+signed["join"])), decision.SignatureMalformed, ": join: "},
		"armor with text after it":           {profile(scripts(), one("join", signed["join"]+"hello\n")), decision.SignatureMalformed, ": join: "},
		"armor with base64 cut short":        {profile(scripts(), one("join", cutArmor(signed["join"]))), decision.SignatureMalformed, ": join: "},
		"one MiB of junk for armor":          {profile(scripts(), one("join", strings.Repeat("A", 1<<20))), decision.SignatureMalformed, ": join: "},
		"RSA key of 2048 bits":               {profile(scripts(), one("join", weak("rsa2048"))), decision.KeyTypeRefused, ": join: "},
		"RSA with SHA-1":                     {profile(scripts(), one("join", weak("rsa3072"))), decision.KeyTypeRefused, ": join: "},
		"a phase nobody knows":               {profile(map[string]string{"install": "a", "join": "b", "leave": "c", "reboot": "d"}, signed), decision.Malformed, "reboot"},
		"no join script":                     {profile(map[string]string{"install": "a\n", "leave": "c\n"}, signed), decision.Malformed, "join"},
		"a broken warrant, signed":           {profile(broken, signedBy(t, w.signer, "kpssh", broken)), decision.WarrantMalformed, ": join: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.handle(t, create(t, c.object))
			if reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
			if !strings.Contains(r.Result.Message, c.says) {
				t.Errorf("message %q does not say %q", r.Result.Message, c.says)
			}
			if !r.Allowed && !strings.HasPrefix(r.Result.Message, "SSHJoinProfile/tls-bootstrap: ") {
				t.Errorf("message %q does not name the object", r.Result.Message)
			}
		})
	}
}

// cutArmor drops the last characters of the base64 text.
func cutArmor(armored string) string {
	body, end, _ := strings.Cut(armored, "\n-----END")
	return body[:len(body)-3] + "\n-----END" + end
}

func TestSecurityKeyMustHaveBeenTouched(t *testing.T) {
	for kind, want := range map[string]decision.Reason{"sk-ed25519": decision.Verified, "sk-ed25519-untouched": decision.TouchMissing} {
		t.Run(kind, func(t *testing.T) {
			signer := testkit.NewSigner(t, kind)
			w := worldWith(t, signer, testkit.PolicyDocument(signer))
			signatures := map[string]string{}
			for phase, text := range scripts() {
				signatures[phase] = signUnchecked(t, signer, text)
			}
			r := w.handle(t, create(t, profile(scripts(), signatures)))
			if reason(r) != want {
				t.Fatalf("%s: %s; want %s", reason(r), r.Result.Message, want)
			}
			if want == decision.Verified && len(r.Warnings) != 3 {
				t.Errorf("warnings %q; want one a phase, that the provider cannot verify security keys", r.Warnings)
			}
		})
	}
}

func TestPolicyMustBeInForceWhenARequestIsJudged(t *testing.T) {
	w := newWorld(t)
	signed := w.signedProfile(t)
	expires := time.Date(2027, 5, 29, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now  time.Time
		want decision.Reason
	}{
		"a second before it expires": {expires.Add(-time.Second), decision.Verified},
		"when it expires":            {expires, decision.PolicyExpired},
	} {
		t.Run(name, func(t *testing.T) {
			w.validator.Now = func() time.Time { return c.now }
			if r := w.handle(t, create(t, signed)); reason(r) != c.want {
				t.Fatalf("%s: %s; want %s", reason(r), r.Result.Message, c.want)
			}
		})
	}
	t.Run("without a policy", func(t *testing.T) {
		w.trust.holder = w.newHolder(t)
		w.trust.holder.Settle(testkit.Now())
		if r := w.handle(t, create(t, signed)); reason(r) != decision.PolicyUnavailable || r.Allowed {
			t.Fatalf("%s: %s", reason(r), r.Result.Message)
		}
	})
}

func TestUpdateOfSSHJoinProfileIsExemptOnlyIfGuardedContentIsUnchanged(t *testing.T) {
	w := newWorld(t)
	good := w.signedProfile(t)
	bad := profile(scripts(), nil)
	labelled := func(o fields) fields { return withIn(o, "metadata", "labels", fields{"team": "a"}) }
	for name, c := range map[string]struct {
		was, is fields
		allowed bool
		want    decision.Reason
	}{
		"unsigned, only a label changes":                       {bad, labelled(bad), true, ""},
		"unsigned and under deletion, its finalizer goes":      {deleting(bad), withIn(deleting(bad), "metadata", "finalizers", nil), true, ""},
		"signatures are taken away":                            {good, bad, false, decision.Unsigned},
		"under deletion, signatures are taken away":            {deleting(good), deleting(bad), false, decision.Unsigned},
		"under deletion, a script changes":                     {deleting(good), deleting(with(good, "scripts", changed("join", strings.ToUpper))), false, decision.BytesChanged},
		"under deletion, unsigned becomes signed":              {deleting(bad), deleting(good), true, decision.Verified},
		"the old object cannot be read, the new one is signed": {fields{"spec": 3}, good, true, decision.Verified},
		"the old object cannot be read, the new one is not":    {fields{"spec": 3}, bad, false, decision.Unsigned},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.handle(t, update(t, c.was, c.is))
			if r.Allowed != c.allowed || reason(r) != c.want {
				t.Fatalf("allowed %v, %q: %s; want %v, %q", r.Allowed, reason(r), r.Result.Message, c.allowed, c.want)
			}
		})
	}
}
