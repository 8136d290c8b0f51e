//go:build linux

package product

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// startLimit bounds the start of one program on a busy machine.
const startLimit = 60 * time.Second

// Program is one of ours, running outside a pod.
type Program struct {
	*lab.Program
	// Health is the base URL of /healthz, /readyz and the like, Metrics that of /metrics.
	Health, Metrics string
}

// StartWebhook starts the admission webhook; it is alive, but not ready before there is a policy.
func (p *Product) StartWebhook(ctx context.Context) (*Program, error) {
	return p.start(ctx, "hostwarrant-webhook", "hostwarrant-webhook", "serve", "--address="+net.JoinHostPort(p.addr.String(), "9443"))
}

// StartWebhookAt starts another replica of the webhook, which answers at the given address; its
// log has the given name, and flags are added to the usual ones.
func (p *Product) StartWebhookAt(ctx context.Context, name, address string, flags ...string) (*Program, error) {
	args := append([]string{"serve", "--address=" + address}, flags...)
	return p.startAs(ctx, name, "hostwarrant-webhook", "hostwarrant-webhook", args...)
}

// StartController starts the part that keeps the webhook configurations' caBundle current.
func (p *Product) StartController(ctx context.Context) (*Program, error) {
	return p.start(ctx, "hostwarrant-controller", "hostwarrant-webhook", "control")
}

// StartControllerWith is StartController with flags added to the usual ones.
func (p *Product) StartControllerWith(ctx context.Context, flags ...string) (*Program, error) {
	return p.start(ctx, "hostwarrant-controller", "hostwarrant-webhook", append([]string{"control"}, flags...)...)
}

// StartRelay starts the relay.
func (p *Product) StartRelay(ctx context.Context) (*Program, error) {
	return p.start(ctx, "hostwarrant-relay", "hostwarrant-relay")
}

// StartMinter starts the minter, under its own account.
func (p *Product) StartMinter(ctx context.Context) (*Program, error) {
	return p.start(ctx, "hostwarrant-minter", "hostwarrant-relay", "mint")
}

// StartMinterAs is StartMinter for one more of them, whose log has that name. Flags are added to the usual ones.
func (p *Product) StartMinterAs(ctx context.Context, name string, flags ...string) (*Program, error) {
	return p.startAs(ctx, name, "hostwarrant-minter", "hostwarrant-relay", append([]string{"mint"}, flags...)...)
}

// StartRelayAs starts another relay, whose log has the given name, with flags added to the usual ones.
func (p *Product) StartRelayAs(ctx context.Context, name string, flags ...string) (*Program, error) {
	return p.startAs(ctx, name, "hostwarrant-relay", "hostwarrant-relay", flags...)
}

// start runs a program with the token of its ServiceAccount and waits until it is alive.
func (p *Product) start(ctx context.Context, account, program string, args ...string) (*Program, error) {
	return p.startAs(ctx, account, account, program, args...)
}

// startAs is start for a program whose log has another name. Flags given replace the usual ones.
func (p *Product) startAs(ctx context.Context, name, account, program string, args ...string) (*Program, error) {
	kubeconfig, err := p.o.ControlPlane.ServiceAccountKubeconfig(ctx, Namespace, account)
	if err != nil {
		return nil, err
	}
	health, metrics, err := p.freePorts()
	if err != nil {
		return nil, err
	}
	usual := []string{"--kubeconfig=" + kubeconfig, "--anchor=" + p.anchor, "--health-address=" + health, "--metrics-address=" + metrics}
	args = slices.Concat(args[:verbs(args)], usual, args[verbs(args):]) // of a flag given twice the last counts
	started, err := p.o.Lab.StartProgram(name, exec.Command(p.Bin(program), args...))
	if err != nil {
		return nil, err
	}
	running := &Program{Program: started, Health: "http://" + health, Metrics: "http://" + metrics}
	if err := running.Wait(ctx, "/healthz"); err != nil {
		return nil, err
	}
	return running, nil
}

// verbs is how many leading arguments are no flags.
func verbs(args []string) int {
	n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if n < 0 {
		return len(args)
	}
	return n
}

// freePorts picks two free ports of the lab's address.
func (p *Product) freePorts() (health, metrics string, err error) {
	health, err = FreeAddress(p.addr)
	if err != nil {
		return "", "", err
	}
	for metrics == "" || metrics == health {
		if metrics, err = FreeAddress(p.addr); err != nil {
			return "", "", err
		}
	}
	return health, metrics, nil
}

// FreeAddress finds a port of the address that nobody listens on, below the range from which the
// kernel picks for outgoing connections, so that none of those takes it before the program does.
func FreeAddress(addr netip.Addr) (string, error) {
	for range 100 {
		at := netip.AddrPortFrom(addr, uint16(10000+rand.IntN(20000))).String() //nolint:gosec // a port, not a secret
		listener, err := net.Listen("tcp", at)
		if err == nil {
			return at, listener.Close()
		}
	}
	return "", fmt.Errorf("finding a free port on %s: none of 100 tried", addr)
}

// Wait polls a health endpoint until it answers 200.
func (r *Program) Wait(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = r.probe(ctx, path); last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.Done():
			return fmt.Errorf("%s has ended; the end of its log:\n%s", r.Name, r.Tail(20))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s of %s: %w; last answer: %v; the end of its log:\n%s", path, r.Name, ctx.Err(), last, r.Tail(20))
		}
	}
}

func (r *Program) probe(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Health+path, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d", answer.StatusCode)
	}
	return errors.Join(err, answer.Body.Close())
}

// Programs are those that Install leaves to be started. Minter is nil where nothing joins.
type Programs struct{ Webhook, Controller, Relay, Minter *Program }

// StartAll starts the programs in the order in which they need one another, applies the trust
// policy as soon as the webhook can judge it, and returns when all are ready.
func (p *Product) StartAll(ctx context.Context, policyFile string) (Programs, error) {
	var all Programs
	var err error
	if all.Webhook, err = p.StartWebhook(ctx); err != nil {
		return all, err
	}
	if all.Controller, err = p.StartController(ctx); err != nil {
		return all, err
	}
	if err := p.ApplyPolicy(ctx, policyFile); err != nil {
		return all, err
	}
	if all.Relay, err = p.StartRelay(ctx); err != nil {
		return all, err
	}
	for _, program := range []*Program{all.Webhook, all.Controller, all.Relay} {
		if err := program.Wait(ctx, "/readyz"); err != nil {
			return all, err
		}
	}
	return all, nil
}

// ApplyPolicy applies a signed TrustPolicy. Until the controller has written the CA of the serving
// certificate into the webhook configurations the API server cannot call the webhook, so it tries
// again for a while; a refusal by the webhook itself is an answer, but for that its caches are not filled.
func (p *Product) ApplyPolicy(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := p.apply(ctx, nil, "-f", file)
		if err == nil || strings.Contains(err.Error(), "denied the request") && !strings.Contains(err.Error(), "SnapshotUnavailable") {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("applying the trust policy: %w; last answer: %v", ctx.Err(), err)
		}
	}
}
