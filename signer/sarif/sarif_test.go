package sarif_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/signer/sarif"
)

func tool() sarif.Tool {
	return sarif.Tool{Name: "hostwarrant", Version: "1.2.3", Rules: []sarif.Rule{
		{ID: "eval", Level: sarif.Warning, Summary: "eval runs text as code"},
		{ID: "parse-error", Level: sarif.Error, Summary: "The shell cannot read the script"},
	}}
}

func results() []sarif.Result {
	return []sarif.Result{
		{Rule: "parse-error", Level: sarif.Error, Message: "no <fi>", Hint: "bash -n", Path: "a dir/join.sh", Region: sarif.Region{Line: 3, Col: 4, EndLine: 3, EndCol: 9}},
		{Rule: "eval", Level: sarif.Note, Message: "x", Path: "/abs/x.yaml"},
		{Rule: "eval", Level: sarif.Warning, Message: "y", Path: "./b/../c.sh", Region: sarif.Region{Line: 1}, Ignored: "a constant"},
	}
}

func TestGolden(t *testing.T) {
	got, err := sarif.Write(tool(), results()[:1])
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
  "version": "2.1.0",
  "runs": [
    {
      "tool": {
        "driver": {
          "name": "hostwarrant",
          "version": "1.2.3",
          "rules": [
            {
              "id": "eval",
              "shortDescription": {
                "text": "eval runs text as code"
              },
              "defaultConfiguration": {
                "level": "warning"
              }
            },
            {
              "id": "parse-error",
              "shortDescription": {
                "text": "The shell cannot read the script"
              },
              "defaultConfiguration": {
                "level": "error"
              }
            }
          ]
        }
      },
      "columnKind": "unicodeCodePoints",
      "results": [
        {
          "ruleId": "parse-error",
          "ruleIndex": 1,
          "level": "error",
          "message": {
            "text": "no <fi>; hint: bash -n"
          },
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "a%20dir/join.sh"
                },
                "region": {
                  "startLine": 3,
                  "startColumn": 4,
                  "endLine": 3,
                  "endColumn": 9
                }
              }
            }
          ]
        }
      ]
    }
  ]
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// What the standard requires of the members that are written, checked on the JSON itself.
func TestStructure(t *testing.T) {
	for name, rs := range map[string][]sarif.Result{"some": results(), "none": nil} {
		t.Run(name, func(t *testing.T) {
			raw, err := sarif.Write(tool(), rs)
			if err != nil {
				t.Fatal(err)
			}
			again, err := sarif.Write(tool(), rs)
			if err != nil || !bytes.Equal(raw, again) {
				t.Error("two writes differ")
			}
			var log map[string]any
			if err := json.Unmarshal(raw, &log); err != nil {
				t.Fatal(err)
			}
			if log["version"] != "2.1.0" { // 3.13.2
				t.Errorf("version %v", log["version"])
			}
			run := object(t, list(t, log, "runs")[0])
			driver := object(t, object(t, run["tool"])["driver"]) // 3.14.6, 3.18.2
			if driver["name"] == "" {                             // 3.19.8
				t.Error("no name")
			}
			rules := list(t, driver, "rules")
			all := list(t, run, "results") // 3.14.23: an empty list, not null
			if len(all) != len(rs) {
				t.Fatalf("%d results", len(all))
			}
			for _, r := range all {
				checkResult(t, object(t, r), rules)
			}
		})
	}
}

func checkResult(t *testing.T, r map[string]any, rules []any) {
	t.Helper()
	index, ok := r["ruleIndex"].(float64)
	if !ok || object(t, rules[int(index)])["id"] != r["ruleId"] { // 3.27.6
		t.Errorf("rule %v at %v", r["ruleId"], r["ruleIndex"])
	}
	if !slices.Contains([]any{"none", "note", "warning", "error"}, r["level"]) { // 3.27.10
		t.Errorf("level %v", r["level"])
	}
	if object(t, r["message"])["text"] == "" { // 3.11.8
		t.Error("no message")
	}
	place := object(t, object(t, list(t, r, "locations")[0])["physicalLocation"])
	uri, _ := object(t, place["artifactLocation"])["uri"].(string)
	if _, err := url.Parse(uri); err != nil || uri == "" || strings.Contains(uri, "/../") || strings.Contains(uri, `\`) { // 3.4.3, 3.10.1
		t.Errorf("uri %q: %v", uri, err)
	}
	if part, there := place["region"]; there {
		if start, ok := object(t, part)["startLine"].(float64); !ok || start < 1 { // 3.30.5
			t.Errorf("region %v", part)
		}
	}
	if _, there := r["suppressions"]; there {
		s := object(t, list(t, r, "suppressions")[0])
		if s["kind"] != "inSource" || s["justification"] != "a constant" { // 3.35.2
			t.Errorf("suppression %v", s)
		}
	}
}

func object(t *testing.T, v any) map[string]any {
	t.Helper()
	o, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v is no object", v)
	}
	return o
}

func list(t *testing.T, o map[string]any, key string) []any {
	t.Helper()
	l, ok := o[key].([]any)
	if !ok {
		t.Fatalf("%s is no list: %v", key, o[key])
	}
	return l
}

func TestRulesMustBeKnownAndApart(t *testing.T) {
	twice := tool()
	twice.Rules[1].ID = "eval"
	nameless := tool()
	nameless.Rules[0].ID = ""
	for name, tt := range map[string]struct {
		tool    sarif.Tool
		results []sarif.Result
		want    string
	}{
		"a result of no rule": {tool(), []sarif.Result{{Rule: "evil"}}, `no rule "evil"`},
		"two rules of a name": {twice, nil, `"eval" has no id of its own`},
		"a rule without one":  {nameless, nil, `"" has no id of its own`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := sarif.Write(tt.tool, tt.results)
			if err == nil || !strings.Contains(err.Error(), tt.want) || out != nil {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

func TestURI(t *testing.T) {
	for path, want := range map[string]string{
		"join.sh": "join.sh", "a/b.sh": "a/b.sh", "./a//b.sh": "a/b.sh", "../a.sh": "../a.sh", "a b/ü%.sh": "a%20b/%C3%BC%25.sh",
		"/abs/a.sh": "file:///abs/a.sh", "c:d.sh": "./c:d.sh", "a?b#c": "a%3Fb%23c", "-": "-",
	} {
		if got := sarif.URI(path); got != want {
			t.Errorf("URI(%q) = %q, want %q", path, got, want)
		}
	}
}
