//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// mutatorDown has the mutating half answer 404 until the test ends.
func (i *installation) mutatorDown(t *testing.T) {
	t.Helper()
	at := func(path string) {
		i.succeeds(t, nil, "patch", "mutatingwebhookconfiguration", "hostwarrant", "--type=json", "-p",
			`[{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"`+path+`"}]`)
	}
	at("/nowhere")
	t.Cleanup(func() {
		at("/mutate")
		i.fills(t, true)
	})
	i.fills(t, false)
}

// fills waits until the mutating half does or does not fill in trustedSigners.
func (i *installation) fills(t *testing.T, want bool) {
	t.Helper()
	eventually(t, "the mutating half to be gone or back", func() bool {
		return (i.kubectl(t, host(t, "h-probe", nil), "create", "--dry-run=server", "-f", "-").Code == 0) == want
	})
}

func TestAForgedVerdictConvincesNobody(t *testing.T) {
	i := install(t)
	i.mutatorDown(t)
	forged := object{"annotations": object{"hostwarrant.dev/verdict": "Verified"}}
	stranger := testkit.NewSigner(t, "ed25519")
	t.Run("on an unsigned profile", func(t *testing.T) {
		i.refused(t, withMeta(t, profile(t, "p-forged", scripts(), nil), forged), []string{"apply", "-f", "-"}, "SSHJoinProfile/p-forged: install: Unsigned: ")
	})
	t.Run("on a host that trusts somebody else", func(t *testing.T) {
		raw := withMeta(t, host(t, "h-forged", object{"trustedSigners": []string{stranger.Line}}), forged)
		i.refused(t, raw, []string{"apply", "-f", "-"}, "SSHHost/h-forged: ", "SignersNotInPolicy: ")
	})
	t.Run("what is signed needs no mutating half", func(t *testing.T) {
		i.succeeds(t, profile(t, "p-forged", scripts(), signatures(t, i.signer, scripts())), "create", "--dry-run=server", "-f", "-")
		i.succeeds(t, host(t, "h-forged", object{"trustedSigners": []string{i.signer.Line}}), "create", "--dry-run=server", "-f", "-")
	})
}

func TestAnOwnFinalizerOpensNoWindow(t *testing.T) {
	i := install(t)
	const name = "h-finalizer"
	held := object{"finalizers": []string{"example.com/hold"}}
	i.succeeds(t, withMeta(t, host(t, name, object{"trustedSigners": []string{i.signer.Line}}), held), "create", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", name)
	i.succeeds(t, nil, "delete", "-n", "pool", "sshhost", name, "--wait=false")
	patch := func(spec string) []string {
		return []string{"patch", "-n", "pool", "sshhost", name, "--type=merge", "-p", spec}
	}
	i.refused(t, nil, patch(`{"spec":{"shimCommand":"/bin/sh"}}`), "SSHHost/"+name+": ", "ShimCommandRefused: ")
	i.refused(t, nil, patch(`{"spec":{"execMode":"Raw"}}`), "SSHHost/"+name+": ", "ModeDowngrade: ")
	i.succeeds(t, nil, patch(`{"spec":{"shimCommand":"/opt/kpssh/kpssh-shim"}}`)...)
	i.succeeds(t, nil, patch(`{"metadata":{"finalizers":null}}`)...)
}

func TestOneKeyIsNoThreshold(t *testing.T) {
	i := install(t)
	i.usualPolicy(t)
	a, b, outsider := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	i.newPolicy(t, replace(t, "thresholds: {}", "thresholds: {join: 2}"), a, b)
	block := func(s testkit.Signer) string { return testkit.Sign(t, s, "kpssh", []byte(scripts()["join"])) }
	for name, c := range map[string]struct{ join, reason string }{
		"one signature":                    {block(a), "ThresholdNotMet"},
		"the same signature twice":         {block(a) + block(a), "ThresholdNotMet"},
		"two signatures of one key":        {block(b) + block(b), "ThresholdNotMet"}, // ECDSA: other bytes each time
		"a second one by an outsider":      {block(a) + block(outsider), "ThresholdNotMet"},
		"a second one for something else":  {block(a) + testkit.Sign(t, b, "git", []byte(scripts()["join"])), "WrongNamespace"},
		"a second one over another script": {block(a) + testkit.Sign(t, b, "kpssh", []byte(scripts()["leave"])), "ThresholdNotMet"},
		"nine blocks":                      {strings.Repeat(block(a), 8) + block(b), "SignatureMalformed"},
		"two keys":                         {block(a) + block(b), ""},
	} {
		t.Run(name, func(t *testing.T) {
			signed := signatures(t, a, scripts())
			signed["join"] = c.join
			raw := profile(t, "p-threshold", scripts(), signed)
			if c.reason == "" {
				i.succeeds(t, raw, "create", "--dry-run=server", "-f", "-")
				return
			}
			i.refused(t, raw, []string{"create", "--dry-run=server", "-f", "-"}, "SSHJoinProfile/p-threshold: join: "+c.reason+": ")
		})
	}
}

// angle is scripts of the greatest size that the CRD takes, of a character that JSON encoders write
// as six: what the API server sends of an update is 12 MiB.
func angle(last string) map[string]string {
	texts := map[string]string{}
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		head := "#!/bin/sh\n: # "
		texts[phase] = head + strings.Repeat("<", 256<<10-len(head)-len(last)-1) + last + "\n"
	}
	return texts
}

