package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxConcurrent bounds the hosts dialled at once: each takes a connection and
// about 100 KiB.
const maxConcurrent = 1000

type options struct {
	anchor         string
	namespaces     []string
	kubeconfig     string
	concurrent     int
	health         string
	metrics        string
	leaderElection bool
	leaseNamespace string
	verbose        bool

	proof       string
	verifierURL string
	verifierCA  string
}

// The values of --proof.
const (
	proofRequired = "required"
	proofOff      = "off"
)

// register adds what relay and minter take.
func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.anchor, "anchor", "", "directory with the files roots and cluster-id (required)")
	f.StringSliceVar(&o.namespaces, "namespaces", nil, "namespaces whose HostRuns are looked after; default: all, but only where its account was given rights on Secrets")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; default: KUBECONFIG, then the pod's own account")
	f.StringVar(&o.health, "health-address", ":8081", "address of /healthz and /readyz")
	f.StringVar(&o.metrics, "metrics-address", ":8080", "address of /metrics, 0 for none")
	f.BoolVar(&o.leaderElection, "leader-elect", true, "run only while holding the lease (hostwarrant-relay, hostwarrant-minter)")
	f.StringVar(&o.leaseNamespace, "lease-namespace", "hostwarrant-system", "namespace of the lease, and of the product, whose webhook configurations the relay looks at")
	f.BoolVar(&o.verbose, "verbose", false, "log each step")
}

// registerRelay adds what only the relay itself takes.
func (o *options) registerRelay(f *pflag.FlagSet) {
	f.IntVar(&o.concurrent, "concurrent-hosts", 100, "hosts dialled at once")
}

// registerMinter adds what only the minter takes.
func (o *options) registerMinter(f *pflag.FlagSet) {
	f.StringVar(&o.proof, "proof", proofRequired, "required: a host has to prove that a certificate request is its kubelet's; off: whoever steals a token becomes that node")
	f.StringVar(&o.verifierURL, "verifier-url", "", "https URL of a service that is asked as well before a request is approved; default: none")
	f.StringVar(&o.verifierCA, "verifier-ca", "", "PEM file of the CAs that may have signed that service's certificate; default: those of the machine")
}

func (o *options) check() error {
	if o.anchor == "" {
		return errors.New("--anchor is missing: the directory with roots and cluster-id")
	}
	for _, ns := range o.namespaces {
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			return fmt.Errorf("--namespaces: %.70q is no namespace", ns)
		}
	}
	if o.concurrent < 1 || o.concurrent > maxConcurrent {
		return fmt.Errorf("--concurrent-hosts: %d is not between 1 and %d", o.concurrent, maxConcurrent)
	}
	return nil
}

// checkMinter checks what only the minter takes.
func (o *options) checkMinter() error {
	// check: ProofFailed: a slip of the pen that switches proofs off
	if o.proof != proofRequired && o.proof != proofOff {
		return fmt.Errorf("--proof: %.40q is neither %q nor %q", o.proof, proofRequired, proofOff)
	}
	if o.verifierCA != "" && o.verifierURL == "" {
		return errors.New("--verifier-ca is given without --verifier-url")
	}
	_, err := o.verifier()
	return err
}
