package warrant_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

func refused(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	if e := decision.From(err); e.Reason != decision.WarrantMalformed || !strings.Contains(e.What, says) {
		t.Errorf("got %s: %s\nwant %s and %q", e.Reason, e.What, decision.WarrantMalformed, says)
	}
}

func TestABlockGivesItsWarrantBack(t *testing.T) {
	never := example()
	never.Phase, never.Never, never.NotAfter = "leave", true, 0
	least := &warrant.Warrant{Profile: "a", Phase: "install", Targets: []warrant.Target{{Kind: "any"}}}
	full := example()
	full.LeaveSHA256, full.UninstallSHA256 = strings.Repeat("a", 64), strings.Repeat("b", 64)
	full.Targets = append(full.Targets, warrant.Target{Kind: "cluster", Value: "prod-1"})
	full.Params = append(full.Params, warrant.Param{Name: "KPSSH_VAR_a", Matcher: warrant.Matcher{Kind: "enum", Value: "a b"}})
	for name, w := range map[string]*warrant.Warrant{"the example": example(), "leave for ever": never, "the least": least, "everything": full} {
		t.Run(name, func(t *testing.T) {
			if err := w.Check(); err != nil {
				t.Fatal(err)
			}
			got, err := warrant.Find(w.Block())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(w, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheckRefusesWhatAWarrantCannotSay(t *testing.T) {
	tests := map[string]struct {
		change func(*warrant.Warrant)
		says   string
	}{
		"nothing":                                    {func(w *warrant.Warrant) { *w = warrant.Warrant{} }, "line 2: "},
		"no target":                                  {func(w *warrant.Warrant) { w.Targets = nil }, "target"},
		"a negative serial":                          {func(w *warrant.Warrant) { w.Serial = -1 }, "number"},
		"a serial of 16 digits":                      {func(w *warrant.Warrant) { w.Serial = 1e15 }, "number"},
		"a negative time":                            {func(w *warrant.Warrant) { w.NotBefore = -1 }, "number"},
		"an end before the beginning":                {func(w *warrant.Warrant) { w.NotAfter = w.NotBefore }, "not later"},
		"no phase":                                   {func(w *warrant.Warrant) { w.Phase = "probe" }, "phase"},
		"join for ever":                              {func(w *warrant.Warrant) { w.Never = true }, "never"},
		"a negative timeout":                         {func(w *warrant.Warrant) { w.Timeout = -1 }, "number"},
		"a timeout of days":                          {func(w *warrant.Warrant) { w.Timeout = 86400 }, "timeout"},
		"a digest too short":                         {func(w *warrant.Warrant) { w.LeaveSHA256 = "ab" }, "64"},
		"an empty kind of target":                    {func(w *warrant.Warrant) { w.Targets[0] = warrant.Target{} }, "one space"},
		"any with a value":                           {func(w *warrant.Warrant) { w.Targets[0] = warrant.Target{Kind: "any", Value: "x"} }, "target"},
		"a name that writes a second line":           {func(w *warrant.Warrant) { w.Profile = "a\n#warrant: phase join" }, "serial"},
		"a class that writes a second target":        {func(w *warrant.Warrant) { w.Targets[0].Value = "a\n#warrant: target class b" }, "survive"},
		"a parameter that writes another":            {func(w *warrant.Warrant) { w.Params[0].Matcher.Value = "ip\n#warrant: param KPSSH_X optional type ip" }, "survive"},
		"a type that writes the end and a script":    {func(w *warrant.Warrant) { w.Params[2].Matcher.Value = "ip\n#warrant: end\nrm -rf /" }, "after the end"},
		"a pattern beyond the subset":                {func(w *warrant.Warrant) { w.Params[0].Matcher = warrant.Matcher{Kind: "re", Value: "a|b"} }, "literal"},
		"a kind with the matcher in it":              {func(w *warrant.Warrant) { w.Params[0].Matcher = warrant.Matcher{Kind: "enum a", Value: "b"} }, "survive"},
		"a name with required in it":                 {func(w *warrant.Warrant) { w.Params[0].Name = "KPSSH_A required" }, "KPSSH_A"},
		"more lines than may be":                     {func(w *warrant.Warrant) { w.Params = many(130) }, "128"},
		"a matcher that makes its parameter secret":  {func(w *warrant.Warrant) { w.Params[0].Matcher.Kind = "secret type" }, "survive"},
		"a template":                                 {func(w *warrant.Warrant) { w.Params[0].Matcher = warrant.Matcher{Kind: "enum", Value: "{{"} }, "{{"},
		"an enum with a value in a second line feed": {func(w *warrant.Warrant) { w.Params[0].Matcher = warrant.Matcher{Kind: "enum", Value: "a\n"} }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := example()
			tt.change(w)
			refused(t, w.Check(), tt.says)
			if out, err := warrant.Set([]byte("true\n"), w); err == nil || out != nil {
				t.Errorf("Set wrote it: %q", out)
			}
		})
	}
}

func many(n int) []warrant.Param {
	var list []warrant.Param
	for i := range n {
		list = append(list, warrant.Param{Name: "KPSSH_A" + strings.Repeat("x", i), Matcher: warrant.Matcher{Kind: "type", Value: "ip"}})
	}
	return list
}

func TestCheckLeavesOutWhatIsNotWritten(t *testing.T) {
	w := example()
	w.Phase, w.Never, w.HasNotBefore = "leave", true, false // NotAfter and NotBefore stay set
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}

func TestSet(t *testing.T) {
	block := string(example().Block())
	tests := map[string]struct{ from, want string }{
		"an empty script":                  {"", block},
		"a script without a #! line":       {"true\n", block + "true\n"},
		"a script with one":                {"#!/bin/bash\ntrue\n", "#!/bin/bash\n" + block + "true\n"},
		"a #! line and nothing":            {"#!/bin/bash\n", "#!/bin/bash\n" + block},
		"no final line feed":               {"#!/bin/bash\ntrue", "#!/bin/bash\n" + block + "true"},
		"an empty line first":              {"\ntrue\n", block + "\ntrue\n"},
		"CRLF below":                       {"#!/bin/bash\r\ntrue\r\n", "#!/bin/bash\r\n" + block + "true\r\n"},
		"the same block":                   {page, page},
		"another block":                    {strings.Replace(page, "serial 42", "serial 41", 1), page},
		"another block without a #! line":  {strings.TrimPrefix(page, "#!/usr/bin/env bash\n"), strings.TrimPrefix(page, "#!/usr/bin/env bash\n")},
		"other tongues below the block":    {"# größe\n", block + "# größe\n"},
		"words that only start like a key": {"#warrants\n", block + "#warrants\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := warrant.Set([]byte(tt.from), example())
			if err != nil || string(got) != tt.want {
				t.Errorf("%v\ngot  %q\nwant %q", err, got, tt.want)
			}
		})
	}
}

func TestSetAndStripRefuseABrokenBlock(t *testing.T) {
	for name, tt := range map[string]struct{ from, says string }{
		"a block that cannot be read": {strings.Replace(page, "serial 42", "serial 042", 1), "line 5: "},
		"a block in the wrong place":  {"true\n" + page, "line 3: "},
		"a second block":              {page + "#warrant: v1\n", "line 15: "},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := warrant.Set([]byte(tt.from), example())
			refused(t, err, tt.says)
			if out != nil {
				t.Errorf("Set wrote %q", out)
			}
			out, err = warrant.Strip([]byte(tt.from))
			refused(t, err, tt.says)
			if out != nil {
				t.Errorf("Strip wrote %q", out)
			}
		})
	}
}

func TestSetRefusesWhatFindWouldRefuse(t *testing.T) {
	for name, tt := range map[string]struct{ from, says string }{
		"a #! line without a line feed":     {"#!/bin/bash", "line 1: "},
		"a NUL below":                       {"true\x00\n", "line 13: holds a NUL byte"},
		"a #! line that is not the first":   {"#!/bin/bash\n#!/bin/sh\n", "#! line"},
		"nothing but the sign of a #! line": {"#!", "line 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := warrant.Set([]byte(tt.from), example())
			refused(t, err, tt.says)
			if out != nil {
				t.Errorf("Set wrote %q", out)
			}
		})
	}
}

