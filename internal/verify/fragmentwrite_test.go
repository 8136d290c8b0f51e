package verify_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const oneExec = "execs: [{path: /bin/a}]"

// write is a request about one of kubescape's kinds, by a user.
func (g *guild) write(user string, object, old []byte) verify.Answer {
	g.t.Helper()
	o := g.parsed(object)
	r := verify.Request{Operation: verify.Create, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, User: user, Object: object, Old: old}
	if old != nil {
		r.Operation = verify.Update
	}
	return verify.Admission(g.s, r)
}

func (g *guild) answers(a verify.Answer, outcome verify.Outcome, reason decision.Reason) {
	g.t.Helper()
	wantAnswer(g.t, a, outcome, reason)
}

// edited changes an object in JSON.
func edited(t *testing.T, raw []byte, edit func(o, metadata tree)) []byte {
	t.Helper()
	var o tree
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	edit(o, partOf(o, "metadata"))
	return encode(t, o)
}

// setIn sets, or with nil takes out, an entry of a part of the metadata.
func setIn(part, name string, value any) func(o, metadata tree) {
	return func(_, metadata tree) {
		all := partOf(metadata, part)
		if all[name] = value; value == nil {
			delete(all, name)
		}
		metadata[part] = all
	}
}

func (g *guild) base() []byte {
	return g.vendor.Sign(g.t, profileText("redis-base", labels("redis", "base", "2"), oneExec), true)
}

// Attacks A1 to A11 at admission: what is done to a signed object by whoever may write it.
func TestWhatIsDoneToASignedFragment(t *testing.T) {
	g := newGuild(t)
	signed := g.base()
	plain := g.vendor.Sign(t, profileText("redis-base", labels("redis", "base", "2"), oneExec), false)
	other := g.operator.Sign(t, profileText("redis-base", labels("redis", "base", "2"), oneExec), true)
	certificate := g.parsed(other).Annotations[fragment.AnnotationCertificate]
	signature := g.parsed(signed).Annotations[fragment.AnnotationSignature]
	spec := func(value tree) func(o, metadata tree) { return func(o, _ tree) { o["spec"] = value } }
	for name, tt := range map[string]struct {
		object []byte
		edit   func(o, metadata tree)
		want   decision.Reason
	}{
		"nothing":                                       {signed, func(tree, tree) {}, decision.Verified},
		"nothing, without embedded content":             {plain, func(tree, tree) {}, decision.Verified},
		"A1 the signature taken away":                   {signed, setIn("annotations", fragment.AnnotationSignature, nil), decision.Unsigned},
		"A2 a signature that was cut":                   {signed, setIn("annotations", fragment.AnnotationSignature, signature[:40]), decision.Tampered},
		"A2 the signature of another object":            {signed, setIn("annotations", fragment.AnnotationSignature, g.parsed(other).Annotations[fragment.AnnotationSignature]), decision.Tampered},
		"A3 a signature that is no base64":              {signed, setIn("annotations", fragment.AnnotationSignature, "%"), decision.SignatureMalformed},
		"A3 a time that is no number":                   {signed, setIn("annotations", "signature.kubescape.io/timestamp", "noon"), decision.SignatureMalformed},
		"A4 another key's certificate":                  {signed, setIn("annotations", fragment.AnnotationCertificate, certificate), decision.Tampered},
		"A4 no certificate":                             {signed, setIn("annotations", fragment.AnnotationCertificate, nil), decision.Tampered},
		"A5 another identity":                           {signed, setIn("annotations", "signature.kubescape.io/identity", "root"), decision.Verified},
		"A6 embedded content that is no gzip":           {signed, setIn("annotations", fragment.AnnotationContent, "aGVsbG8="), decision.Tampered},
		"A6 the embedded content of another":            {signed, setIn("annotations", fragment.AnnotationContent, contentOf(g, profileText("redis-base", labels("redis", "base", "3"), oneExec))), decision.Tampered},
		"A7 another name":                               {signed, func(_, m tree) { m["name"] = "redis-base-2" }, decision.Tampered},
		"A8 another namespace":                          {signed, func(_, m tree) { m["namespace"] = "shop" }, decision.Verified},
		"A9 the stored spec, content beside it":         {signed, spec(tree{"execs": []tree{{"path": "/bin/sh"}}}), decision.Tampered},
		"A9 a field that the kind has not":              {signed, spec(tree{"execs": []tree{{"path": "/bin/a"}}, "more": "x"}), decision.Tampered},
		"A10 the stored spec":                           {plain, spec(tree{"execs": []tree{{"path": "/bin/sh"}}}), decision.Tampered},
		"A10 a stored label":                            {plain, setIn("labels", "a", "b"), decision.Tampered},
		"A11 the stored class":                          {signed, setIn("labels", fragment.LabelClass, "overlay"), decision.Tampered},
		"A11 the stored bundle":                         {signed, setIn("labels", fragment.LabelBundle, "mysql"), decision.Tampered},
		"A11 the stored bundle taken away":              {signed, setIn("labels", fragment.LabelBundle, nil), decision.Tampered},
		"A11 the stored version":                        {signed, setIn("labels", fragment.LabelVersion, "3"), decision.Tampered},
		"A11 one more label of kubescape":               {signed, setIn("labels", "kubescape.io/workload-name", "x"), decision.Tampered},
		"A11 one more label of its signatures":          {signed, setIn("labels", "signature.kubescape.io/rule-class", "x"), decision.Tampered},
		"near miss: one more label of a tool":           {signed, setIn("labels", "app.kubernetes.io/instance", "x"), decision.Verified},
		"near miss: a label that ends like kubescape's": {signed, setIn("labels", "notkubescape.io/x", "x"), decision.Verified},
		"near miss: null for an empty list":             {signed, spec(tree{"execs": []tree{{"path": "/bin/a"}}, "opens": nil}), decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			object := edited(t, tt.object, tt.edit)
			outcome := verify.OutcomeDeny
			if tt.want == decision.Verified {
				outcome = verify.OutcomeAllow
			}
			wantAnswer(t, g.write("admin", object, nil), outcome, tt.want)
			if tt.want != decision.Verified && !strings.HasPrefix(name, "A7") { // no update gives another name
				wantAnswer(t, g.write("admin", object, tt.object), outcome, tt.want) // as an update of the signed one
			}
		})
	}
}

