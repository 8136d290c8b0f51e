package fragment_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// What the command signs, the second implementation takes, as does the first: fragments without a
// namespace and with one, of each kind, with embedded content and without.
func TestTheSecondImplementationTakesWhatTheCommandSigns(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "hostwarrant")
	build := exec.Command("go", "build", "-o", program, "./signer")
	build.Dir = testkit.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	key := testkit.WriteFile(t, dir, "key", testkit.NewSigner(t, "ecdsa256").PEM)
	for name, object := range map[string]string{
		"ContainerProfile": `apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1
kind: ContainerProfile
metadata: {name: part, labels: {app: "<redis> & ⋯"}}
spec:
  matchLabels: {app: redis}
  execs: [{path: /usr/bin/id, args: ["-u", "⋯"]}, {envs: [A=1]}]
  opens: [{path: /etc/⋯, flags: [O_RDONLY]}]
  endpoints: [{endpoint: ":80/", methods: [GET], internal: false, headers: {Host: [x], "b": null}}]
  rulePolicies: {R0001: {processAllowed: [a]}, R0002: {}}
  ingress: [{identifier: i, type: internal, ports: [{name: TCP-1, protocol: TCP, port: 1}], podSelector: {matchLabels: {a: b}}}]
  seccompProfile: {spec: {defaultAction: SCMP_ACT_ERRNO, syscalls: [{names: [read], action: SCMP_ACT_ALLOW}]}}
`,
		"empty ContainerProfile": "apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1\nkind: ContainerProfile\nmetadata: {name: e, namespace: redis}\nspec: {}\n",
		"Rules": `{"apiVersion": "kubescape.io/v1", "kind": "Rules", "metadata": {"name": "r"}, "spec": {"rules": [
  {"id": "R0001", "enabled": true, "tags": ["a"], "state": {"b": 1.5, "a": [null]}, "profileDataRequired": {"execs": "all", "opens": [{"prefix": "/etc"}]},
   "expressions": {"message": "'a' < \"b\"", "ruleExpression": [{"eventType": "exec", "expression": "true"}]}}]}}`,
		"RuntimeRuleAlertBinding": "apiVersion: kubescape.io/v1\nkind: RuntimeRuleAlertBinding\nmetadata: {name: b}\nspec: {rules: [{ruleID: R0001, count: 1000}]}\n",
		"SeccompProfile":          "apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1\nkind: SeccompProfile\nmetadata: {name: s}\nspec: {containers: [{name: a}]}\n",
	} {
		for _, embed := range []string{"--embed-content=true", "--embed-content=false"} {
			t.Run(name+embed, func(t *testing.T) {
				file := testkit.WriteFile(t, t.TempDir(), "object", []byte(object))
				out, err := exec.Command(program, "sign", file, "--key", key, "--class", "base", "--bundle", "redis", "--version", "3", embed).Output()
				if err != nil {
					t.Fatal(err)
				}
				signed, err := yaml.YAMLToJSON(out)
				if err != nil {
					t.Fatal(err)
				}
				if !agree(t, signed) {
					t.Errorf("what was signed does not verify:\n%s", out)
				}
			})
		}
	}
}
