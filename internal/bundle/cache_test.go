package bundle_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

func carrier() *fragment.Object {
	return &fragment.Object{
		Meta: object.Meta{
			APIVersion: "v", Kind: "k", Namespace: "pool", Name: "n", UID: "1", Labels: map[string]string{"a": "b", "ab": ""},
			Annotations: map[string]string{fragment.AnnotationSignature: "x", "kubescape.io/managed-by": "User", "note": "x"},
		},
		Spec: []byte(`{"a":1}`),
	}
}

// A verdict is of one content under one policy: whatever is judged is in the key.
func TestKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*fragment.Object)
		same   bool
	}{
		"as it is":                       {func(*fragment.Object) {}, true},
		"another UID":                    {func(o *fragment.Object) { o.UID = "2" }, true},
		"an annotation that is no one's": {func(o *fragment.Object) { o.Annotations["note"] = "y" }, true},
		"another apiVersion":             {func(o *fragment.Object) { o.APIVersion = "w" }, false},
		"another kind":                   {func(o *fragment.Object) { o.Kind = "l" }, false},
		"another namespace":              {func(o *fragment.Object) { o.Namespace = "web" }, false},
		"another name":                   {func(o *fragment.Object) { o.Name = "m" }, false},
		"a letter from here to there":    {func(o *fragment.Object) { o.Kind, o.APIVersion = "", "vk" }, false},
		"another label":                  {func(o *fragment.Object) { o.Labels["c"] = "d" }, false},
		"a label's letter moved":         {func(o *fragment.Object) { o.Labels = map[string]string{"ab": "", "a": "b", "": ""} }, false},
		"another signature":              {func(o *fragment.Object) { o.Annotations[fragment.AnnotationSignature] = "y" }, false},
		"a certificate":                  {func(o *fragment.Object) { o.Annotations[fragment.AnnotationCertificate] = "y" }, false},
		"somebody else manages it":       {func(o *fragment.Object) { delete(o.Annotations, "kubescape.io/managed-by") }, false},
		"another spec":                   {func(o *fragment.Object) { o.Spec = []byte(`{"a":2}`) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := carrier()
			tt.change(o)
			if got := bundle.KeyOf(o, "p") == bundle.KeyOf(carrier(), "p"); got != tt.same {
				t.Errorf("same key: %v", got)
			}
		})
	}
	if bundle.KeyOf(carrier(), "p") == bundle.KeyOf(carrier(), "q") {
		t.Error("two policies share a verdict")
	}
}

// counted verifies a carrier by its name, and counts how often.
type counted struct {
	*bundle.Verdicts
	calls int
}

func (c *counted) ask(name int) bundle.Verified {
	o := carrier()
	o.Name = fmt.Sprint(name)
	return c.Of(bundle.KeyOf(o, "p"), func() bundle.Verified {
		c.calls++
		return bundle.Verified{Refusal: decision.Errorf(decision.Unsigned, "%d", name)}
	})
}

func TestNothingIsVerifiedTwice(t *testing.T) {
	const limit = 100
	c := &counted{Verdicts: bundle.NewVerdicts(limit)}
	for range 5 {
		for name := range limit {
			if got := c.ask(name); got.Refusal.What != fmt.Sprint(name) {
				t.Errorf("%d: %v", name, got.Refusal)
			}
		}
	}
	if c.calls != limit {
		t.Errorf("%d were verified %d times", limit, c.calls)
	}
	// What is asked for stays, whatever else comes by.
	for other := range 50 * limit {
		c.ask(limit + other)
		c.ask(other % 10)
	}
	if want := 51 * limit; c.calls != want {
		t.Errorf("verified %d times, want %d", c.calls, want)
	}
	// And what is not, is forgotten: memory is bounded.
	c.ask(50)
	if want := 51*limit + 1; c.calls != want {
		t.Errorf("verified %d times, want %d", c.calls, want)
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	v := bundle.NewVerdicts(10)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 200 {
				o := carrier()
				o.Name = fmt.Sprint(i % 30)
				got := v.Of(bundle.KeyOf(o, "p"), func() bundle.Verified { return bundle.Verified{Fragment: &fragment.Fragment{Name: o.Name}} })
				if got.Fragment.Name != o.Name {
					t.Errorf("%s has the verdict of %s", o.Name, got.Fragment.Name)
				}
			}
		})
	}
	all.Wait()
}
