package lint_test

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// warranted puts a warrant with the given param lines on top of lines of a script. The first param stands
// in line 8 of install and join, and in line 7 of the others.
func warranted(t *testing.T, phase script.Phase, params []string, rest ...string) string {
	t.Helper()
	head := []string{"#warrant: v1", "#warrant: profile p", "#warrant: phase " + string(phase), "#warrant: serial 1", "#warrant: not-after 1802776000"}
	if phase == script.Install || phase == script.Join {
		head = append(head, "#warrant: leave-sha256 "+strings.Repeat("a", 64))
	}
	head = append(head, "#warrant: target any")
	for _, p := range params {
		head = append(head, "#warrant: param "+p)
	}
	text := lines(append(append(head, "#warrant: end"), rest...)...)
	if w, err := warrant.Find([]byte(text)); err != nil || w == nil {
		t.Fatalf("the fixture has no good warrant: %v\n%s", err, text)
	}
	return text
}

func TestWarrantMalformed(t *testing.T) {
	good := warranted(t, script.Leave, nil, "true")
	check(t, "warrant-malformed", map[string]example{
		"an unknown key":      {text: strings.Replace(good, "serial", "cereal", 1), want: []string{"4 error"}},
		"a line further down": {text: strict + "true\n#warrant: v1\n", want: []string{"3 error"}},
		"no end":              {text: strings.Replace(good, "#warrant: end\n", "", 1), want: []string{"7 error"}},
		"a good one":          {phase: script.Leave, text: good},
		"none":                {text: strict},
		"a comment like one":  {text: "# warrant: v1\n"},
	})
}

func TestUndeclaredParameter(t *testing.T) {
	declared := []string{"KPSSH_VAR_dns optional type ip", "KPSSH_X optional type text"}
	check(t, "undeclared-parameter", map[string]example{
		"not in the warrant": {text: warranted(t, script.Join, declared, `echo "$KPSSH_VAR_dsn"`), want: []string{"11 error"}},
		"with a default":     {text: warranted(t, script.Join, declared, `echo "${KPSSH_VAR_dsn:-}"`), want: []string{"11 error"}},
		"a secret not in it": {text: warranted(t, script.Join, declared, `echo "$KPSSH_SECRET_A"`), want: []string{"11 error"}},
		"once for each name": {text: warranted(t, script.Join, nil, `echo "$KPSSH_A"`, `echo "$KPSSH_A$KPSSH_B"`), want: []string{"9 error", "10 error"}},
		"a typing error":     {text: strict + `echo "$KPSSH_NODENAME"` + "\n", want: []string{"2 warning"}},
		"in a sum":           {text: strict + `echo $((KPSSH_N+1))` + "\n", want: []string{"2 warning"}},

		"in the warrant":           {text: warranted(t, script.Join, declared, `echo "$KPSSH_VAR_dns$KPSSH_X"`)},
		"always sent":              {text: warranted(t, script.Join, declared, `echo "$KPSSH_NODE_NAME$KPSSH_TAINTS"`)},
		"set by the script":        {text: warranted(t, script.Join, declared, `KPSSH_Y=1; echo "$KPSSH_Y"`)},
		"a list of names":          {text: warranted(t, script.Join, declared, `echo "${!KPSSH_VAR_@}"`)},
		"vars without a warrant":   {text: strict + `echo "$KPSSH_VAR_dns"` + "\n"},
		"secrets without one":      {text: strict + `echo "$KPSSH_SECRET_A"` + "\n"},
		"always sent, without one": {text: strict + `echo "$KPSSH_NODE_NAME"` + "\n"},
		"another variable":         {text: strict + `echo "$OTHER" "$KPSSH_"` + "\n"},
	})
}

func TestUnusedParameter(t *testing.T) {
	check(t, "unused-parameter", map[string]example{
		"a parameter":       {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, "true"), want: []string{"8 note"}},
		"a secret":          {text: warranted(t, script.Join, []string{"KPSSH_VAR_a optional type ip", "KPSSH_SECRET_A optional secret type text"}, `echo "$KPSSH_VAR_a"`), want: []string{"9 warning"}},
		"in a comment only": {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, "true # $KPSSH_VAR_dns"), want: []string{"8 note"}},
		"a longer name":     {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, `echo "$KPSSH_VAR_dns2"`), want: []string{"8 note"}},

		"expanded":              {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, `echo "$KPSSH_VAR_dns"`)},
		"named in a text":       {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, `envsubst '$KPSSH_VAR_dns' <x`)},
		"by a part of its name": {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, `for n in "${!KPSSH_VAR_@}"; do :; done`)},
		"by env":                {text: warranted(t, script.Join, []string{"KPSSH_VAR_dns optional type ip"}, `env | grep ^KPSSH_VAR`)},
		"always sent":           {text: warranted(t, script.Join, []string{"KPSSH_NODE_NAME required type dns1123"}, "true")},
		"no warrant":            {text: strict},
	})
}

