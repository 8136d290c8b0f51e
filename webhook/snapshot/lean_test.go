package snapshot

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

func valueOf(t *testing.T, u *unstructured.Unstructured) any {
	t.Helper()
	slim, err := Slim(u)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := slim.(*kept)
	if !ok {
		t.Fatalf("slimmed to a %T", slim)
	}
	return k.value
}

func warrantedProfile(t *testing.T, name, filler string) *unstructured.Unstructured {
	t.Helper()
	u := profileOf(name, filler)
	scripts := map[string]any{}
	for _, phase := range script.Phases() {
		w := &warrant.Warrant{Profile: name, Phase: phase, Serial: 7, NotAfter: 2_000_000_000, Targets: []warrant.Target{{Kind: warrant.TargetClass, Value: "bm"}}}
		text, err := warrant.Set([]byte("#!/bin/sh\n# "+filler+"\n"), w)
		if err != nil {
			t.Fatal(err)
		}
		scripts[string(phase)] = string(text)
	}
	if err := unstructured.SetNestedMap(u.Object, scripts, "spec", "scripts"); err != nil {
		t.Fatal(err)
	}
	return u
}

func run(status map[string]any) *unstructured.Unstructured {
	u := thing("HostRun", "pool", "r", map[string]any{
		"hostRef": map[string]any{"name": "a"}, "profileRef": map[string]any{"name": "tls"}, "phase": "join", "nodeName": "pool-1", "vars": map[string]any{"zone": "a"},
	})
	u.Object["status"] = status
	return u
}

// One object of 256 KiB of annotations, as kubectl apply and anybody else may write without being
// judged, must not cost every replica as much for as long as it is stored.
func TestAnnotationsCostNoMemory(t *testing.T) {
	const objects, bound = 50, 2 << 20
	filler := strings.Repeat("x", 256<<10)
	for name, made := range map[string]func(i int) *unstructured.Unstructured{
		"SSHJoinProfile": func(i int) *unstructured.Unstructured {
			return warrantedProfile(t, fmt.Sprint("p-", i), filler[:64<<10])
		},
		"SSHHost": func(int) *unstructured.Unstructured {
			return thing("SSHHost", "pool", "a", map[string]any{"address": "10.0.0.1"})
		},
		"SSHNodeClass": func(int) *unstructured.Unstructured {
			return thing("SSHNodeClass", "", "bm", map[string]any{"joinProfileRef": map[string]any{"name": "tls"}})
		},
		"HostRun": func(int) *unstructured.Unstructured { return run(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var all []any
			before := heap()
			for i := range objects {
				u := made(i)
				u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": filler})
				u.SetFinalizers([]string{"example.com/" + filler})
				all = append(all, valueOf(t, u))
			}
			took := int64(heap()) - int64(before)
			t.Logf("%d objects take %d KiB", len(all), took>>10)
			if took > bound {
				t.Errorf("%d objects take %d bytes; want no more than %d", objects, took, bound)
			}
			runtime.KeepAlive(all)
		})
	}
}

func TestWhatRulesReadOfAStoredObjectIsKept(t *testing.T) {
	if h, ok := valueOf(t, labelled(map[string]string{object.HostClassLabel: "bm", "zone": "a"})).(*object.Host); !ok || h.Class() != "bm" || h.Labels["zone"] != "a" {
		t.Errorf("host %+v", h)
	}
	if f, ok := valueOf(t, warrantedProfile(t, "tls", "")).(*verify.ProfileFacts); !ok || f.Name != "tls" || f.Warrants[script.Join].Serial != 7 || !f.Signed {
		t.Errorf("profile %+v", f)
	}
	done := map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": "True"}}}
	if r, ok := valueOf(t, run(nil)).(*object.HostRun); !ok || r.Vars["zone"] != "a" || r.NodeName != "pool-1" {
		t.Errorf("run %+v", r)
	}
	if r, ok := valueOf(t, run(done)).(*object.HostRun); !ok || r.Vars != nil || !r.Finished || r.NodeName != "pool-1" {
		t.Errorf("a run that is over: %+v", r)
	}
}

func labelled(labels map[string]string) *unstructured.Unstructured {
	u := thing("SSHHost", "pool", "a", map[string]any{"address": "10.0.0.1"})
	u.SetLabels(labels)
	return u
}

func TestAHostOfMoreLabelsThanAnybodySelectsByIsNotKept(t *testing.T) {
	const each = 63
	for n, keeps := range map[int]bool{maxLabels / each: true, maxLabels/each + 1: false} {
		labels := map[string]string{}
		for i := range n {
			labels[fmt.Sprintf("%05d", i)] = strings.Repeat("v", each-5)
		}
		h, ok := valueOf(t, labelled(labels)).(*object.Host)
		if !ok || (h != nil) != keeps {
			t.Errorf("%d labels: kept %v", n, h != nil)
		}
	}
}
