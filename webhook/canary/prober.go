package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

const (
	// serverName is a name that every API server's certificate has.
	serverName = "kubernetes.default.svc"
	// tokenLife is how long a token of the canary's account is good: the least that the API server gives.
	tokenLife = 10 * time.Minute
	// probeLimit bounds one canary: the webhook's own timeoutSeconds, twice.
	probeLimit = 10 * time.Second
	// maxBody bounds what is read of an answer.
	maxBody = 64 << 10
)

// Served is a kind in a version that the cluster serves.
type Served struct {
	Kind
	Version, Resource string
}

// Outcome is what came of a canary.
type Outcome struct {
	Served
	Endpoint string
	Result   Result
	What     string
}

// Prober sends canaries.
type Prober struct {
	Config    *rest.Config
	Client    client.Client
	Reader    client.Reader // not a cache
	Discovery discovery.DiscoveryInterface
	// Namespace is the product's: the account's, and that of namespaced canaries.
	Namespace string
	Now       func() time.Time

	token   string
	renewAt time.Time
}

// Probe sends a canary of every served kind and version to every API server, and deletes what was
// stored. The error says that nothing could be found out.
func (p *Prober) Probe(ctx context.Context) ([]Outcome, error) {
	kinds, err := p.served()
	if err != nil {
		return nil, err
	}
	endpoints, err := p.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	token, err := p.account(ctx)
	if err != nil {
		return nil, err
	}
	var all []Outcome
	kinds, elsewhere, err := p.homes(ctx, kinds)
	if err != nil {
		return nil, err
	}
	all = append(all, elsewhere...)
	for _, endpoint := range endpoints {
		sender, err := p.sender(endpoint, token)
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			all = append(all, p.one(ctx, sender, endpoint, k))
		}
	}
	return all, nil
}

// served finds the versions in which guarded kinds are served. A kind that is not served needs no guard.
func (p *Prober) served() ([]Served, error) {
	groups, err := p.Discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("asking what is served: %w", err)
	}
	var all []Served
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			kinds := Kinds()
			if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Group == group.Name }) {
				continue
			}
			list, err := p.Discovery.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil {
				return nil, fmt.Errorf("asking what is served of %s: %w", version.GroupVersion, err)
			}
			for _, k := range kinds {
				i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
					return k.Group == group.Name && r.Kind == k.Name && !bytes.Contains([]byte(r.Name), []byte("/"))
				})
				if i >= 0 {
					all = append(all, Served{k, version.Version, list.APIResources[i].Name})
				}
			}
		}
	}
	return all, nil
}

// endpoints are the addresses of all API servers: those that the cluster itself publishes.
func (p *Prober) endpoints(ctx context.Context) ([]string, error) {
	var slicesOf discoveryv1.EndpointSliceList
	err := p.Reader.List(ctx, &slicesOf, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"})
	if err != nil {
		return nil, fmt.Errorf("finding the API servers: %w", err)
	}
	var all []string
	for _, s := range slicesOf.Items {
		for _, port := range s.Ports {
			for _, e := range s.Endpoints {
				for _, address := range e.Addresses {
					if port.Port != nil {
						all = append(all, net.JoinHostPort(address, strconv.Itoa(int(*port.Port))))
					}
				}
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return nil, errors.New("finding the API servers: the EndpointSlice of default/kubernetes names none")
	}
	return all, nil
}

// account gives a token of the canary's account.
func (p *Prober) account(ctx context.Context) (string, error) {
	if p.token != "" && p.Now().Before(p.renewAt) {
		return p.token, nil
	}
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: Account}}
	if err := p.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s: %w", Account, err)
	}
	p.token, p.renewAt = request.Status.Token, p.Now().Add(tokenLife/2)
	return p.token, nil
}

// sender talks to one API server as the canary's account: nothing of our own credentials is in it.
func (p *Prober) sender(endpoint, token string) (*http.Client, error) {
	c := &rest.Config{
		Host: "https://" + endpoint, BearerToken: token, Timeout: probeLimit,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.Config.CAData, CAFile: p.Config.CAFile, ServerName: serverName},
	}
	return rest.HTTPClientFor(c)
}

// one sends one canary, and deletes it if it was stored.
func (p *Prober) one(ctx context.Context, sender *http.Client, endpoint string, k Served) Outcome {
	o := Outcome{Served: k, Endpoint: endpoint}
	nonce := newNonce()
	name := Prefix + nonce
	code, body, err := p.send(ctx, sender, endpoint, k, name)
	if err != nil {
		o.Result, o.What = Unreachable, decision.OneLine(err.Error(), maxAnswer)
		return o
	}
	o.Result, o.What = read(k.Kind, name, nonce, code, body)
	if o.Result != NotAsked {
		return o
	}
	stored, err := p.remove(ctx, k, name)
	if stored {
		o.Result, o.What = Stored, "a canary was stored although it was a dry run"
	}
	if err != nil {
		o.What += fmt.Sprintf("; delete %s yourself: %v", name, err)
	}
	return o
}

func (p *Prober) send(ctx context.Context, sender *http.Client, endpoint string, k Served, name string) (int, []byte, error) {
	text, err := json.Marshal(k.body(k.Version, p.Namespace, name))
	if err != nil {
		return 0, nil, err
	}
	at := url.URL{Scheme: "https", Host: endpoint, Path: path.Join("/apis", k.Group, k.Version), RawQuery: "dryRun=All&fieldManager=" + Account}
	if k.Namespaced {
		at.Path = path.Join(at.Path, "namespaces", p.Namespace)
	}
	at.Path = path.Join(at.Path, k.Resource)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer, err := sender.Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	return answer.StatusCode, body, errors.Join(err, answer.Body.Close())
}
