//go:build linux

package storage

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/kubescape"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
)

const (
	namespace = "kubescape"
	service   = "storage"
	// groupVersion is what it serves.
	groupVersion = kubescape.Profiles + "/v1beta1"
	// startLimit bounds the start of the program and its registration on a busy machine.
	startLimit = 60 * time.Second
)

//go:embed manifests.yaml
var manifests []byte

//go:embed apiservice.yaml
var apiService string

// Server is the running aggregated API server.
type Server struct {
	lab     *lab.Lab
	cp      *lab.ControlPlane
	dir     string // with its certificate, its requests and its faults
	at      netip.AddrPort
	command []string
	program *lab.Program
	// certificate is the bundle by which it is known.
	certificate []byte
}

// New installs the server and returns when the API server serves its kind. binary is what
// e2e/storage/server/build.sh made.
func New(ctx context.Context, l *lab.Lab, cp *lab.ControlPlane, binary string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	dir, err := os.MkdirTemp(l.StateDir(), "storage-")
	if err != nil {
		return nil, fmt.Errorf("starting the storage: %w", err)
	}
	s := &Server{lab: l, cp: cp, dir: dir}
	if err := os.Mkdir(s.faults(), 0o700); err != nil {
		return nil, fmt.Errorf("starting the storage: %w", err)
	}
	if err := s.kubectl(ctx, manifests, "apply", "--server-side", "-f", "-"); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, binary); err != nil {
		return nil, err
	}
	if err := s.Resume(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare settles how the program is called, the same after each stop.
func (s *Server) prepare(ctx context.Context, binary string) error {
	etcd, err := s.cp.Etcd()
	if err != nil {
		return err
	}
	kubeconfig, err := s.cp.ServiceAccountKubeconfig(ctx, namespace, service)
	if err != nil {
		return err
	}
	if s.at, err = s.expose(ctx); err != nil {
		return err
	}
	s.command = []string{
		binary, "--requests=" + s.requests(), "--faults=" + s.faults(),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--etcd-servers=" + etcd.URL, "--etcd-cafile=" + etcd.CA, "--etcd-certfile=" + etcd.Certificate, "--etcd-keyfile=" + etcd.Key,
		"--etcd-prefix=/" + filepath.Base(s.dir), // each server starts empty
		"--authorization-webhook-cache-authorized-ttl=1s", "--authorization-webhook-cache-unauthorized-ttl=1s",
		"--cert-dir=" + s.dir, "--bind-address=" + s.at.Addr().String(), fmt.Sprintf("--secure-port=%d", s.at.Port()),
	}
	return nil
}

// expose picks the program's address and points the Service there.
func (s *Server) expose(ctx context.Context) (netip.AddrPort, error) {
	addr, err := s.cp.ReachableAddr()
	if err != nil {
		return netip.AddrPort{}, err
	}
	free, err := product.FreeAddress(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	at, err := netip.ParseAddrPort(free)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return at, s.cp.ExposeWebhook(ctx, namespace, service, 443, at)
}

// Stop ends the program. What is stored stays; until Resume the API server answers 503 for its kind.
func (s *Server) Stop() error { return s.program.Stop() }

// Resume starts the program again and waits until the API server serves its kind.
func (s *Server) Resume(ctx context.Context) error {
	program, err := s.lab.StartProgram("storage", exec.Command(s.command[0], s.command[1:]...))
	if err != nil {
		return err
	}
	s.program = program
	if s.certificate, err = s.authority(ctx); err != nil {
		return fmt.Errorf("starting the storage: %w; the end of its log:\n%s", err, program.Tail(20))
	}
	registration := strings.Replace(apiService, "CA_BUNDLE", base64.StdEncoding.EncodeToString(s.certificate), 1)
	if err := s.kubectl(ctx, []byte(registration), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	if err := until(ctx, program, func() error { return s.served(ctx) }); err != nil {
		return fmt.Errorf("starting the storage: %w; the end of its log:\n%s", err, program.Tail(20))
	}
	return nil
}

// served is an error until the kind is answered for and discovered, which the controllers of the
// cluster need. The first comes before the second, and goes again while the program reads how the
// API server makes itself known.
func (s *Server) served(ctx context.Context) error {
	client := s.cp.Client().Discovery()
	if _, err := client.RESTClient().Get().AbsPath("/apis/" + groupVersion).DoRaw(ctx); err != nil {
		return err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		if list.GroupVersion == groupVersion {
			return nil
		}
	}
	return errors.New("its group is not discovered")
}

// authority waits for the certificate that the program makes for itself at its first start.
func (s *Server) authority(ctx context.Context) (ca []byte, err error) {
	err = until(ctx, s.program, func() error {
		var err error
		ca, err = os.ReadFile(filepath.Join(s.dir, "apiserver.crt"))
		return err
	})
	return ca, err
}

// until polls until the condition holds, the program has ended, or ctx has.
func until(ctx context.Context, program *lab.Program, holds func() error) error {
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-program.Done():
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %v", ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close takes the registration away and ends the program.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(
		s.kubectl(ctx, nil, "delete", "--ignore-not-found", "apiservice", "v1beta1."+kubescape.Profiles),
		s.Stop(),
	)
}

func (s *Server) kubectl(ctx context.Context, stdin []byte, args ...string) error {
	r, err := s.cp.Kubectl(ctx, bytes.NewReader(stdin), args...)
	if err != nil {
		return err
	}
	if r.Code != 0 {
		return fmt.Errorf("kubectl %s: exit %d: %s", args[0], r.Code, r.Stderr)
	}
	return nil
}