func TestAbsentParameter(t *testing.T) {
	check(t, "absent-parameter", map[string]example{
		"demanded in leave":       {phase: script.Leave, text: strict + `: "${KPSSH_NODE_NAME:?}"` + "\n", want: []string{"2 error"}},
		"a var demanded in leave": {phase: script.Leave, text: strict + `: "${KPSSH_VAR_x?}"` + "\n", want: []string{"2 error"}},
		"a var used in leave":     {phase: script.Leave, text: strict + `echo "$KPSSH_VAR_x"` + "\n", want: []string{"2 warning"}},
		"empty in leave":          {phase: script.Leave, text: strict + `kubectl drain "$KPSSH_NODE_NAME"` + "\n", want: []string{"2 warning"}},
		"empty in uninstall":      {phase: script.Uninstall, text: strict + `echo "$KPSSH_CLUSTER_ENDPOINT"` + "\n", want: []string{"2 warning"}},
		"a secret in uninstall":   {phase: script.Uninstall, text: strict + `echo "$KPSSH_SECRET_x"` + "\n", want: []string{"2 warning"}},
		"the token in install":    {phase: script.Install, text: strict + `: "${KPSSH_BOOTSTRAP_TOKEN:?}"` + "\n", want: []string{"2 error"}},
		"required in leave":       {phase: script.Leave, text: warranted(t, script.Leave, []string{"KPSSH_VAR_x required type ip"}, `true`), want: []string{"7 error"}},
		"once for each name":      {phase: script.Leave, text: strict + "echo \"$KPSSH_TAINTS\"\necho \"$KPSSH_TAINTS\"\n", want: []string{"2 warning"}},

		"the addresses":              {phase: script.Leave, text: strict + `: "${KPSSH_HOST_ADDRESS:?}" "${KPSSH_NODE_ADDRESS:?}"` + "\n"},
		"with a default":             {phase: script.Leave, text: strict + `echo "${KPSSH_VAR_x:-}" "${KPSSH_NODE_NAME:-x}"` + "\n"},
		"whether it is set":          {phase: script.Leave, text: strict + `echo "${KPSSH_NODE_NAME:+x}"` + "\n"},
		"asked for":                  {phase: script.Leave, text: strict + `if [ -n "$KPSSH_NODE_NAME" ] || [[ -n $KPSSH_TAINTS ]]; then :; fi` + "\n"},
		"set by the script":          {phase: script.Leave, text: strict + `KPSSH_VAR_x=1; echo "$KPSSH_VAR_x"` + "\n"},
		"a var in uninstall":         {phase: script.Uninstall, text: strict + `echo "$KPSSH_VAR_x"` + "\n"},
		"the token in join":          {phase: script.Join, text: strict + `: "${KPSSH_BOOTSTRAP_TOKEN:?}" "${KPSSH_VAR_x:?}"` + "\n"},
		"the node's name in install": {phase: script.Install, text: strict + `: "${KPSSH_NODE_NAME:?}"` + "\n"},
		"optional in leave":          {phase: script.Leave, text: warranted(t, script.Leave, []string{"KPSSH_VAR_x optional type ip"}, `true`)},
		"addresses required":         {phase: script.Leave, text: warranted(t, script.Leave, []string{"KPSSH_HOST_ADDRESS required type ip"}, `true`)},
	})
}