// raw is JSON with '<' and '>' as they are, which is how a client may send them.
func raw(t *testing.T, text []byte) []byte {
	t.Helper()
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text)))
}

// TestAReviewOfTwelveMegabytesIsJudged: the API server writes '<' as six characters, to us and to
// etcd. So what it sends of an update to such scripts is 6 MiB, and only posted straight is it 12;
// what we admit of that size etcd does not take.
func TestAReviewOfTwelveMegabytesIsJudged(t *testing.T) {
	i := install(t)
	texts := angle("<")
	signed := signatures(t, i.signer, texts)
	good, bad := profile(t, "p-large", texts, signed), profile(t, "p-large", angle(">"), signed)
	i.succeeds(t, profile(t, "p-large", scripts(), signatures(t, i.signer, scripts())), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", "p-large")
	replace := func(body []byte) error {
		var stored struct {
			Metadata struct{ ResourceVersion string }
		}
		must(t, json.Unmarshal([]byte(i.succeeds(t, nil, "get", "sshjoinprofile", "p-large", "-o", "json").Stdout), &stored))
		body = withMeta(t, body, object{"resourceVersion": stored.Metadata.ResourceVersion})
		put := i.cp.Client().Discovery().RESTClient().Put().AbsPath("/apis/karpenter.dklesev.github.io/v1beta1/sshjoinprofiles/p-large")
		return put.SetHeader("Content-Type", "application/json").Body(raw(t, body)).Do(soon(t)).Error()
	}
	began := time.Now()
	err := replace(bad)
	t.Logf("an update to 4 × 256 KiB of '<' was answered in %v: %v", in(began), err)
	if harness.Judge(err) != harness.Refused || !strings.Contains(err.Error(), "SSHJoinProfile/p-large: ") || !strings.Contains(err.Error(), "BytesChanged: ") {
		t.Errorf("want a denial with BytesChanged: %v", err)
	}
	if err := replace(good); err == nil || harness.Judge(err) != harness.Other || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("signed: %v; want etcd to find it too large", err)
	}
	t.Run("posted straight to a replica", func(t *testing.T) {
		body := reviewOf(t, admissionv1.Update, bad, good)
		t.Logf("a review of %d bytes", len(body))
		if len(body) < 12<<20 {
			t.Errorf("the review has only %d bytes", len(body))
		}
		asks(t, i.poster(t, i.at), body).deny(t, "BytesChanged")
	})
}

