//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// tour is a signed profile and the tools that people pass it through.
type tour struct {
	*installation
	dir                   string
	hostwarrant           string
	helm, yq, kustomize   string
	policy, roots, signed string
}

func newTour(t *testing.T) *tour {
	t.Helper()
	i := install(t)
	r := &tour{installation: i, dir: t.TempDir(), hostwarrant: filepath.Join(shared.Lab(t).Root(), "bin", "hostwarrant")}
	r.helm, r.yq = filepath.Join(builtTools(t, "tools/render"), "helm"), filepath.Join(builtTools(t, "tools/render"), "yq")
	r.kustomize = filepath.Join(builtTools(t, "tools/kustomize"), "kustomize")
	r.policy = r.write(t, "policy.json", string(i.trustPolicy(t, i.document, i.root)))
	r.roots = r.write(t, "roots", i.root.Line+"\n")
	r.write(t, "key", string(i.signer.PEM))
	must(t, os.Chmod(filepath.Join(r.dir, "key"), 0o600))
	for phase, text := range scripts() {
		r.write(t, "scripts/"+phase+".sh", text)
	}
	r.signed = r.sh(t, `"$HOSTWARRANT" sign scripts --key key --profile p-tour --serial 1 --target any`)
	r.write(t, "signed.yaml", r.signed)
	r.charts(t)
	return r
}

// builtTools is the directory of pinned tools, which are built once.
func builtTools(t *testing.T, module string) string {
	t.Helper()
	root := testkit.Root(t)
	cmd := exec.Command(filepath.Join(root, "tools", "build.sh"), filepath.Join(root, module))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

func (r *tour) write(t *testing.T, name, text string) string {
	t.Helper()
	return testkit.WriteFile(t, r.dir, name, []byte(text))
}

// charts writes Helm charts that bring the profile in the ways that charts do.
func (r *tour) charts(t *testing.T) {
	t.Helper()
	block := func(join string) string {
		return strings.NewReplacer("JOIN", join).Replace(`apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHJoinProfile
metadata:
  name: p-tour
spec:
  version: "1"
  scripts:
    install: {{ .Files.Get "install.sh" | quote }}
    join: JOIN
    leave: {{ .Files.Get "leave.sh" | quote }}
  signatures:
    install: {{ .Files.Get "install.sh.sig" | quote }}
    join: {{ .Files.Get "join.sh.sig" | quote }}
    leave: {{ .Files.Get "leave.sh.sig" | quote }}
`)
	}
	for chart, template := range map[string]string{
		"whole":   r.signed,
		"get":     `{{ .Files.Get "signed.yaml" }}`,
		"quote":   block(`{{ .Files.Get "join.sh" | quote }}`),
		"toyaml":  block(`{{ .Files.Get "join.sh" | toYaml | nindent 6 }}`),
		"indent":  block("|\n{{ .Files.Get \"join.sh\" | indent 6 }}"),
		"nindent": block("|-\n{{- .Files.Get \"join.sh\" | nindent 6 }}"),
		"trim":    block("|\n      {{- .Files.Get \"join.sh\" | trim | nindent 6 }}"),
		"fold":    block(">\n{{ .Files.Get \"join.sh\" | indent 6 }}"),
		"blanks":  block("|\n{{ .Files.Get \"join.sh\" | replace \"\\n\" \"  \\n\" | indent 6 }}"),
		"deeper":  block("|2\n{{ .Files.Get \"join.sh\" | indent 8 }}"),
	} {
		r.write(t, chart+"/Chart.yaml", "apiVersion: v2\nname: "+chart+"\nversion: 1.0.0\n")
		r.write(t, chart+"/templates/profile.yaml", template)
		r.write(t, chart+"/signed.yaml", r.signed)
		for phase := range scripts() {
			for _, name := range []string{phase + ".sh", phase + ".sh.sig"} {
				text, err := os.ReadFile(filepath.Join(r.dir, "scripts", name))
				must(t, err)
				r.write(t, chart+"/"+name, string(text))
			}
		}
	}
}

// sh runs a line of shell as people would, beside the files.
func (r *tour) sh(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-euc", line)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOSTWARRANT="+r.hostwarrant, "HELM="+r.helm, "YQ="+r.yq, "KUSTOMIZE="+r.kustomize, "HOME="+r.dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, errs.String())
	}
	return string(out)
}

// verify judges what a tool made of the profile, with its source beside it.
func (r *tour) verify(t *testing.T, text string) (reason, what, details string) {
	t.Helper()
	cmd := exec.Command(r.hostwarrant, "verify", "-", filepath.Join(r.dir, "scripts"), "-o", "json", "--policy", r.policy, "--root", r.roots, "--cluster", "e2e")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if _, refused := errors.AsType[*exec.ExitError](err); !refused {
		must(t, err)
	}
	var rows []struct {
		Reason, What string
		Details      []string
	}
	must(t, json.Unmarshal(out, &rows))
	if len(rows) != 2 || rows[1].Reason != "Verified" {
		t.Fatalf("want the tool's profile and its source, got %s", out)
	}
	return rows[0].Reason, rows[0].What, strings.Join(rows[0].Details, "; ")
}

