package verify_test

import (
	"regexp"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Each denial of a fragment is one readable line that says what is wrong, where, and what to do next.
func TestGoldenDenialsOfFragments(t *testing.T) {
	g := newGuild(t)
	g.classes("bundles: {redis: {tombstones: [{class: overlay, name: old, version: 4}]}}\nrevoked: {fragmentSigners: [\"" + g.stranger.Fingerprint + "\"]}\n")
	three, _ := g.judge(g.vendor, profileText("redis-base", labels("redis", "base", "3"), oneExec))
	g.s.Ledger = marks{slots: map[ledger.Slot]ledger.SlotMark{ledger.SlotOf("pay", three): ledger.SlotMarkOf(three)}}
	profile := func(name, bundle, class, version, spec string) string {
		return profileText(name, labels(bundle, class, version), spec)
	}
	sign := func(text string) []byte { return g.vendor.Sign(t, text, true) }
	for want, object := range map[string][]byte{
		`ContainerProfile/x: Unsigned: has no signature; hint: sign it: hostwarrant sign -i FILE --key KEY --class CLASS`:                                                                                                                               toJSON(t, profile("x", "redis", "base", "", oneExec)),
		`ContainerProfile/x: metadata.labels[signature.kubescape.io/fragment-class]: ClassUnknown: the signed content has no class; hint: sign it with a class: hostwarrant sign -i FILE --key KEY --class CLASS`:                                       sign(profile("x", "redis", "", "", oneExec)),
		`ContainerProfile/x: metadata.labels[signature.kubescape.io/fragment-class]: ClassUnknown: the policy's fragmentClasses have no "extra"; hint: sign it for a class that the policy has, or add the class to the policy`:                         sign(profile("x", "redis", "extra", "", oneExec)),
		`ContainerProfile/x: SignerRevoked: the policy revokes key:DIGEST; hint: sign it with another key: hostwarrant sign -i FILE --key KEY --class CLASS`:                                                                                            g.stranger.Sign(t, profile("x", "redis", "base", "", oneExec), true),
		`ContainerProfile/x: SignerScope: key:DIGEST may not sign the class "admission" of fragmentClasses; hint: sign it with a key that the policy names for that class`:                                                                              sign(profile("x", "redis", "admission", "", "")),
		`ContainerProfile/x: spec.egress: PathRefused: the class "base" may not set egress; hint: leave it out, or sign it for another class`:                                                                                                           sign(profile("x", "redis", "base", "", "egress: [{identifier: a}]")),
		`ContainerProfile/web: metadata.name: CompositeForeign: a part of a bundle may not have the bundle's name; hint: sign it under another name`:                                                                                                    sign(profile("web", "web", "base", "", oneExec)),
		`ContainerProfile/old: metadata.labels[signature.kubescape.io/version]: VersionRollback: the policy took it out of the bundle "redis" up to version 4; hint: sign a higher version, if it shall come back`:                                      g.operator.Sign(t, profile("old", "redis", "overlay", "4", oneExec), true),
		`ContainerProfile/redis-base: metadata.labels[signature.kubescape.io/version]: VersionRollback: version 2 is below 3, the highest that was seen; hint: sign the next version: hostwarrant sign -i FILE --key KEY --version N`:                   sign(profile("redis-base", "redis", "base", "2", oneExec)),
		`ContainerProfile/redis-base: metadata.labels[signature.kubescape.io/version]: VersionEquivocated: version 3 was seen with other content (DIGEST, this is DIGEST); hint: sign the next version: hostwarrant sign -i FILE --key KEY --version N`: sign(profile("redis-base", "redis", "base", "3", "execs: [{path: /bin/b}]")),
		`ContainerProfile/redis-base: metadata.labels[signature.kubescape.io/version]: SerialJump: version 1004 is more than 1000 above 3, which was seen; hint: sign a lower version, or let the trust policy reset this slot to it`:                   sign(profile("redis-base", "redis", "base", "1004", oneExec)),
		`Rules/r: spec.rules[1]: RuleRefused: the class "overlay" may not hold the rule "R0002"; hint: leave it out, or let the policy allow its id`:                                                                                                    g.operator.Sign(t, rulesText("r", labels("redis", "overlay", ""), ruleText("R0001", true), ruleText("R0002", true)), true),
		`Rules/r: spec.rules[0].enabled: RuleRefused: the class "overlay" may not switch off the rule "R0001"; hint: leave the rule out, or let the policy say mayDisable`:                                                                              g.operator.Sign(t, rulesText("r", labels("redis", "overlay", ""), ruleText("R0001", false)), true),
		`Rules/r: metadata.labels[signature.kubescape.io/bundle]: RuleRefused: Rules of the class overlay name no bundle; hint: sign them with --bundle NAME`:                                                                                           g.operator.Sign(t, rulesText("r", labels("", "overlay", ""), ruleText("R0001", true)), true),
		`ContainerProfile/x: spec: Tampered: the stored spec is not the signed one in: execs, opens; hint: apply the file as it was signed, or sign what is stored: hostwarrant sign -i FILE --key KEY --class CLASS`:                                   edited(t, sign(profile("x", "redis", "base", "", oneExec)), func(o, _ tree) { o["spec"] = tree{"opens": []tree{{"path": "/a"}}} }),
		`ContainerProfile/x: metadata.labels[signature.kubescape.io/fragment-class]: Tampered: the stored label is not the signed one; hint: apply the file as it was signed, or sign what is stored: hostwarrant sign -i FILE --key KEY --class CLASS`: edited(t, sign(profile("x", "redis", "base", "", oneExec)), setIn("labels", fragment.LabelClass, "any")),
	} {
		got := digits.ReplaceAllString(g.write("admin", object, nil).Decision.Message(), "DIGEST")
		if got != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
	}
}

var digits = regexp.MustCompile(`\b[0-9a-f]{12,}\b`)