func TestStripLeavesAScriptWithoutAWarrantAlone(t *testing.T) {
	for _, text := range []string{"", "true\n", "#!/bin/bash\ntrue", "a\x00b"} {
		if got, err := warrant.Strip([]byte(text)); err != nil || string(got) != text {
			t.Errorf("Strip(%q) = %q, %v", text, got, err)
		}
	}
}

func TestTimeouts(t *testing.T) {
	for phase, want := range map[script.Phase]int{"install": 600, "join": 300, "leave": 180, "uninstall": 600, "": 0, "probe": 0} {
		if got := warrant.DefaultTimeout(phase); got != want {
			t.Errorf("DefaultTimeout(%q) = %d, want %d", phase, got, want)
		}
		if got := (&warrant.Warrant{Phase: phase}).TimeoutSeconds(); got != want {
			t.Errorf("TimeoutSeconds of %q = %d, want %d", phase, got, want)
		}
		if got := (&warrant.Warrant{Phase: phase, Timeout: 7}).TimeoutSeconds(); got != 7 {
			t.Errorf("TimeoutSeconds of %q with 7 = %d", phase, got)
		}
	}
}

func TestWordsOfAFlagAreReadAlone(t *testing.T) {
	for words, want := range map[string]warrant.Target{"any": {Kind: "any"}, "class a": {Kind: "class", Value: "a"}} {
		if got, err := warrant.ParseTarget(words); err != nil || got != want || got.String() != words {
			t.Errorf("ParseTarget(%q) = %+v, %v", words, got, err)
		}
	}
	for _, words := range []string{"", "any ", "class", "class ", "class a\n", "class  a", "Any", "a"} {
		if got, err := warrant.ParseTarget(words); err == nil || got != (warrant.Target{}) {
			t.Errorf("ParseTarget(%q) = %+v, %v", words, got, err)
		}
	}
	const words = "KPSSH_A required secret re [ab]"
	if got, err := warrant.ParseParam(words); err != nil || got.String() != words {
		t.Errorf("ParseParam(%q) = %+v, %v", words, got, err)
	}
	for _, words := range []string{"", "KPSSH_A", "KPSSH_A required", "KPSSH_A required type ip\n", "KPSSH_A required enum a  b", "KPSSH_A required enum a\tb"} {
		if got, err := warrant.ParseParam(words); err == nil || got != (warrant.Param{}) {
			t.Errorf("ParseParam(%q) = %+v, %v", words, got, err)
		}
	}
}

// FuzzFind: whatever the bytes, Find answers, and what it accepts is written back
// byte for byte.
func FuzzFind(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c.Script)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := warrant.Find(text)
		if err != nil && (w != nil || decision.From(err).Reason != decision.WarrantMalformed) {
			t.Fatalf("Find = %v, %v", w, err)
		}
		if w == nil {
			return
		}
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(text, w.Block()) != 1 {
			t.Fatalf("the block is not in the script once:\n%s", w.Block())
		}
		bare, err := warrant.Strip(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := warrant.Set(bare, w); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("Set after Strip: %v\ngot  %q\nwant %q", err, again, text)
		}
		for _, p := range w.Params {
			p.Matcher.Accepts("a")
		}
	})
}