// contentOf is the embedded content of a text.
func contentOf(g *guild, text string) string {
	return g.parsed(g.vendor.Sign(g.t, text, true)).Annotations[fragment.AnnotationContent]
}

// A carrier that unpacks to far more than it says is refused before anything is hashed.
func TestEmbeddedContentIsNoLargerThanWhatIsStored(t *testing.T) {
	g := newGuild(t)
	large := g.vendor.Sign(t, profileText("redis-base", labels("redis", "base", "2"), "execs: [{path: /bin/a, args: ["+strings.Repeat("aaaaaaaaaaaaaaa, ", 20000)+"a]}]"), true)
	g.answers(g.write("admin", large, nil), verify.OutcomeAllow, decision.Verified)
	stripped := edited(t, large, func(o, _ tree) { o["spec"] = tree{} })
	g.answers(g.write("admin", stripped, nil), verify.OutcomeDeny, decision.TooLarge)
	if _, d := verify.Fragment(g.s, g.parsed(stripped)); !d.Allowed() {
		t.Errorf("beside admission: %s", d.Message()) // storage may strip what it lists
	}
	small := edited(t, g.base(), func(o, _ tree) { o["spec"] = tree{} })
	g.answers(g.write("admin", small, nil), verify.OutcomeDeny, decision.Tampered)
}

// What is refused of a stored spec names the parts, and never what they hold.
func TestADivergenceNamesPathsAndNoValues(t *testing.T) {
	g := newGuild(t)
	object := edited(t, g.base(), func(o, _ tree) {
		o["spec"] = tree{"execs": []tree{{"path": "/bin/hidden"}}, "opens": []tree{{"path": "/etc/hidden", "flags": []string{}}}}
	})
	a := g.write("admin", object, nil)
	g.answers(a, verify.OutcomeDeny, decision.Tampered)
	if m := a.Decision.Message(); !strings.Contains(m, "execs, opens") || strings.Contains(m, "hidden") {
		t.Error(m)
	}
	g.inside("mode: enforce", "mode: warn\nwarnUntil: \"2026-12-10T00:00:00Z\"")
	g.policy(strings.Replace(testkit.PolicyDocument(g.signer), "mode: enforce", "mode: warn\nwarnUntil: \"2026-12-10T00:00:00Z\"", 1) + g.document())
	a = g.write("admin", object, nil)
	g.answers(a, verify.OutcomeWarn, decision.Tampered)
	if m := a.Decision.Message(); !strings.Contains(m, "execs, opens") || strings.Contains(m, "hidden") {
		t.Error(m)
	}
}

