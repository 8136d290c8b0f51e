//go:build linux

package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Verdict is how one write ended.
type Verdict string

// The verdicts.
const (
	Admitted   Verdict = "admitted"
	Refused    Verdict = "refused"    // a webhook of ours was asked and said no
	Connection Verdict = "connection" // the API server got no answer of a webhook of ours
	Other      Verdict = "other"
)

// Judge tells from the API server's answer how a write ended.
func Judge(err error) Verdict {
	switch {
	case err == nil:
		return Admitted
	case strings.Contains(err.Error(), `hostwarrant.dev" denied the request: `):
		return Refused
	case strings.Contains(err.Error(), "failed calling webhook"):
		return Connection
	default:
		return Other
	}
}

// Tally counts how writes ended, and keeps what was said where it was no plain yes.
type Tally struct {
	mu    sync.Mutex
	count map[Verdict]int
	said  map[Verdict]map[string]int
	took  []time.Duration
}

// Add counts one write.
func (t *Tally) Add(err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count, t.said = map[Verdict]int{}, map[Verdict]map[string]int{}
	}
	v := Judge(err)
	t.count[v]++
	t.took = append(t.took, took)
	if err == nil {
		return
	}
	if t.said[v] == nil {
		t.said[v] = map[string]int{}
	}
	if len(t.said[v]) < 20 { // enough to look at
		t.said[v][err.Error()]++
	}
}

// Count is how many ended so.
func (t *Tally) Count(v Verdict) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count[v]
}

// Total is how many there were.
func (t *Tally) Total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.took)
}

// Said are some of the messages of those that ended so.
func (t *Tally) Said(v Verdict) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for text := range t.said[v] {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// Percentile of the times they took.
func (t *Tally) Percentile(p float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.took))
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// String is one line.
func (t *Tally) String() string {
	return fmt.Sprintf("%d writes: %d admitted, %d refused by verdict, %d without an answer, %d other; p50 %v, p99 %v",
		t.Total(), t.Count(Admitted), t.Count(Refused), t.Count(Connection), t.Count(Other),
		t.Percentile(0.5).Round(100*time.Microsecond), t.Percentile(0.99).Round(100*time.Microsecond))
}

// Writer is one client of the API server.
type Writer struct{ client dynamic.Interface }

// NewWriter makes a client that does not throttle itself.
func NewWriter(config *rest.Config) (*Writer, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &Writer{client: client}, nil
}

// Client is the client itself.
func (w *Writer) Client() dynamic.Interface { return w.client }

// Profiles are the SSHJoinProfiles.
func Profiles() schema.GroupVersionResource { return guarded("sshjoinprofiles") }

// Hosts are the SSHHosts.
func Hosts() schema.GroupVersionResource { return guarded("sshhosts") }

// NodeClasses are the SSHNodeClasses.
func NodeClasses() schema.GroupVersionResource { return guarded("sshnodeclasses") }

func guarded(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.dklesev.github.io", Version: "v1beta1", Resource: resource}
}

// Apply is a server-side apply of the JSON of an object.
func (w *Writer) Apply(ctx context.Context, r schema.GroupVersionResource, raw []byte) error {
	o, err := decode(raw)
	if err != nil {
		return err
	}
	_, err = w.client.Resource(r).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "harness", Force: true})
	return err
}

// DryCreate is a dry-run create of the JSON of an object.
func (w *Writer) DryCreate(ctx context.Context, r schema.GroupVersionResource, raw []byte) error {
	o, err := decode(raw)
	if err != nil {
		return err
	}
	_, err = w.client.Resource(r).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	return o, nil
}

// Spread runs n numbered pieces of work on so many goroutines and returns when all are done.
func Spread(n, workers int, work func(i int)) {
	numbers := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range numbers {
				work(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	all.Wait()
}