func TestClusterNotPinned(t *testing.T) {
	sum := "sha256 " + strings.Repeat("0", 64)
	pinned := []string{"KPSSH_CLUSTER_ENDPOINT optional enum https://a:6443", "KPSSH_CLUSTER_CA_B64 optional " + sum}
	uses := lines(strict + `echo "$KPSSH_CLUSTER_ENDPOINT" "$KPSSH_CLUSTER_CA_B64"`)
	check(t, "cluster-not-pinned", map[string]example{
		"no warrant":        {text: uses, want: []string{"2 note"}},
		"a warrant without": {text: warranted(t, script.Install, nil, "true"), phase: script.Install, want: []string{"1 note"}},
		"the endpoint only": {text: warranted(t, script.Join, pinned[:1], uses), want: []string{"1 note"}},
		"by a type only":    {text: warranted(t, script.Join, []string{"KPSSH_CLUSTER_ENDPOINT optional type url", pinned[1]}, uses), want: []string{"1 note"}},

		"both":                 {text: warranted(t, script.Join, pinned, uses)},
		"leave":                {text: warranted(t, script.Leave, nil, "true"), phase: script.Leave},
		"no warrant, not used": {text: strict + "ls\n"},
	})
}

func TestSecretsOfTheWarrant(t *testing.T) {
	secret := []string{"KPSSH_VAR_key optional secret type text"}
	check(t, "trace-secrets", map[string]example{
		"declared secret":           {phase: script.Install, text: warranted(t, script.Install, secret, "set -x", `echo "$KPSSH_VAR_key"`), want: []string{"10 error"}},
		"declared secret, not used": {phase: script.Install, text: warranted(t, script.Install, secret, "set -x"), want: []string{"10 note"}},
		"declared, not secret":      {phase: script.Install, text: warranted(t, script.Install, []string{"KPSSH_VAR_key optional type text"}, "set -x", `echo "$KPSSH_VAR_key"`)},
	})
}

func TestIgnoring(t *testing.T) {
	const note = " # hostwarrant:ignore "
	tests := map[string]struct {
		text    string
		want    []string
		ignored []string
	}{
		"on the same line":      {strict + "eval x" + note + "eval it is a constant\n", nil, []string{"2 eval it is a constant"}},
		"on the line above":     {strict + note + "eval it is a constant\neval x\n", nil, []string{"3 eval it is a constant"}},
		"two rules":             {strict + note + "eval constant\ncp a /tmp/x; eval x" + note + "fixed-tmp-name root's own\n", nil, []string{"3 fixed-tmp-name root's own", "3 eval constant"}},
		"two lines above":       {strict + note + "eval it is a constant\n\neval x\n", []string{"2 warning ignore-comment", "4 warning eval"}, nil},
		"behind the line above": {strict + "ls" + note + "eval it is a constant\neval x\n", []string{"2 warning ignore-comment", "3 warning eval"}, nil},
		"another rule":          {strict + "eval x" + note + "held-stdout it is quiet\n", []string{"2 warning eval", "2 warning ignore-comment"}, nil},
		"no reason":             {strict + "eval x" + note + "eval\n", []string{"2 warning eval", "2 warning ignore-comment"}, nil},
		"no rule":               {strict + "eval x" + note + "\n", []string{"2 warning eval", "2 warning ignore-comment"}, nil},
		"an unknown rule":       {strict + "eval x" + note + "evil it is a constant\n", []string{"2 warning eval", "2 warning ignore-comment"}, nil},
		"what is fixed":         {strict + "ls" + note + "parse-error it works for me\n", []string{"2 warning ignore-comment"}, nil},
		"nothing":               {strict + "ls" + note + "eval it is a constant\n", []string{"2 warning ignore-comment"}, nil},
		"itself":                {strict + "ls" + note + "ignore-comment why not\n", []string{"2 warning ignore-comment"}, nil},
		"a word like it":        {strict + "ls # hostwarrant:ignored eval x\n", nil, nil},
		"in a text":             {strict + "eval '# hostwarrant:ignore eval no comment'\n", []string{"2 warning eval"}, nil},
		"a template is never":   {strict + "ls {{" + note + "unsignable I know\n", []string{"2 error unsignable", "2 warning ignore-comment"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := lint.Check([]byte(tt.text), script.Leave)
			got := strings.Join(found(r.Findings, ""), "; ")
			if want := strings.Join(tt.want, "; "); got != want {
				t.Errorf("findings %q, want %q", got, want)
			}
			var ignored []string
			for _, i := range r.Ignored {
				ignored = append(ignored, strings.Join(strings.Fields(found([]lint.Finding{i.Finding}, "")[0]+" "+i.Reason), " "))
			}
			if got, want := strings.ReplaceAll(strings.Join(ignored, "; "), " warning", ""), strings.Join(tt.ignored, "; "); got != want {
				t.Errorf("ignored %q, want %q", got, want)
			}
		})
	}
}