// Attacks M7 and H8: content of one kind on a carrier of another.
func TestContentOfOneKindOnACarrierOfAnother(t *testing.T) {
	g := newGuild(t)
	profile := g.vendor.Sign(t, profileText("x", labels("redis", "base", ""), ""), true)
	rules := toJSON(t, rulesText("x", labels("redis", "base", ""), ruleText("R0001", true)))
	stapled := edited(t, rules, func(_, m tree) { m["annotations"] = g.parsed(profile).Annotations })
	g.answers(g.write("admin", stapled, nil), verify.OutcomeDeny, decision.KindMismatch)
	g.answers(g.write("admin", g.vendor.Sign(t, rulesText("x", labels("redis", "base", ""), ruleText("R0001", true)), true), nil), verify.OutcomeAllow, decision.Verified)
	group := edited(t, profile, func(o, _ tree) { o["apiVersion"] = "example.com/v1beta1" })
	g.answers(g.write("admin", group, nil), verify.OutcomeDeny, decision.KindMismatch)
	version := edited(t, profile, func(o, _ tree) { o["apiVersion"] = object.GroupStorage + "/v1" })
	g.answers(g.write("admin", version, nil), verify.OutcomeDeny, decision.KindMismatch)
}

// An update is exempt only if guarded content is the same; labels and signatures belong to it.
func TestGuardedContentOfFragments(t *testing.T) {
	g := newGuild(t)
	bad := edited(t, g.base(), setIn("labels", fragment.LabelClass, "overlay")) // stored past the webhook
	for name, tt := range map[string]struct {
		edit  func(o, metadata tree)
		other bool
	}{
		"nothing":                        {func(tree, tree) {}, false},
		"another annotation":             {setIn("annotations", "example.com/x", "y"), false},
		"a finalizer":                    {func(_, m tree) { m["finalizers"] = []string{"example.com/x"} }, false},
		"the status":                     {func(o, _ tree) { o["status"] = tree{"a": "b"} }, false},
		"a label that was not signed":    {setIn("labels", "a", "b"), true},
		"a label taken away":             {setIn("labels", fragment.LabelBundle, nil), true},
		"the spec":                       {func(o, _ tree) { o["spec"] = tree{} }, true},
		"the signature taken away":       {setIn("annotations", fragment.AnnotationSignature, nil), true},
		"one more signature annotation":  {setIn("annotations", "signature.kubescape.io/issuer", "me"), true},
		"who manages it":                 {setIn("annotations", object.ManagedByAnnotation, "User"), true},
		"one more field beside the spec": {func(o, _ tree) { o["data"] = tree{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.write("admin", edited(t, bad, tt.edit), bad)
			if exempt := a.Outcome == verify.OutcomeExempt; exempt == tt.other {
				t.Errorf("%s: %s", a.Outcome, a.Decision.Message())
			}
			if tt.other && a.Admits() {
				t.Error(a.Decision.Message())
			}
			deleting := func(o, m tree) { tt.edit(o, m); m["deletionTimestamp"] = "2026-11-30T00:00:00Z" }
			if was := edited(t, bad, func(_, m tree) { m["deletionTimestamp"] = "2026-11-30T00:00:00Z" }); tt.other == g.write("admin", edited(t, was, deleting), was).Admits() {
				t.Error("it is another thing under deletion")
			}
		})
	}
}

// The version that an update takes the place of counts before the ledger has seen it, if it was vouched for.
func TestAnUpdateGoesNoVersionBack(t *testing.T) {
	g := newGuild(t)
	version := func(v, exec, class string) []byte {
		return g.vendor.Sign(t, profileText("redis-base", labels("redis", class, v), "execs: [{path: "+exec+"}]"), true)
	}
	stored := version("3", "/bin/a", "base")
	strange := g.stranger.Sign(t, profileText("redis-base", labels("redis", "base", "9"), oneExec), true)
	for name, tt := range map[string]struct {
		object, old []byte
		outcome     verify.Outcome
		want        decision.Reason
	}{
		"up":                               {version("4", "/bin/b", "base"), stored, verify.OutcomeAllow, decision.Verified},
		"down":                             {version("2", "/bin/a", "base"), stored, verify.OutcomeDeny, decision.VersionRollback},
		"other content, the same version":  {version("3", "/bin/b", "base"), stored, verify.OutcomeDeny, decision.VersionEquivocated},
		"in the place of another class":    {version("2", "/bin/a", "any"), stored, verify.OutcomeAllow, decision.Verified},
		"in the place of what nobody may":  {version("2", "/bin/a", "base"), strange, verify.OutcomeAllow, decision.Verified},
		"in the place of what is unsigned": {version("2", "/bin/a", "base"), toJSON(t, profileText("redis-base", "", oneExec)), verify.OutcomeAllow, decision.Verified},
		"in the place of what is no JSON":  {version("2", "/bin/a", "base"), []byte("{"), verify.OutcomeAllow, decision.Verified},
		"too far":                          {version("1004", "/bin/b", "base"), stored, verify.OutcomeDeny, decision.SerialJump},
	} {
		for kept, l := range map[string]verify.Ledger{"offline": nil, "an empty ledger": marks{}} {
			t.Run(name+", "+kept, func(t *testing.T) {
				g.s.Ledger = l
				wantAnswer(t, g.write("admin", tt.object, tt.old), tt.outcome, tt.want)
			})
		}
	}
}

// Agents write what they learn; under no name, label or annotation does that pass for more.
func TestLearnersWriteWhatTheyLearnAndNothingElse(t *testing.T) {
	g := newGuild(t)
	g.classes("bundles: {redis: {required: [{class: base, name: redis-base}]}}\n")
	flat := func(edits ...func(o, metadata tree)) []byte {
		raw := toJSON(t, profileText("replicaset-nginx-1", "", oneExec))
		for _, edit := range edits {
			raw = edited(t, raw, edit)
		}
		return raw
	}
	managed := func(value string) func(o, metadata tree) {
		return setIn("annotations", object.ManagedByAnnotation, value)
	}
	named := func(name string) func(o, metadata tree) { return func(_, m tree) { m["name"] = name } }
	signed := g.vendor.Sign(t, profileText("replicaset-nginx-1", labels("", "base", ""), oneExec), true)
	for name, tt := range map[string]struct {
		user        string
		object, old []byte
		outcome     verify.Outcome
		want        decision.Reason
	}{
		"what it learned":                        {agent, flat(), nil, verify.OutcomeAllow, decision.Verified},
		"what it learned next":                   {agent, flat(func(o, _ tree) { o["spec"] = tree{} }), flat(), verify.OutcomeAllow, decision.Verified},
		"by another account":                     {"system:serviceaccount:pay:node-agent", flat(), nil, verify.OutcomeDeny, decision.Unsigned},
		"by nobody":                              {"", flat(), nil, verify.OutcomeDeny, decision.Unsigned},
		"as if a person had written it":          {agent, flat(managed("User")), nil, verify.OutcomeDeny, decision.Unsigned},
		"the same in other letters":              {agent, flat(managed("user")), nil, verify.OutcomeDeny, decision.Unsigned},
		"managed by the agent":                   {agent, flat(managed("NodeAgent")), nil, verify.OutcomeAllow, decision.Verified},
		"in the place of a person's":             {agent, flat(), flat(managed("User")), verify.OutcomeDeny, decision.Unsigned},
		"in the place of a signed one":           {agent, flat(), signed, verify.OutcomeDeny, decision.Unsigned},
		"in the place of what is no JSON":        {agent, flat(), []byte("{"), verify.OutcomeDeny, decision.Unsigned},
		"with a label of a bundle":               {agent, flat(setIn("labels", fragment.LabelBundle, "redis")), nil, verify.OutcomeDeny, decision.Unsigned},
		"with an annotation of a signature":      {agent, flat(setIn("annotations", fragment.AnnotationContent, "x")), nil, verify.OutcomeDeny, decision.Unsigned},
		"a signed one":                           {agent, signed, nil, verify.OutcomeAllow, decision.Verified},
		"under the name of a bundle":             {agent, flat(named("redis")), nil, verify.OutcomeDeny, decision.CompositeForeign},
		"Rules, which no agent learns":           {agent, toJSON(t, rulesText("x", "", ruleText("R0001", true))), nil, verify.OutcomeDeny, decision.Unsigned},
		"a SeccompProfile":                       {agent, edited(t, flat(), func(o, _ tree) { o["kind"] = "SeccompProfile" }), nil, verify.OutcomeAllow, decision.Verified},
		"the same under a bundle's name is none": {agent, edited(t, flat(named("redis")), func(o, _ tree) { o["kind"] = "SeccompProfile" }), nil, verify.OutcomeAllow, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, g.write(tt.user, tt.object, tt.old), tt.outcome, tt.want) })
	}
}

