package report

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
)

const (
	// Name is the report's.
	Name = "hostwarrant"
	// MaxResults is how many objects it lists: at most half a MiB, of the 1.5 that etcd takes.
	MaxResults = 500
	// digestAnnotation says what the report was made of, so that it is written only when that changes.
	digestAnnotation = "hostwarrant.dev/report-digest"
)

// Writer writes the report.
type Writer struct {
	Client client.Client
	// Reader must not be a cache.
	Reader client.Reader
	Mapper meta.RESTMapper
}

// kinds are those that may be installed; the first that is served is used.
func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "openreports.io", Version: "v1alpha1", Kind: "ClusterReport"},
		{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: "ClusterPolicyReport"},
	}
}

// Write writes the report where it changed, and reports whether it did.
func (w *Writer) Write(ctx context.Context, all []rejudge.Verdict, now time.Time) (bool, error) {
	gvk, ok, err := w.served()
	if err != nil || !ok {
		return false, err
	}
	body, digest, err := content(all, now)
	if err != nil {
		return false, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	live.SetName(Name)
	err = w.Reader.Get(ctx, client.ObjectKey{Name: Name}, live)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return false, err
	}
	if live.GetAnnotations()[digestAnnotation] == digest {
		return false, nil
	}
	next := live.DeepCopy()
	for field, value := range body {
		next.Object[field] = value
	}
	next.SetAnnotations(merged(live.GetAnnotations(), digestAnnotation, digest))
	next.SetLabels(merged(live.GetLabels(), "app.kubernetes.io/managed-by", Name))
	if missing {
		return true, w.Client.Create(ctx, next)
	}
	return true, w.Client.Update(ctx, next)
}

func merged(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func (w *Writer) served() (schema.GroupVersionKind, bool, error) {
	for _, gvk := range kinds() {
		_, err := w.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err == nil {
			return gvk, true, nil
		}
		if !meta.IsNoMatchError(err) {
			return gvk, false, err
		}
	}
	return schema.GroupVersionKind{}, false, nil
}

// content makes results and summary, and the digest of what they say.
func content(all []rejudge.Verdict, now time.Time) (map[string]any, string, error) {
	stamp := map[string]any{"seconds": now.Unix(), "nanos": int64(0)}
	results, said := []any{}, sha256.New()
	counts := map[string]int64{"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0}
	more := 0
	for _, v := range all {
		word := resultOf(v)
		counts[word]++
		if word == "pass" {
			continue
		}
		if len(results) == MaxResults {
			more++
			continue
		}
		results = append(results, result(v, word, stamp))
		fmt.Fprintf(said, "%s\n%s\n%s\n%s\n", v.Key, v.UID, word, v.Decision.Message())
	}
	if more > 0 {
		results = append(results, map[string]any{
			"source": Name, "policy": Name, "rule": "MoreNotListed", "result": "fail", "timestamp": stamp,
			"message": fmt.Sprintf("%d more objects do not verify and are not listed", more), "properties": map[string]any{"more": strconv.Itoa(more)},
		})
	}
	summary := map[string]any{}
	for word, n := range counts {
		summary[word] = n
	}
	counted, err := json.Marshal(counts)
	if err != nil {
		return nil, "", err
	}
	said.Write(counted)
	return map[string]any{"results": results, "summary": summary}, hex.EncodeToString(said.Sum(nil)), nil
}

func resultOf(v rejudge.Verdict) string {
	switch {
	case v.Refused():
		return "fail"
	case v.Excused:
		return "warn"
	default:
		return "pass"
	}
}

// maxText bounds the message of one result.
const maxText = 400

func result(v rejudge.Verdict, word string, stamp map[string]any) map[string]any {
	about := map[string]any{"apiVersion": v.APIVersion, "kind": v.Kind, "name": v.Name, "uid": v.UID}
	if v.Namespace != "" {
		about["namespace"] = v.Namespace
	}
	return map[string]any{
		"source": Name, "policy": Name, "rule": string(v.Decision.Reason), "result": word, "timestamp": stamp,
		"message": decision.OneLine(v.Decision.Message(), maxText), "resources": []any{about},
	}
}
