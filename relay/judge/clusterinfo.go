package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// The ConfigMap in which kubeadm and others say how to reach the cluster, as a kubeconfig.
const (
	clusterInfo    = "cluster-info"
	clusterInfoKey = "kubeconfig"
)

// Cluster is ClusterOf and, for what that leaves open, the ConfigMap kube-public/cluster-info: it
// may choose among the endpoints and CA bundles that the policy lists, and says nothing beyond.
func (o Objects) Cluster(ctx context.Context, p *trustpolicy.Policy, clusterID string, ownCA []byte) (Cluster, error) {
	c := ClusterOf(p, clusterID, ownCA)
	if p == nil || c.Endpoint != "" && c.CA != nil {
		return c, nil
	}
	entry, listed := p.Clusters[clusterID]
	if !listed {
		return c, nil
	}
	info, err := o.clusterInfo(ctx)
	if err != nil {
		return Cluster{}, err
	}
	// check: ClusterRefused: whoever may write a ConfigMap sends hosts to a foreign API server
	if c.Endpoint == "" && slices.Contains(entry.Endpoints, info.Endpoint) {
		c.Endpoint = info.Endpoint
	}
	sum := sha256.Sum256(info.CA)
	// check: ClusterRefused: whoever may write a ConfigMap has hosts believe a foreign CA
	if c.CA == nil && slices.Contains(entry.CASHA256, hex.EncodeToString(sum[:])) {
		c.CA = info.CA
	}
	return c, nil
}

// clusterInfo reads the ConfigMap. One that is absent, may not be read, or is no
// kubeconfig of one cluster says nothing.
func (o Objects) clusterInfo(ctx context.Context) (Cluster, error) {
	var m corev1.ConfigMap
	err := o.Reader.Get(ctx, client.ObjectKey{Namespace: metav1.NamespacePublic, Name: clusterInfo}, &m)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return Cluster{}, nil
	}
	if err != nil {
		return Cluster{}, fmt.Errorf("reading ConfigMap %s/%s: %w", metav1.NamespacePublic, clusterInfo, err)
	}
	return clusterOf([]byte(m.Data[clusterInfoKey])), nil
}

// clusterOf is the cluster of a kubeconfig that has one.
func clusterOf(kubeconfig []byte) Cluster {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || len(config.Clusters) != 1 {
		return Cluster{}
	}
	for _, c := range config.Clusters {
		return Cluster{Endpoint: c.Server, CA: c.CertificateAuthorityData}
	}
	return Cluster{}
}