// What stands under a bundle's name is what agents enforce.
func TestTheCompositeIsTheControllersAlone(t *testing.T) {
	g := newGuild(t)
	composite := func(name string, edits ...func(o, metadata tree)) []byte {
		raw := edited(t, toJSON(t, profileText(name, "", oneExec)), func(_, m tree) {
			m["annotations"] = tree{object.ManagedByAnnotation: "User", verify.RootAnnotation: strings.Repeat("a", 64)}
		})
		for _, edit := range edits {
			raw = edited(t, raw, edit)
		}
		return raw
	}
	g.s.Ledger = marks{bundles: []string{"pay/redis"}}
	signed := g.vendor.Sign(t, profileText("redis", labels("", "base", ""), oneExec), true)
	for name, tt := range map[string]struct {
		user    string
		object  []byte
		outcome verify.Outcome
		want    decision.Reason
	}{
		"by the controller":                        {controller, composite("redis"), verify.OutcomeAllow, decision.Verified},
		"of a bundle that nobody saw yet":          {controller, composite("mysql"), verify.OutcomeAllow, decision.Verified},
		"by an administrator":                      {"admin", composite("redis"), verify.OutcomeDeny, decision.CompositeForeign},
		"by an agent":                              {agent, composite("redis"), verify.OutcomeDeny, decision.CompositeForeign},
		"by the controller of another namespace":   {"system:serviceaccount:pay:hostwarrant-controller", composite("redis"), verify.OutcomeDeny, decision.CompositeForeign},
		"signed, by an administrator":              {"admin", signed, verify.OutcomeDeny, decision.CompositeForeign},
		"in a namespace without it":                {"admin", edited(t, signed, func(_, m tree) { m["namespace"] = "shop" }), verify.OutcomeAllow, decision.Verified},
		"by the controller, with a class":          {controller, composite("redis", setIn("labels", fragment.LabelClass, "base")), verify.OutcomeDeny, decision.CompositeForeign},
		"by the controller, with a signature":      {controller, composite("redis", setIn("annotations", fragment.AnnotationSignature, "x")), verify.OutcomeDeny, decision.CompositeForeign},
		"by the controller, without a root":        {controller, composite("redis", setIn("annotations", verify.RootAnnotation, nil)), verify.OutcomeDeny, decision.CompositeForeign},
		"something else by the controller":         {controller, composite("web", setIn("annotations", verify.RootAnnotation, nil)), verify.OutcomeDeny, decision.Unsigned},
		"something else that claims to be one":     {"admin", composite("web"), verify.OutcomeDeny, decision.Unsigned},
		"Rules by the controller":                  {controller, toJSON(t, rulesText("redis", "", ruleText("R0001", true))), verify.OutcomeDeny, decision.Unsigned},
		"Rules under that name, which are no such": {"admin", g.vendor.Sign(t, rulesText("redis", labels("", "base", ""), ruleText("R0001", true)), true), verify.OutcomeAllow, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, g.write(tt.user, tt.object, nil), tt.outcome, tt.want) })
	}
	t.Run("a bundle of the policy", func(t *testing.T) {
		g.classes("bundles: {web: {required: [{class: base, name: web-base}]}}\n")
		wantAnswer(t, g.write("admin", composite("web"), nil), verify.OutcomeDeny, decision.CompositeForeign)
	})
	t.Run("where nobody is the controller", func(t *testing.T) {
		g.s.Controller = ""
		wantAnswer(t, g.write("", composite("redis"), nil), verify.OutcomeDeny, decision.CompositeForeign)
	})
}

