//go:build linux

package upstream

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// cluster is a real API server that holds the host as it was, and then gets our guards.
func (m *migration) cluster(t *testing.T) {
	t.Helper()
	cp := shared.ControlPlane(t)
	m.KnowCluster(t, cp.KubectlPath, cp.Kubeconfig)
	m.Run(t, "kubectl apply --server-side -f "+filepath.Join(shared.Lab(t).Root(), "e2e", "testdata", "crds")+"; kubectl wait --for=condition=Established crd --all --timeout=1m")
	m.Run(t, "kubectl create namespace pool; kubectl apply -f host-1.yaml")
	p, err := product.Install(t.Context(), product.Options{Lab: shared.Lab(t), ControlPlane: cp, Roots: []byte(m.root.Line + "\n"), ClusterID: clusterID, HostNamespaces: []string{"pool"}})
	must(t, err)
	for _, start := range []func(context.Context) (*product.Program, error){p.StartWebhook, p.StartController} {
		program, err := start(t.Context())
		must(t, err)
		t.Cleanup(func() {
			if err := program.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// storedMode is what the cluster holds of the host.
func (m *migration) storedMode(t *testing.T) string {
	t.Helper()
	return m.Run(t, "kubectl get sshhost host-1 -n pool -o 'jsonpath={.spec.user} {.spec.execMode}'")
}

// journal keeps what programs of the host log, where a stand-in for journalctl finds it.
func (m *migration) journal(t *testing.T) {
	t.Helper()
	log, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.host.Path("/dev/log"), Net: "unixgram"})
	must(t, err)
	must(t, os.Chmod(m.host.Path("/dev/log"), 0o666))
	m.host.Must(t, "rm -f /usr/bin/journalctl; printf '#!/bin/sh\\ncat /root/journal\\n' >/usr/bin/journalctl; chmod 755 /usr/bin/journalctl; touch /root/journal")
	file, err := os.OpenFile(m.host.Path("/root/journal"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- copyLines(file, log) }()
	t.Cleanup(func() {
		must(t, log.Close())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// copyLines ends without an error when the log is closed.
func copyLines(file *os.File, log *net.UnixConn) error {
	defer file.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := log.Read(b)
		if err != nil {
			return nil // it is how the test ends it
		}
		if _, err := file.Write(append(b[:n:n], '\n')); err != nil {
			return err
		}
	}
}