// TestToolsPreserveSignedBytes passes a signed profile through the tools that people use between
// signing and the cluster, and verifies what comes out. docs/tools.md has the table that it prints.
func TestToolsPreserveSignedBytes(t *testing.T) {
	r := newTour(t)
	helm := func(chart string) func() string {
		return func() string { return r.sh(t, `"$HELM" template x `+chart) }
	}
	line := func(text string) func() string { return func() string { return r.sh(t, text) } }
	kustomize := func(lines string) func() string {
		return func() string {
			r.write(t, "kustomize/kustomization.yaml", "resources: [signed.yaml]\n"+lines)
			r.write(t, "kustomize/signed.yaml", r.signed)
			return r.sh(t, `"$KUSTOMIZE" build kustomize`)
		}
	}
	stored := func(get string, apply ...string) func() string {
		return func() string {
			r.remove(t, "sshjoinprofile", "p-tour")
			r.succeeds(t, []byte(r.signed), append(apply, "-f", "-")...)
			out := r.succeeds(t, nil, "get", "sshjoinprofile", "p-tour", "-o", get).Stdout
			r.deleted(t, "sshjoinprofile", "p-tour")
			return out
		}
	}
	const ok = "Verified"
	rows := []struct {
		tool   string
		run    func() string
		reason string
		says   string
	}{
		{"helm template: the signed file as template", helm("whole"), ok, ""},
		{"helm template: `.Files.Get` of the signed file", helm("get"), ok, ""},
		{"helm template: `.Files.Get … \\| quote`", helm("quote"), ok, ""},
		{"helm template: `.Files.Get … \\| toYaml`", helm("toyaml"), ok, ""},
		{"helm template: `\\|` and `indent`", helm("indent"), ok, ""},
		{"helm template: `\\|-` and `nindent`", helm("nindent"), "NewlineChanged", "the block scalar says |-"},
		{"helm template: `trim`", helm("trim"), ok, ""},
		{"helm template: `>` and `indent`", helm("fold"), "BytesChanged", "folded block scalar (>)"},
		{"helm template: blanks at line ends", helm("blanks"), "BytesChanged", "spaces were added at the end of line 1"},
		{"helm template: `\\|2` and `indent 8`", helm("deeper"), "BytesChanged", "every line was indented by 2"},
		{"kustomize build", kustomize(""), ok, ""},
		{"kustomize build: labels and annotations", kustomize("commonAnnotations: {a: b}\nlabels: [{pairs: {c: d}}]\n"), ok, ""},
		{"kustomize build: a patch of the timeouts", kustomize("patches:\n- patch: '{\"apiVersion\":\"karpenter.dklesev.github.io/v1beta1\",\"kind\":\"SSHJoinProfile\",\"metadata\":{\"name\":\"p-tour\"},\"spec\":{\"timeouts\":{\"join\":\"10m\"}}}'\n"), ok, ""},
		{"kustomize build: namePrefix", kustomize("namePrefix: x-\n"), "WarrantMismatch", `the warrant is for profile "p-tour"`},
		{"yq: YAML to YAML", line(`"$YQ" . signed.yaml`), ok, ""},
		{"yq: YAML to JSON", line(`"$YQ" -o json . signed.yaml`), ok, ""},
		{"yq: JSON to YAML", line(`"$YQ" -o json . signed.yaml | "$YQ" -p json -o yaml -P .`), ok, ""},
		{"yq: folded style", line(`"$YQ" '.spec.scripts.join style="folded"' signed.yaml`), ok, ""},
		{"yq: `trim`", line(`"$YQ" '.spec.scripts.join |= trim' signed.yaml`), "NewlineChanged", "the final newline was lost"},
		{"unix2dos", line(`sed 's/$/\r/' signed.yaml`), ok, ""},
		{"kubectl create, get -o yaml", stored("yaml", "create"), ok, ""},
		{"kubectl apply, get -o yaml", stored("yaml", "apply"), ok, ""},
		{"kubectl apply, get -o json", stored("json", "apply"), ok, ""},
		{"kubectl apply --server-side, get -o yaml", stored("yaml", "apply", "--server-side"), ok, ""},
	}
	var table strings.Builder
	table.WriteString("| between signing and verifying | verdict | what `hostwarrant verify` says |\n|---|---|---|\n")
	for _, row := range rows {
		reason, what, details := r.verify(t, row.run())
		said := ""
		if reason != ok {
			said = strings.ReplaceAll(row.says, "|", "\\|")
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", row.tool, reason, said)
		if reason != row.reason || !strings.Contains(what+"; "+details, row.says) {
			t.Errorf("%s: want %s with %q, got %s: %s; %s", row.tool, row.reason, row.says, reason, what, details)
		}
	}
	t.Log("\n" + table.String())
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "tools.md"))
	must(t, err)
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/tools.md does not hold this table:\n%s", table.String())
	}
}