// A policy that gives no classes for a kind says nothing of it.
func TestAKindWithoutClassesIsNotJudged(t *testing.T) {
	g := newGuild(t)
	kinds := map[string]struct {
		part   string
		object []byte
	}{
		"ContainerProfile":        {"fragmentClasses", toJSON(t, profileText("x", "", oneExec))},
		"SeccompProfile":          {"fragmentClasses", edited(t, toJSON(t, profileText("x", "", oneExec)), func(o, _ tree) { o["kind"] = "SeccompProfile" })},
		"Rules":                   {"ruleClasses", toJSON(t, rulesText("x", "", ruleText("R0001", true)))},
		"RuntimeRuleAlertBinding": {"bindingClasses", toJSON(t, "apiVersion: kubescape.io/v1\nkind: RuntimeRuleAlertBinding\nmetadata: {name: x}\nspec: {}\n")},
	}
	for kind, tt := range kinds {
		t.Run(kind, func(t *testing.T) {
			g.classes("")
			wantAnswer(t, g.write("admin", tt.object, nil), verify.OutcomeDeny, decision.Unsigned)
			g.with(withoutPart(g.document(), tt.part))
			a := g.write("admin", tt.object, nil)
			if a.Outcome != verify.OutcomeExempt || a.Decision.Reason != decision.Unguarded {
				t.Errorf("%s: %s", a.Outcome, a.Decision.Message())
			}
			if len(a.Decision.Warnings) != 1 || !strings.Contains(a.Decision.Warnings[0], tt.part) {
				t.Errorf("warnings %q", a.Decision.Warnings)
			}
			g.s.Policy = nil
			wantAnswer(t, g.write("admin", tt.object, nil), verify.OutcomeDeny, decision.PolicyUnavailable)
		})
	}
}

