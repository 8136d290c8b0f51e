package script_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

func TestCheckAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"an ordinary script":   "#!/bin/bash\nset -euo pipefail\necho hello\n",
		"one brace":            "f() { echo \"${HOME}\"; }\n",
		"closing braces":       "a=${b:-${c}}\n",
		"braces apart":         "printf '%s%s' '{' '{'\n",
		"other tongues":        "# größe ✓\n",
		"no final newline":     "true",
		"CR":                   "true\r\n",
		"as long as may be":    strings.Repeat("a", script.MaxCharacters),
		"as long, in ä":        strings.Repeat("ä", script.MaxCharacters),
		"the replacement rune": "# \ufffd\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := script.Check([]byte(text)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	tests := map[string]struct {
		text  string
		want  decision.Reason
		where string
	}{
		"a template":            {"#!/bin/bash\n  echo {{ .Vars.x }}\n", decision.TemplateFound, "line 2, column 8"},
		"a template in comment": {"# {{", decision.TemplateFound, "line 1, column 3"},
		"a template after ä":    {"# ää {{", decision.TemplateFound, "line 1, column 6"},
		"three braces":          {"{{{", decision.TemplateFound, "line 1, column 1"},
		"NUL":                   {"true\nec\x00ho\n", decision.Malformed, "NUL byte at line 2, column 3"},
		"NUL at the end":        {"true\n\x00", decision.Malformed, "line 2, column 1"},
		"not UTF-8":             {"true\n# \xff\n", decision.Malformed, "not UTF-8 at line 2, column 3"},
		"cut UTF-8":             {"true\n\xc3", decision.Malformed, "line 2, column 1"},
		"too long":              {strings.Repeat("a", script.MaxCharacters+1), decision.TooLarge, "262145"},
		"too long, in ä":        {strings.Repeat("ä", script.MaxCharacters+1), decision.TooLarge, "262145"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := script.Check([]byte(tt.text))
			if err == nil {
				t.Fatal("accepted")
			}
			e := decision.From(err)
			if e.Reason != tt.want || !strings.Contains(e.What, tt.where) {
				t.Errorf("got %s: %s, want %s with %q", e.Reason, e.What, tt.want, tt.where)
			}
		})
	}
}

func TestHasWarrantLine(t *testing.T) {
	for text, want := range map[string]bool{
		"#!/bin/bash\n#warrant: v1\n":   true,
		"#warrant: v1\n":                true,
		"true\n#warrant:":               true,
		"true\n":                        false,
		"true\n # warrant: v1\n":        false,
		"echo x#warrant: v1\n":          false,
		"#!/bin/bash\n#Warrant: v1\n":   false,
		"#!/bin/bash\n#warrantless: \n": false,
	} {
		if got := script.HasWarrantLine([]byte(text)); got != want {
			t.Errorf("HasWarrantLine(%q) = %v", text, got)
		}
	}
}

func TestPhases(t *testing.T) {
	for _, p := range script.Phases() {
		if !p.Known() {
			t.Errorf("%s is not known", p)
		}
	}
	for _, p := range []script.Phase{"", "Join", "probe", "join "} {
		if p.Known() {
			t.Errorf("%q is known", p)
		}
	}
}

func TestNewlineChange(t *testing.T) {
	const signed = "#!/bin/bash\necho a\n\necho b\n"
	tests := map[string]struct {
		signed, got, want string
	}{
		"lost":               {signed, strings.TrimSuffix(signed, "\n"), "the final newline was lost"},
		"added":              {signed, signed + "\n", "a final newline was added"},
		"two added":          {signed, signed + "\n\n", "line ends or final newlines were changed"},
		"two added to none":  {"true", "true\n\n", "final newlines were added"},
		"CRLF":               {signed, strings.ReplaceAll(signed, "\n", "\r\n"), "line ends became CRLF"},
		"CRLF, final lost":   {signed, strings.TrimSuffix(strings.ReplaceAll(signed, "\n", "\r\n"), "\r\n"), "line ends or final newlines were changed"},
		"CRLF, final added":  {strings.TrimSuffix(signed, "\n"), strings.ReplaceAll(signed, "\n", "\r\n"), "line ends became CRLF and a final newline was added"},
		"CRLF lost":          {"a\r\nb\r\n", "a\nb\n", "CRLF line ends became LF"},
		"unchanged":          {signed, signed, ""},
		"a byte":             {signed, strings.Replace(signed, "a", "b", 1), ""},
		"an inner blank row": {signed, strings.Replace(signed, "\n\n", "\n", 1), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := script.NewlineChange([]byte(tt.got), func(b []byte) bool { return bytes.Equal(b, []byte(tt.signed)) })
			if got != tt.want {
				t.Errorf("NewlineChange = %q, want %q", got, tt.want)
			}
		})
	}
}