func TestFiftyMegabytesAreNotRead(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	before := residentMiB(t, i.webhook.PID())
	review := string(reviewOf(t, admissionv1.Create, profile(t, "p-huge", scripts(), signatures(t, i.signer, scripts())), nil))
	for name, body := range map[string]string{
		"blanks before a genuine review": strings.Repeat(" ", 50<<20) + review,
		"blanks after a genuine review":  review + strings.Repeat(" ", 50<<20),
		"a string that does not end":     `{"apiVersion":"` + strings.Repeat("a", 50<<20),
		"braces":                         strings.Repeat(`{"a":`, 10<<20),
	} {
		t.Run(name, func(t *testing.T) {
			code, said, err := p.Post(soon(t), "/validate", []byte(body))
			if err != nil {
				t.Logf("it hung up on us, which is as good: %v", err)
				return
			}
			if reason := refusedUnread(t, code, said); reason != "TooLarge" {
				t.Errorf("HTTP %d, %q: %.300s; want TooLarge", code, reason, said)
			}
			t.Logf("HTTP %d: %.200s", code, said)
		})
	}
	after := residentMiB(t, i.webhook.PID())
	t.Logf("the replica holds %d MiB; before: %d", after, before)
	if after > before+128 {
		t.Errorf("the replica grew from %d to %d MiB", before, after)
	}
	if a := asks(t, p, []byte(review)); !a.allowed {
		t.Errorf("after that: %v", a)
	}
}

// residentMiB is the memory that a process holds.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	must(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	must(t, err)
	return pages * os.Getpagesize() >> 20
}

func TestSlowCallersBlockNobody(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	const callers = 100
	ended := make(chan struct{}, callers)
	for n := range callers {
		conn, err := p.Dial(soon(t))
		must(t, err)
		t.Cleanup(func() { conn.Close() }) //nolint:errcheck // it was hung up on, which is what is wanted
		head := "POST /validate HTTP/1.1\r\nHost: x\r\n"
		if n%2 == 0 { // half are slow in the head, half in the body
			head += "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
		}
		_, err = conn.Write([]byte(head))
		must(t, err)
		go func() {
			for {
				if _, err := conn.Write([]byte("a")); err != nil {
					ended <- struct{}{}
					return
				}
				time.Sleep(500 * time.Millisecond) // this is what is tried
			}
		}()
	}
	began := time.Now()
	if a := asks(t, p, reviewOf(t, admissionv1.Create, profile(t, "p-slow", scripts(), signatures(t, i.signer, scripts())), nil)); !a.allowed {
		t.Errorf("beside %d slow callers: %v", callers, a)
	}
	i.refused(t, profile(t, "p-slow", scripts(), nil), []string{"create", "-f", "-"}, "Unsigned")
	t.Logf("beside %d slow callers two requests took %v", callers, in(began))
	limit := time.After(stepLimit)
	for n := range callers {
		select {
		case <-ended:
		case <-limit:
			t.Fatalf("after %v only %d of %d slow callers were hung up on", stepLimit, n, callers)
		}
	}
	t.Logf("all slow callers were hung up on after %v", in(began))
}