// withoutPart takes a top-level part out of a policy.
func withoutPart(document, part string) string {
	var kept []string
	in := false
	for _, line := range strings.Split(document, "\n") {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, part+":")
		}
		if !in {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func TestFragmentsCanAlwaysBeDeleted(t *testing.T) {
	g := newGuild(t)
	for _, old := range [][]byte{g.base(), toJSON(t, profileText("redis", "", oneExec)), toJSON(t, rulesText("x", "")), []byte("{}")} {
		for _, kind := range []string{"ContainerProfile", "Rules", "RuntimeRuleAlertBinding", "SeccompProfile"} {
			a := verify.Admission(g.s, verify.Request{Operation: verify.Delete, Kind: kind, Namespace: "pay", Name: "x", User: "admin", Old: old})
			wantAnswer(t, a, verify.OutcomeAllow, decision.Verified)
		}
	}
	g.s.Policy = nil
	a := verify.Admission(g.s, verify.Request{Operation: verify.Delete, Kind: "Rules", Namespace: "pay", Name: "x", Old: g.base()})
	g.answers(a, verify.OutcomeAllow, decision.Verified)
}

// A waiver names one content: its labels and signatures too.
func TestAWaiverOfAFragmentIsForThatContent(t *testing.T) {
	g := newGuild(t)
	flat := toJSON(t, profileText("legacy", "", oneExec))
	digest, err := object.ContentDigest(flat)
	if err != nil {
		t.Fatal(err)
	}
	g.classes("waivers: [{kind: ContainerProfile, name: legacy, digest: \"" + digest + "\", expires: \"2026-12-10T00:00:00Z\", reason: \"moving\"}]\n")
	a := g.write("admin", flat, nil)
	g.answers(a, verify.OutcomeWaive, decision.Waived)
	for name, edit := range map[string]func(o, metadata tree){
		"a label":           setIn("labels", "a", "b"),
		"a signature":       setIn("annotations", fragment.AnnotationContent, "x"),
		"the spec":          func(o, _ tree) { o["spec"] = tree{} },
		"another name":      func(_, m tree) { m["name"] = "other" },
		"another namespace": func(_, m tree) { m["namespace"] = "shop" },
		"who manages it":    setIn("annotations", object.ManagedByAnnotation, "User"),
	} {
		if a := g.write("admin", edited(t, flat, edit), nil); a.Outcome != verify.OutcomeDeny {
			t.Errorf("%s: %s: %s", name, a.Outcome, a.Decision.Message())
		}
	}
	g.answers(g.write("admin", edited(t, flat, setIn("annotations", "example.com/x", "y")), nil), verify.OutcomeWaive, decision.Waived)
}

// Digests of the kinds that were judged before stay what they were: waivers name them.
func TestContentDigestsOfOtherKindsStay(t *testing.T) {
	c := newCourt(t)
	with := maps.Clone(c.hostTree())
	with["metadata"] = tree{"name": "a", "namespace": "pool", "labels": tree{"a": "b"}, "annotations": tree{object.ManagedByAnnotation: "User"}}
	a, errA := object.ContentDigest(encode(t, c.hostTree()))
	b, errB := object.ContentDigest(encode(t, with))
	if errA != nil || errB != nil || a != b {
		t.Errorf("%s, %s, %v, %v", a, b, errA, errB)
	}
}
