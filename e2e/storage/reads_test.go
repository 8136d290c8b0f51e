//go:build linux

package storage

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
)

// nothing is what a stripped spec looks like.
const nothing = `{"architectures":null,"capabilities":null,"egress":null,"endpoints":null,"execs":null,"identifiedCallStacks":null,"imageID":"","imageTag":"",` +
	`"ingress":null,"opens":null,"rulePolicies":null,"seccompProfile":{"spec":{"defaultAction":""}},"syscalls":null}`

func names(items []unstructured.Unstructured) []string {
	var all []string
	for _, item := range items {
		all = append(all, item.GetName())
	}
	slices.Sort(all)
	return all
}

func TestListIgnoresSelectorsAndStripsSpecs(t *testing.T) {
	w := newWorld(t)
	sent := object(t, "one", "wanted", `{"execs":[{"path":"/bin/id"}]}`)
	sent.SetAnnotations(map[string]string{"note": "kept"})
	w.create(t, sent)
	w.create(t, object(t, "two", "other", `{"execs":[{"path":"/bin/sh"}]}`))
	for what, options := range map[string]metav1.ListOptions{
		"nothing": {}, "a label": {LabelSelector: "is=wanted"}, "a field": {FieldSelector: "metadata.name=one"}, "another namespace's name": {FieldSelector: "metadata.namespace=default"},
	} {
		list, err := w.profiles().List(t.Context(), options)
		must(t, err)
		if got := names(list.Items); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("selecting %s: %q", what, got)
		}
		for _, item := range list.Items {
			if got := spec(t, &item); got != nothing {
				t.Errorf("listed %s has the spec %s", item.GetName(), got)
			}
			if item.GetName() == "one" && (item.GetAnnotations()["note"] != "kept" || item.GetLabels()["is"] != "wanted" || item.GetUID() == "") {
				t.Errorf("metadata %v", item.Object["metadata"])
			}
		}
	}
	if got := spec(t, w.get(t, "one")); got != strings.Replace(nothing, `"execs":null`, `"execs":[{"path":"/bin/id"}]`, 1) {
		t.Errorf("Get: %s", got)
	}
	all, err := w.client.Resource(resource()).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if got := names(all.Items); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("of all namespaces: %q", got)
	}
}

func TestWatchBeginsNowIgnoresSelectorsAndStripsSpecs(t *testing.T) {
	w := newWorld(t)
	list, err := w.profiles().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	w.create(t, object(t, "before", "wanted", `{}`))
	events, err := w.profiles().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: "is=wanted"})
	must(t, err)
	defer events.Stop()
	w.create(t, object(t, "after", "other", `{"execs":[{"path":"/bin/id"}]}`))
	must(t, w.profiles().Delete(t.Context(), "after", metav1.DeleteOptions{}))
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		select {
		case got := <-events.ResultChan():
			o, ok := got.Object.(*unstructured.Unstructured)
			if !ok || got.Type != want || o.GetName() != "after" || spec(t, o) != nothing {
				t.Errorf("%s %v; want %s of after, without its spec", got.Type, got.Object, want)
			}
		case <-time.After(waitLimit):
			t.Fatalf("no event %s", want)
		}
	}
}

// client-go's informers ask for a stream that this server does not have, and fall back.
func TestInformersWork(t *testing.T) {
	w := newWorld(t)
	w.create(t, object(t, "before", "any", `{}`))
	informers := dynamicinformer.NewDynamicSharedInformerFactory(w.client, 0)
	lister := informers.ForResource(resource()).Lister()
	informers.Start(t.Context().Done())
	informers.WaitForCacheSync(t.Context().Done())
	if _, err := lister.ByNamespace(w.namespace).Get("before"); err != nil {
		t.Error(err)
	}
	eventually(t, "the informer's watch", func() bool {
		n, err := w.Count("watch")
		must(t, err)
		return n > 0
	})
	// What is written between an informer's list and its watch is not told: a second write is.
	eventually(t, "an object written later", func() bool {
		_, err := w.profiles().Apply(t.Context(), "later", object(t, "later", time.Now().Format("150405.000"), `{}`), metav1.ApplyOptions{FieldManager: "test", Force: true})
		must(t, err)
		_, err = lister.ByNamespace(w.namespace).Get("later")
		return err == nil
	})
}

func TestRequestsAreCountedAndGetsFailAsOftenAsWanted(t *testing.T) {
	w := newWorld(t)
	w.create(t, object(t, "one", "any", `{}`))
	w.create(t, object(t, "two", "any", `{}`))
	must(t, w.FailGets("one", 2))
	_, err := w.profiles().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	w.get(t, "two")
	for range 2 {
		_, err := w.profiles().Get(t.Context(), "one", metav1.GetOptions{})
		if err == nil || !strings.Contains(err.Error(), "a test wants the Get of one to fail") {
			t.Errorf("a Get that is to fail: %v", err)
		}
	}
	w.get(t, "one")
	for verb, want := range map[string]int{"create": 2, "list": 1, "get": 4, "delete": 0} {
		if got, err := w.Count(verb); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", verb, got, err, want)
		}
	}
	of, err := w.Requests(func(r Request) bool { return r.Verb == "get" && r.Name == "two" })
	must(t, err)
	if want := []Request{{Verb: "get", Namespace: w.namespace, Name: "two", User: "lab-admin"}}; !slices.Equal(of, want) {
		t.Errorf("%+v; want %+v", of, want)
	}
}
