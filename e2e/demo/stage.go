//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// stage starts the control plane and the hosts, makes the keys, installs the product and starts its
// programs.
func (s *story) stage(ctx context.Context) error {
	began := time.Now()
	fmt.Fprintln(s.out, "Starting etcd, kube-apiserver, two hosts with sshd and sudo, and hostwarrant ...")
	var err error
	if s.cluster, err = s.lab.StartControlPlane(ctx, lab.ControlPlaneOptions{}); err != nil {
		return err
	}
	if s.login, err = newLoginKey(); err != nil {
		return err
	}
	if err := s.makeStranger(ctx); err != nil {
		return err
	}
	if err := s.startHosts(ctx); err != nil {
		return err
	}
	if err := s.install(ctx); err != nil {
		return err
	}
	if err := s.writeObjects(ctx); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "... all up after %.0f s. Steps end with yes (done, admitted) or no (refused), and who said what.\n\n", time.Since(began).Seconds())
	return nil
}

// makeStranger makes the keys of somebody else, whom host-b trusts instead.
func (s *story) makeStranger(ctx context.Context) error {
	got, refused, err := s.command(ctx, "hostwarrant", "init", "stranger", "--cluster", "elsewhere")
	if err != nil || refused {
		return fmt.Errorf("making keys: %v %s", err, got.said)
	}
	return nil
}

func (s *story) startHosts(ctx context.Context) error {
	start := func(name, keys string) (*lab.Host, error) {
		signer, err := os.ReadFile(filepath.Join(s.dir, keys, "signer.pub"))
		if err != nil {
			return nil, err
		}
		return s.lab.StartHost(ctx, lab.HostOptions{
			Name: name, RelayKey: s.login.signer.PublicKey(), ShimConf: "warrant=optional\n",
			AllowedSigners: fmt.Sprintf("kpssh namespaces=%q %s\n", "kpssh", strings.TrimSpace(string(signer))),
			TrustFiles:     map[string]string{"revoked_keys": ""},
		})
	}
	var err error
	if s.hostA, err = start("host-a", "keys"); err != nil {
		return err
	}
	s.hostB, err = start("host-b", "stranger")
	return err
}

func (s *story) install(ctx context.Context) error {
	roots, err := os.ReadFile(filepath.Join(s.dir, "keys", "root.pub"))
	if err != nil {
		return err
	}
	s.product, err = product.Install(ctx, product.Options{Lab: s.lab, ControlPlane: s.cluster, Roots: roots, ClusterID: clusterID, HostNamespaces: []string{namespace}})
	if err != nil {
		return err
	}
	s.running, err = s.product.StartAll(ctx, filepath.Join(s.dir, "keys", "trust-policy.yaml"))
	return err
}
