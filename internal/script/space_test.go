package script_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

func TestSpaceChange(t *testing.T) {
	const signed = "#!/bin/bash\n\nif true; then\n  echo a\nfi\n"
	tests := map[string]struct{ signed, got, want string }{
		"a blank at a line end":      {signed, strings.Replace(signed, "then", "then ", 1), "spaces were added at the end of line 3"},
		"a tab on a blank line":      {signed, strings.Replace(signed, "\n\n", "\n\t\n", 1), "spaces were added at the end of line 2"},
		"indented":                   {signed, "  #!/bin/bash\n\n  if true; then\n    echo a\n  fi\n", "every line was indented by 2"},
		"indented, with a last line": {signed, "  #!/bin/bash\n\n  if true; then\n    echo a\n  fi\n  \n", "every line was indented by 2"},
		"its indentation lost":       {"    a\n\n    b\n", "a\n\nb\n", "every line lost its indentation of 4"},
		"indented on some lines":     {signed, strings.Replace(signed, "  echo", "   echo", 1), ""},
		"a letter":                   {signed, strings.Replace(signed, "echo a", "echo b", 1), ""},
		"a letter and a blank":       {signed, strings.Replace(signed, "echo a", "echo b ", 1), ""},
		"unchanged":                  {signed, signed, ""},
		"nothing at all":             {signed, "", ""},
		"a blank lost":               {"a \nb\n", "a\nb\n", ""},
		"deeper than anyone indents": {strings.Repeat(" ", 17) + "a\n", "a\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := script.SpaceChange([]byte(tt.got), func(b []byte) bool { return tt.got != tt.signed && bytes.Equal(b, []byte(tt.signed)) })
			if got != tt.want {
				t.Errorf("SpaceChange = %q, want %q", got, tt.want)
			}
		})
	}
}
