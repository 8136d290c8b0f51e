//go:build linux

package product

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// Namespace is where the product lives.
const Namespace = "hostwarrant-system"

// placeholder stands for the programs' address in the out-of-cluster overlay.
const placeholder = "192.0.2.1"

// Options say what to install.
type Options struct {
	Lab          *lab.Lab
	ControlPlane *lab.ControlPlane
	// Bin holds the three programs; empty means bin/ of the checkout.
	Bin string
	// UpstreamCRDs holds the CRDs of karpenter-provider-ssh; empty means those generated from api/.
	UpstreamCRDs string
	// Roots is the anchor's roots file, ClusterID its cluster-id.
	Roots     []byte
	ClusterID string
	// HostNamespaces are made, and the relay may read their Secrets.
	HostNamespaces []string
}

// Product is an installed product.
type Product struct {
	o      Options
	addr   netip.Addr
	anchor string
}

// Install applies CRDs, manifests and the anchor. No program runs yet, so the API server refuses
// everything guarded, the trust policy too: start the webhook before applying that.
func Install(ctx context.Context, o Options) (*Product, error) {
	addr, err := o.ControlPlane.ReachableAddr()
	if err != nil {
		return nil, err
	}
	if o.Bin == "" {
		o.Bin = filepath.Join(o.Lab.Root(), "bin")
	}
	if o.UpstreamCRDs == "" {
		o.UpstreamCRDs = filepath.Join(o.Lab.Root(), "e2e", "testdata", "crds")
	}
	p := &Product{o: o, addr: addr, anchor: filepath.Join(o.Lab.StateDir(), "anchor")}
	for _, step := range []func(context.Context) error{p.applyCRDs, p.applyManifests, p.applyHostNamespaces, p.writeAnchor} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Addr is the address at which the API server reaches our programs.
func (p *Product) Addr() netip.Addr { return p.addr }

// AnchorDir is the directory that the programs are given.
func (p *Product) AnchorDir() string { return p.anchor }

// Bin is the path of one of our programs.
func (p *Product) Bin(name string) string { return filepath.Join(p.o.Bin, name) }

func (p *Product) applyCRDs(ctx context.Context) error {
	if err := p.apply(ctx, nil, "-f", p.o.UpstreamCRDs); err != nil {
		return err
	}
	return p.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
}

func (p *Product) applyManifests(ctx context.Context) error {
	overlay := filepath.Join(p.o.Lab.Root(), "manifests", "overlays", "out-of-cluster")
	rendered, err := p.o.ControlPlane.Kubectl(ctx, nil, "kustomize", overlay)
	if err != nil {
		return fmt.Errorf("rendering the manifests: %w", err)
	}
	if rendered.Code != 0 {
		return fmt.Errorf("rendering the manifests: %s", rendered.Stderr)
	}
	text := strings.ReplaceAll(rendered.Stdout, placeholder, p.addr.String())
	if err := p.apply(ctx, strings.NewReader(text), "-f", "-"); err != nil {
		return err
	}
	return p.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
}

func (p *Product) applyHostNamespaces(ctx context.Context) error {
	component := filepath.Join(p.o.Lab.Root(), "manifests", "components", "host-namespace")
	for _, ns := range p.o.HostNamespaces {
		namespace := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns)
		if err := p.apply(ctx, strings.NewReader(namespace), "-f", "-"); err != nil {
			return err
		}
		if err := p.apply(ctx, nil, "--namespace", ns, "-k", component); err != nil {
			return err
		}
	}
	return nil
}

// writeAnchor puts the anchor where pods would have it mounted, and into its ConfigMap.
func (p *Product) writeAnchor(ctx context.Context) error {
	if err := os.MkdirAll(p.anchor, 0o755); err != nil {
		return fmt.Errorf("writing the anchor: %w", err)
	}
	for name, content := range map[string][]byte{"roots": p.o.Roots, "cluster-id": []byte(p.o.ClusterID + "\n")} {
		if err := os.WriteFile(filepath.Join(p.anchor, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the anchor: %w", err)
		}
	}
	made, err := p.o.ControlPlane.Kubectl(ctx, nil, "-n", Namespace, "create", "configmap", "hostwarrant-anchor", "--from-file", p.anchor, "--dry-run=client", "-o", "yaml")
	if err != nil || made.Code != 0 {
		return fmt.Errorf("writing the anchor: %v %s", err, made.Stderr)
	}
	// Immutable, as the shipped example is: nothing else is taken.
	return p.apply(ctx, strings.NewReader("immutable: true\n"+made.Stdout), "-f", "-")
}

func (p *Product) apply(ctx context.Context, stdin io.Reader, args ...string) error {
	return p.kubectl(ctx, stdin, append([]string{"apply", "--server-side", "--force-conflicts"}, args...)...)
}

func (p *Product) kubectl(ctx context.Context, stdin io.Reader, args ...string) error {
	r, err := p.o.ControlPlane.Kubectl(ctx, stdin, args...)
	if err != nil {
		return err
	}
	if r.Code != 0 {
		return fmt.Errorf("kubectl %s: exit %d: %s", strings.Join(args, " "), r.Code, r.Stderr)
	}
	return nil
}
