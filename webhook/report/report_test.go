package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
)

// writer is a Writer over controller-runtime's fake client, with these kinds installed.
func writer(installed ...schema.GroupVersionKind) *Writer {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range installed {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).Build()
	return &Writer{Client: api, Reader: api, Mapper: mapper}
}

func verdicts(good, refused, excused int) []rejudge.Verdict {
	var all []rejudge.Verdict
	add := func(n int, word string, d decision.Decision, excused bool) {
		for i := range n {
			d.Name = fmt.Sprint(word, i)
			all = append(all, rejudge.Verdict{
				Key: rejudge.Key{Kind: "SSHHost", Namespace: "pool", Name: d.Name}, APIVersion: "karpenter.dklesev.github.io/v1beta1", UID: d.Name,
				Decision: d, Excused: excused,
			})
		}
	}
	deny := decision.Errorf(decision.RawRefused, "raw\n%s", strings.Repeat("x", 500)).Denied("SSHHost", "")
	add(good, "good", decision.Admit("SSHHost", "", "fine"), false)
	add(refused, "bad", deny, false)
	add(excused, "old", deny, true)
	return all
}

func read(t *testing.T, w *Writer, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	if err := w.Reader.Get(t.Context(), client.ObjectKey{Name: Name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestTheReportIsOfAKindThatIsInstalled(t *testing.T) {
	open, group := kinds()[0], kinds()[1]
	for name, c := range map[string]struct {
		installed []schema.GroupVersionKind
		want      *schema.GroupVersionKind
	}{
		"neither": {nil, nil}, "OpenReports": {[]schema.GroupVersionKind{open}, &open},
		"the working group's": {[]schema.GroupVersionKind{group}, &group}, "both": {[]schema.GroupVersionKind{group, open}, &open},
	} {
		t.Run(name, func(t *testing.T) {
			w := writer(c.installed...)
			wrote, err := w.Write(t.Context(), verdicts(1, 1, 1), time.Unix(1, 0))
			if err != nil || wrote != (c.want != nil) {
				t.Fatalf("%v, %v", wrote, err)
			}
			if c.want == nil {
				return
			}
			results, _, err := unstructured.NestedSlice(read(t, w, *c.want).Object, "results")
			if err != nil || len(results) != 2 {
				t.Errorf("%d results, %v", len(results), err)
			}
		})
	}
}

func TestTheReportIsBoundedAndWrittenOnlyWhenItChanges(t *testing.T) {
	gvk := kinds()[0]
	w := writer(gvk)
	for _, c := range []struct {
		name                   string
		good, refused, excused int
		wrote                  bool
		results                int
	}{
		{"as many as fit", 3, MaxResults, 0, true, MaxResults},
		{"the same a minute later", 3, MaxResults, 0, false, MaxResults},
		{"two more than fit", 3, MaxResults, 2, true, MaxResults + 1},
		{"another that does not fit", 3, MaxResults, 3, true, MaxResults + 1},
		{"all is well", 3, 0, 0, true, 0},
	} {
		wrote, err := w.Write(t.Context(), verdicts(c.good, c.refused, c.excused), time.Unix(60, 0))
		if err != nil || wrote != c.wrote {
			t.Fatalf("%s: wrote %v, %v", c.name, wrote, err)
		}
		u := read(t, w, gvk)
		results, _, resultsErr := unstructured.NestedSlice(u.Object, "results")
		summary, _, summaryErr := unstructured.NestedMap(u.Object, "summary")
		if resultsErr != nil || summaryErr != nil {
			t.Fatal(resultsErr, summaryErr)
		}
		if len(results) != c.results || summary["fail"] != int64(c.refused) || summary["warn"] != int64(c.excused) || summary["pass"] != int64(c.good) {
			t.Fatalf("%s: %d results, %v", c.name, len(results), summary)
		}
		for _, r := range results {
			o, ok := r.(map[string]any)
			if message := fmt.Sprint(o["message"]); !ok || len(message) > maxText || strings.Contains(message, "\n") {
				t.Fatalf("a message of %d bytes", len(message))
			}
		}
	}
}