// TestJSONThatTwoReadersTakeDifferently posts straight to a replica what the API server would not
// have let through.
func TestJSONThatTwoReadersTakeDifferently(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	signed := signatures(t, i.signer, scripts())
	good, bad := profile(t, "p-json", scripts(), signed), profile(t, "p-json", join(func(s string) string { return s + "id\n" }), signed)
	spec := func(raw []byte) string {
		var o struct{ Spec json.RawMessage }
		must(t, json.Unmarshal(raw, &o))
		return string(o.Spec)
	}
	insert := func(text string) []byte { return []byte(strings.Replace(string(good), "{", "{"+text+",", 1)) }
	within := func(old, text string) []byte { return []byte(strings.Replace(string(good), old, old+text, 1)) }
	for name, raw := range map[string][]byte{
		"spec twice, the bad one first":     insert(`"spec":` + spec(bad)),
		"spec twice, the bad one last":      []byte(strings.TrimSuffix(string(good), "}") + `,"spec":` + spec(bad) + "}"),
		"Spec beside spec":                  insert(`"Spec":` + spec(bad)),
		"SPEC beside spec, last":            []byte(strings.TrimSuffix(string(good), "}") + `,"SPEC":` + spec(bad) + "}"),
		"Kind beside kind":                  insert(`"Kind":"ConfigMap"`),
		"a script twice":                    within(`"scripts":{`, `"join":"id\n",`),
		"Join beside join":                  within(`"scripts":{`, `"Join":"id\n",`),
		"a signature twice":                 within(`"signatures":{`, `"join":"",`),
		"a name twice":                      within(`"metadata":{`, `"name":"other",`),
		"something after the object":        append(bytes.Clone(good), "{}"...),
		"a list":                            []byte("[" + string(good) + "]"),
		"a string":                          []byte(`"spec"`),
		"a script that is a number":         within(`"scripts":{`, `"uninstall":3,`),
		"a phase that nobody knows":         within(`"scripts":{`, `"reboot":"id\n",`),
		"a key written with an escape":      within(`"scripts":{`, `"jo\u0069n":"id\n",`),
		"invalid UTF-8 in a script":         within(`"scripts":{`, "\"uninstall\":\"\xff\\n\","),
		"half a surrogate pair in a script": within(`"scripts":{`, `"uninstall":"\ud800\n",`),
	} {
		t.Run(name, func(t *testing.T) {
			asks(t, p, rawReview(t, "CREATE", raw, nil)).deny(t, "Malformed")
		})
	}
	t.Run("the same, but for that", func(t *testing.T) {
		if a := asks(t, p, rawReview(t, "CREATE", good, nil)); !a.allowed {
			t.Error(a)
		}
	})
	t.Run("unknown fields are nobody's, and change nothing", func(t *testing.T) {
		for _, raw := range [][]byte{insert(`"other":{"a":1}`), within(`"spec":{`, `"other":{"a":1},`)} {
			if a := asks(t, p, rawReview(t, "CREATE", raw, nil)); !a.allowed {
				t.Error(a)
			}
		}
		asks(t, p, rawReview(t, "CREATE", []byte(strings.Replace(string(bad), "{", `{"other":{},`, 1)), nil)).deny(t, "BytesChanged")
	})
}

// rawReview is a review whose objects are put in as they are, JSON or not.
func rawReview(t *testing.T, operation string, raw, old []byte) []byte {
	t.Helper()
	marker := string(encode(t, object{"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHJoinProfile", "metadata": object{"name": "p-json"}}))
	review := string(reviewOf(t, admissionv1.Operation(operation), []byte(marker), nil))
	place := `"object":` + marker + `,"oldObject":null`
	if !strings.Contains(review, place) {
		t.Fatalf("no object in %s", review)
	}
	objects := `"object":` + string(raw) + `,"oldObject":null`
	if old != nil {
		objects = `"object":` + string(raw) + `,"oldObject":` + string(old)
	}
	return []byte(strings.Replace(review, place, objects, 1))
}

