package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterUID reads the UID of the namespace kube-system, which identifies a cluster. Where it may not
// be read it is "", and the cluster's id alone says for whom a policy is.
func clusterUID(reader client.Reader) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return "", nil
		}
		return string(namespace.UID), err
	}
}
