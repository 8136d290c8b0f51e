package rejudge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// Kind is a kind that is judged again.
type Kind struct {
	schema.GroupKind
	// Prefer is the version that is read where it is served.
	Prefer string
	// Page is how many objects are read at once.
	Page int64
}

// Kinds are those that are judged again, in the order of a scan: node classes and runs are judged by
// profiles and hosts. Join profiles come in smaller pages: one may have 1.5 MiB, etcd's limit, so that
// a page of them is at most 48 MiB.
func Kinds() []Kind {
	kpssh := func(kind string, page int64) Kind {
		return Kind{schema.GroupKind{Group: object.GroupKPSSH, Kind: kind}, "v1beta1", page}
	}
	return []Kind{
		kpssh(object.KindJoinProfile, 32), kpssh(object.KindHost, 200), kpssh(object.KindNodeClass, 200),
		{schema.GroupKind{Group: object.GroupHostwarrant, Kind: object.KindHostRun}, "v1alpha1", 200},
	}
}

// ErrNotServed says that the cluster does not know a kind, and so holds none.
var ErrNotServed = errors.New("the kind is not served")

// Page is a part of a list.
type Page struct {
	Items []json.RawMessage
	// Next continues the list; "" at its end.
	Next string
}

// Source reads stored objects as the API server sends them.
type Source interface {
	// List returns ErrNotServed where there is no such kind.
	List(ctx context.Context, k Kind, next string) (Page, error)
	// Get returns nil where there is no such object.
	Get(ctx context.Context, k Kind, namespace, name string) (json.RawMessage, error)
}

// API is the Source that asks an API server. Make one with NewAPI.
type API struct {
	client rest.Interface
	mapper meta.RESTMapper
}

// NewAPI asks the API server of config, as fast as its QPS allows.
func NewAPI(config *rest.Config, client *http.Client, mapper meta.RESTMapper) (*API, error) {
	c := rest.CopyConfig(config)
	c.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c.AcceptContentTypes, c.ContentType = "application/json", "application/json"
	asked, err := rest.UnversionedRESTClientForConfigAndClient(c, client)
	if err != nil {
		return nil, err
	}
	return &API{client: asked, mapper: mapper}, nil
}

// path is where a kind is served.
func (a *API) path(k Kind, namespace string) (string, error) {
	mapping, err := snapshot.Served(a.mapper, k.GroupKind, k.Prefer)
	if err != nil {
		return "", err
	}
	if mapping == nil {
		return "", ErrNotServed
	}
	at := path.Join("/apis", mapping.Resource.Group, mapping.Resource.Version)
	if namespace != "" {
		at = path.Join(at, "namespaces", namespace)
	}
	return path.Join(at, mapping.Resource.Resource), nil
}

// List implements Source.
func (a *API) List(ctx context.Context, k Kind, next string) (Page, error) {
	at, err := a.path(k, "")
	if err != nil {
		return Page{}, err
	}
	request := a.client.Get().AbsPath(at).Param("limit", strconv.FormatInt(k.Page, 10))
	if next != "" {
		request = request.Param("continue", next)
	}
	raw, err := request.Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return Page{}, ErrNotServed
	}
	if err != nil {
		return Page{}, fmt.Errorf("listing objects of kind %s: %w", k.Kind, err)
	}
	var list struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return Page{}, fmt.Errorf("listing objects of kind %s: %v", k.Kind, err)
	}
	return Page{Items: list.Items, Next: list.Metadata.Continue}, nil
}

// Get implements Source.
func (a *API) Get(ctx context.Context, k Kind, namespace, name string) (json.RawMessage, error) {
	at, err := a.path(k, namespace)
	if errors.Is(err, ErrNotServed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	raw, err := a.client.Get().AbsPath(at, name).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return raw, err
}
