package bundles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// A manifest that is too long for an annotation stands in ConfigMaps, in pieces: one may have 1 MiB.
const (
	manifestKey   = "manifest"
	manifestPiece = 900 << 10
	maxPieces     = 64 // the longest manifest that internal/bundle reads
)

// ManifestName is the name of the ConfigMap with a piece of a bundle's manifest. A bundle may have a
// name that is too long to be a part of it.
func ManifestName(bundle string, piece int) string {
	sum := sha256.Sum256([]byte(bundle))
	return fmt.Sprintf("hostwarrant-manifest-%s-%d", hex.EncodeToString(sum[:8]), piece)
}

// keepManifest stores a manifest that no annotation can hold, before the composite that names its digest.
func (c *Controller) keepManifest(ctx context.Context, st *state, want *composite) error {
	if len(want.manifest) <= bundle.MaxManifest {
		return nil
	}
	if err := c.ensureReport(ctx, st); err != nil {
		return err
	}
	text := string(want.manifest)
	for piece := 0; text != ""; piece++ {
		part := text[:min(len(text), manifestPiece)]
		text = text[len(part):]
		if err := c.keepPiece(ctx, st, piece, part); err != nil {
			return fmt.Errorf("storing the manifest: %w", err)
		}
	}
	return nil
}

func (c *Controller) keepPiece(ctx context.Context, st *state, piece int, text string) error {
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: st.Namespace, Name: ManifestName(st.Name, piece),
			Labels:          map[string]string{labelManagedBy: us, labelBundle: labelValue(st.Name)},
			OwnerReferences: []metav1.OwnerReference{ownedBy(st.report)},
		},
		Data: map[string]string{manifestKey: text},
	}
	err := c.Client.Create(ctx, want, client.FieldOwner(FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Only the name is known of what is there; it is ours, whatever it says.
	err = c.Client.Update(ctx, want, client.FieldOwner(FieldManager))
	// check: BytesChanged: an immutable ConfigMap of this name, made beforehand, would hold the bundle up and nobody would know why
	if apierrors.IsInvalid(err) {
		return decision.Errorf(decision.BytesChanged, "the ConfigMap %s/%s, where the manifest is to stand, holds something else and cannot be written: %v", want.Namespace, want.Name, err).
			Try("kubectl delete configmap -n " + want.Namespace + " " + want.Name)
	}
	return err
}

func ownedBy(report *v1alpha1.ProfileBundle) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: kindBundle, Name: report.Name, UID: report.UID}
}

// manifest is that of a stored composite, from its annotation or from ConfigMaps; nil where it is lost.
// Nobody vouches for it: its root is compared with the one that was reported.
func (c *Controller) manifest(ctx context.Context, st *state, stored *unstructured.Unstructured) ([]byte, error) {
	if stored == nil {
		return nil, nil
	}
	text := stored.GetAnnotations()[AnnotationManifest]
	if !strings.HasPrefix(text, "sha256:") {
		return []byte(text), nil
	}
	var all strings.Builder
	for piece := range maxPieces {
		var part corev1.ConfigMap
		err := c.Reader.Get(ctx, client.ObjectKey{Namespace: st.Namespace, Name: ManifestName(st.Name, piece)}, &part)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		all.WriteString(part.Data[manifestKey])
		if len(part.Data[manifestKey]) < manifestPiece {
			break // what lies behind is of a longer one, from before
		}
	}
	return []byte(all.String()), nil
}