func TestAnOldObjectThatIsMissingOrBrokenExemptsNothing(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	bad, good := profile(t, "p-json", scripts(), nil), profile(t, "p-json", scripts(), signatures(t, i.signer, scripts()))
	for name, c := range map[string]struct{ old, unsigned, signed string }{
		"missing":      {"", "Malformed", "Malformed"},
		"null":         {"null", "Malformed", "Malformed"},
		"a number":     {"3", "Malformed", "Malformed"},
		"empty":        {"{}", "Unsigned", "Verified"},
		"without spec": {`{"apiVersion":"karpenter.dklesev.github.io/v1beta1","kind":"SSHJoinProfile","metadata":{"name":"p-json"}}`, "Unsigned", "Verified"},
		"another kind": {strings.Replace(string(bad), "SSHJoinProfile", "SSHHost", 1), "Unsigned", "Verified"},
		"spec twice":   {strings.Replace(string(bad), "{", `{"spec":{},`, 1), "Unsigned", "Verified"},
	} {
		t.Run(name, func(t *testing.T) {
			was := []byte(c.old)
			if c.old == "" {
				was = nil
			}
			asks(t, p, rawReview(t, "UPDATE", bad, was)).deny(t, c.unsigned)
			if a := asks(t, p, rawReview(t, "UPDATE", good, was)); a.reason != c.signed || a.allowed != (c.signed == "Verified") {
				t.Errorf("signed: %v; want %s", a, c.signed)
			}
		})
	}
	t.Run("the same content is exempt", func(t *testing.T) {
		if a := asks(t, p, rawReview(t, "UPDATE", bad, bad)); !a.allowed || a.verdict != "exempt" {
			t.Error(a)
		}
	})
}

