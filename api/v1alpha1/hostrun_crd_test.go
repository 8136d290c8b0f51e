package v1alpha1_test

import (
	"maps"
	"strings"
	"testing"
)

// hostRuns answers what the API server finds wrong with a spec that takes the place of old.
func hostRuns(t *testing.T) func(spec, old map[string]any) string {
	t.Helper()
	faults := crdFaults(t, "hostwarrant.dev_hostruns.yaml")
	object := func(spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostRun", "metadata": map[string]any{"name": "r"}, "spec": spec}
	}
	return func(spec, old map[string]any) string {
		if old == nil {
			return faults(object(spec), nil)
		}
		return faults(object(spec), object(old))
	}
}

// TestHostRunSaysForEverWhatWasJudged: a run that could be changed after it was judged, or sent, would be another run.
func TestHostRunSaysForEverWhatWasJudged(t *testing.T) {
	faults := hostRuns(t)
	ref := func(name string) any { return map[string]any{"name": name} }
	run := map[string]any{
		"hostRef": ref("a"), "profileRef": ref("p"), "phase": "join", "nodeName": "n", "secretRef": ref("s"),
		"vars": map[string]any{"x": "1"}, "deadlineSeconds": int64(60), "ttlSecondsAfterFinished": int64(1), "cancel": true,
	}
	with := func(field string, value any) map[string]any {
		m := maps.Clone(run)
		if m[field] = value; value == nil {
			delete(m, field)
		}
		return m
	}
	if got := faults(run, nil); got != "" {
		t.Fatalf("refused: %s", got)
	}
	for name, c := range map[string]struct {
		spec map[string]any
		says string
	}{
		"nothing":                    {run, ""},
		"another time to live":       {with("ttlSecondsAfterFinished", int64(2)), ""},
		"no time to live":            {with("ttlSecondsAfterFinished", nil), ""},
		"another host":               {with("hostRef", ref("b")), "hostRef, profileRef and phase are immutable"},
		"another profile":            {with("profileRef", ref("q")), "hostRef, profileRef and phase are immutable"},
		"another phase":              {with("phase", "leave"), "hostRef, profileRef and phase are immutable"},
		"another node name":          {with("nodeName", "m"), "nodeName is immutable"},
		"another Secret":             {with("secretRef", ref("t")), "secretRef is immutable"},
		"no Secret":                  {with("secretRef", nil), "secretRef is immutable"},
		"another value":              {with("vars", map[string]any{"x": "2"}), "vars is immutable"},
		"one more var":               {with("vars", map[string]any{"x": "1", "y": "2"}), "vars is immutable"},
		"no vars":                    {with("vars", nil), "vars is immutable"},
		"another deadline":           {with("deadlineSeconds", int64(61)), "deadlineSeconds is immutable"},
		"no cancel":                  {with("cancel", nil), "cancel cannot be taken back"},
		"cancel false":               {with("cancel", false), "cancel cannot be taken back"},
		"a join without a node name": {with("nodeName", nil), "phase join needs nodeName"},
		"a phase that nobody has":    {with("phase", "outcome"), "Unsupported value"},
		"a var that is no name":      {with("vars", map[string]any{"x;id": "1"}), "a key is a letter"},
		"a var of two lines":         {with("vars", map[string]any{"x": "1\nBASH_ENV=y"}), "should match"},
	} {
		t.Run(name, func(t *testing.T) {
			got := faults(c.spec, run)
			if c.says == "" && got != "" || !strings.Contains(got, c.says) {
				t.Errorf("faults %q; want one that says %q", got, c.says)
			}
		})
	}
	for _, field := range []string{"hostRef", "profileRef", "secretRef"} {
		for name, fits := range map[string]bool{"a-1.b": true, "default/a": false, "a\x1b[2J": false, "A": false, "a..b": false, "-a": false, "a\nb": false, "\u0430": false} {
			if got := faults(with(field, ref(name)), nil); (got == "") != fits || !fits && !strings.Contains(got, "should match") {
				t.Errorf("%s %q: faults %q", field, name, got)
			}
		}
	}
	first := with("secretRef", nil)
	delete(first, "vars")
	for field, says := range map[string]string{"secretRef": "secretRef is immutable", "vars": "vars is immutable"} {
		later := maps.Clone(first)
		later[field] = run[field]
		if got := faults(later, first); !strings.Contains(got, says) {
			t.Errorf("%s that comes later: faults %q", field, got)
		}
	}
}

// A probe runs no script, so that nothing of it may look as if one had been judged.
func TestHostRunOfPhaseProbeNamesAHostAlone(t *testing.T) {
	faults := hostRuns(t)
	ref := func(name string) any { return map[string]any{"name": name} }
	probe := map[string]any{"hostRef": ref("a"), "phase": "probe"}
	const more, less = "phase probe runs no script", "phases install, join, leave and uninstall need profileRef"
	with := func(field string, value any) map[string]any {
		m := maps.Clone(probe)
		m[field] = value
		return m
	}
	for name, c := range map[string]struct {
		spec, old map[string]any
		says      string
	}{
		"a host alone":                   {probe, nil, ""},
		"a deadline":                     {with("deadlineSeconds", int64(60)), nil, ""},
		"a profile":                      {with("profileRef", ref("p")), nil, more},
		"a node name":                    {with("nodeName", "n"), nil, more},
		"vars":                           {with("vars", map[string]any{"x": "1"}), nil, more},
		"a Secret":                       {with("secretRef", ref("s")), nil, more},
		"install without a profile":      {with("phase", "install"), nil, less},
		"leave without a profile":        {with("phase", "leave"), nil, less},
		"uninstall without a profile":    {with("phase", "uninstall"), nil, less},
		"a profile that comes later":     {with("profileRef", ref("p")), probe, "hostRef, profileRef and phase are immutable"},
		"a profile that is taken away":   {with("phase", "leave"), map[string]any{"hostRef": ref("a"), "phase": "leave", "profileRef": ref("p")}, "hostRef, profileRef and phase are immutable"},
		"a probe that becomes something": {map[string]any{"hostRef": ref("a"), "phase": "leave", "profileRef": ref("p")}, probe, "hostRef, profileRef and phase are immutable"},
	} {
		if got := faults(c.spec, c.old); c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: faults %q; want one that says %q", name, got, c.says)
		}
	}
}
