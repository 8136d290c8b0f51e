//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// startCluster starts the control plane, whose address the trust policy names.
func (s *story) startCluster(ctx context.Context) (err error) {
	fmt.Fprintln(s.out, "Starting etcd and kube-apiserver ...")
	s.cluster, err = s.lab.StartControlPlane(ctx, lab.ControlPlaneOptions{})
	return err
}

// stage starts the hosts, installs the product and starts its programs.
func (s *story) stage(ctx context.Context) error {
	began := time.Now()
	fmt.Fprintln(s.out, "Starting two hosts with sshd and sudo, which require warrants, and hostwarrant ...")
	var err error
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

// startHosts: host-a judges by the policy, host-b by somebody else's.
func (s *story) startHosts(ctx context.Context) error {
	start := func(name, keys, cluster string) (*lab.Host, error) {
		o, err := product.HostTrust{
			Lab: s.lab, ControlPlane: s.cluster, ClusterID: cluster,
			Policy: filepath.Join(s.dir, keys, "trust-policy.yaml"), Roots: filepath.Join(s.dir, keys, "root.pub"),
		}.HostOptions(ctx)
		if err != nil {
			return nil, err
		}
		o.Name, o.RelayKey = name, s.login.signer.PublicKey()
		return s.lab.StartHost(ctx, o)
	}
	var err error
	if s.hostA, err = start("host-a", "keys", clusterID); err != nil {
		return err
	}
	s.hostB, err = start("host-b", "stranger", "elsewhere")
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
