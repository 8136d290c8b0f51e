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
	fmt.Fprintln(s.out, "Starting hosts with sshd and sudo, which require warrants, and hostwarrant ...")
	if why := s.noNode(); why != "" {
		fmt.Fprintf(s.out, "No kubelet joins: %s.\n", why)
	}
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
	if err := s.admitNodes(ctx); err != nil {
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

// startHosts: host-a judges by the policy, host-b by somebody else's; host-c judges as host-a does and has kubelet.
func (s *story) startHosts(ctx context.Context) error {
	start := func(name, keys, cluster string, change func(*lab.HostOptions)) (*lab.Host, error) {
		o, err := product.HostTrust{
			Lab: s.lab, ControlPlane: s.cluster, ClusterID: cluster,
			Policy: filepath.Join(s.dir, keys, "trust-policy.yaml"), Roots: filepath.Join(s.dir, keys, "root.pub"),
		}.HostOptions(ctx)
		if err != nil {
			return nil, err
		}
		o.Name, o.RelayKey = name, s.login.signer.PublicKey()
		change(&o)
		return s.lab.StartHost(ctx, o)
	}
	asItIs := func(*lab.HostOptions) {}
	var err error
	if s.hostA, err = start("host-a", "keys", clusterID, asItIs); err != nil {
		return err
	}
	if s.hostB, err = start("host-b", "stranger", "elsewhere", asItIs); err != nil || s.noNode() != "" {
		return err
	}
	s.hostC, err = start("host-c", "keys", clusterID, product.AsNode)
	return err
}

// hosts are those that were started.
func (s *story) hosts() []*lab.Host {
	all := []*lab.Host{s.hostA, s.hostB}
	if s.hostC != nil {
		all = append(all, s.hostC)
	}
	return all
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