// TestReviewsThatAreNone: every fault gives a refusal, none an allowance.
func TestReviewsThatAreNone(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	good := string(reviewOf(t, admissionv1.Create, profile(t, "p-none", scripts(), signatures(t, i.signer, scripts())), nil))
	for name, c := range map[string]struct{ body, reason string }{
		"empty":                  {"", "Malformed"},
		"no JSON":                {"hello", "Malformed"},
		"half a review":          {good[:len(good)/2], "Malformed"},
		"a review of a review":   {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true}}`, "Malformed"},
		"another version":        {strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v7", 1), "Malformed"},
		"another kind":           {strings.Replace(good, `"kind":"AdmissionReview"`, `"kind":"ConversionReview"`, 1), "Malformed"},
		"no request":             {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "Malformed"},
		"no object":              {rawless(t, good), "Malformed"},
		"a kind nobody judges":   {strings.ReplaceAll(good, "SSHJoinProfile", "ConfigMap"), "KindMismatch"},
		"an operation of no one": {strings.Replace(good, `"CREATE"`, `"CONNECT"`, 1), "Malformed"}, // it comes without an old object
		"request twice":          {strings.Replace(good, `"request":{`, `"request":{"kind":{"kind":"ConfigMap"}},"request":{`, 1), "Malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			code, said, err := p.Post(soon(t), "/validate", []byte(c.body))
			must(t, err)
			if reason := refusedUnread(t, code, said); reason != c.reason {
				t.Errorf("HTTP %d, %q: %.300s; want %s", code, reason, said, c.reason)
			}
		})
	}
	t.Run("a field of a review that nobody knows yet", func(t *testing.T) {
		if a := asks(t, p, []byte(strings.Replace(good, `"request":{`, `"request":{"later":{"a":1},`, 1))); !a.allowed {
			t.Error(a)
		}
	})
}

// refusedUnread gives the Reason of a refusal, in a review or, where its uid is not known, in plain text.
func refusedUnread(t *testing.T, code int, said []byte) string {
	t.Helper()
	var answer admissionv1.AdmissionReview
	if json.Unmarshal(said, &answer) == nil && answer.Response != nil {
		if answer.Response.Allowed {
			t.Errorf("allowed: %s", said)
		}
		return answer.Response.AuditAnnotations["reason"]
	}
	if code == http.StatusOK {
		t.Errorf("HTTP 200 without an answer: %s", said)
	}
	_, rest, _ := strings.Cut(string(said), ": ")
	reason, _, _ := strings.Cut(rest, ":")
	return reason
}

// rawless takes the object out of a review.
func rawless(t *testing.T, review string) string {
	t.Helper()
	var o object
	must(t, json.Unmarshal([]byte(review), &o))
	request, ok := o["request"].(object)
	if !ok {
		t.Fatal("no request")
	}
	delete(request, "object")
	return string(encode(t, o))
}

// TestAForeignWebhookThatEditsIsSeen puts somebody else's mutating webhook before and after ours.
func TestAForeignWebhookThatEditsIsSeen(t *testing.T) {
	i := install(t)
	signed := signatures(t, i.signer, scripts())
	edits := map[string]harness.Edit{
		"one byte of a script": func(o map[string]any) []harness.PatchOperation {
			if o["kind"] != "SSHJoinProfile" {
				return nil
			}
			return []harness.PatchOperation{{Op: "replace", Path: "/spec/scripts/join", Value: strings.Replace(scripts()["join"], "echo", "echO", 1)}}
		},
		"a label": func(map[string]any) []harness.PatchOperation {
			return []harness.PatchOperation{{Op: "add", Path: "/metadata/labels", Value: map[string]string{"injected": "yes"}}}
		},
	}
	for _, name := range []string{"a-foreign", "z-foreign"} {
		for what, edit := range edits {
			t.Run(name+" edits "+what, func(t *testing.T) {
				f, err := harness.StartForeign(soon(t), i.cp, name, edit)
				must(t, err)
				t.Cleanup(func() { must(t, f.Close(soon(t))) })
				eventually(t, "the foreign webhook to be asked", func() bool {
					i.kubectl(t, host(t, "h-foreign", nil), "create", "--dry-run=server", "-f", "-")
					return f.Asked() > 0
				})
				if what == "a label" {
					i.succeeds(t, profile(t, "p-foreign", scripts(), signed), "create", "--dry-run=server", "-f", "-")
					got := i.succeeds(t, host(t, "h-foreign", nil), "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.labels.injected} {.spec.trustedSigners}").Stdout
					if want := `yes ["` + i.signer.Line + `"]`; got != want {
						t.Errorf("%s; want %s", got, want)
					}
					return
				}
				asked := f.Asked()
				i.refused(t, profile(t, "p-foreign", scripts(), signed), []string{"create", "-f", "-"}, "SSHJoinProfile/p-foreign: join: BytesChanged: ")
				if f.Asked() == asked {
					t.Error("the foreign webhook was not asked")
				}
			})
		}
	}
}

// TestKubectlEditOfABlankLine uses the real kubectl edit with an editor that people would call careless.
func TestKubectlEditOfABlankLine(t *testing.T) {
	i := install(t)
	const name = "p-edit"
	i.succeeds(t, profile(t, name, scripts(), signatures(t, i.signer, scripts())), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", name)
	edit := func(script string) (code int, said string) {
		editor := testkit.WriteFile(t, t.TempDir(), "editor", []byte("#!/bin/sh\nset -eu\n"+script))
		must(t, os.Chmod(editor, 0o700))
		t.Setenv("KUBE_EDITOR", editor)
		ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
		defer cancel()
		r, err := i.cp.Kubectl(ctx, nil, "edit", "sshjoinprofile", name)
		must(t, err)
		return r.Code, r.Stdout + r.Stderr
	}
	t.Run("which the block scalar does not keep", func(t *testing.T) {
		code, said := edit(`sed -i 's/^\( *\)echo leave$/&\n/' "$1"` + "\n")
		if code != 0 || !strings.Contains(said, "no changes made") {
			t.Errorf("exit %d: %s", code, said)
		}
	})
	t.Run("which it keeps", func(t *testing.T) {
		code, said := edit(`sed -i -e 's/^    leave: |$/    leave: |+/' -e 's/^\( *\)echo leave$/&\n/' "$1"` + "\n")
		if code == 0 || !strings.Contains(said, "SSHJoinProfile/"+name+": leave: NewlineChanged: ") {
			t.Errorf("exit %d: %s", code, said)
		}
	})
	t.Run("a label", func(t *testing.T) {
		if code, said := edit(`sed -i 's/^  name: ` + name + `$/&\n  labels: {a: b}/' "$1"` + "\n"); code != 0 || !strings.Contains(said, "edited") {
			t.Errorf("exit %d: %s", code, said)
		}
	})
}
