package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hostwarrant/hostwarrant/e2e/storage/server/profile"
)

// checksum is the annotation that the server adds to what it stores.
const checksum = "kubescape.io/sync-checksum"

// strategy judges nothing: whoever may write, writes what they like.
type strategy struct{ runtime.ObjectTyper }

func (strategy) GenerateName(base string) string { return base }

func (strategy) NamespaceScoped() bool                         { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }
func (strategy) Canonicalize(runtime.Object)                   {}

func (strategy) PrepareForCreate(_ context.Context, o runtime.Object)    { prepare(o) }
func (strategy) PrepareForUpdate(_ context.Context, o, _ runtime.Object) { prepare(o) }

func (strategy) Validate(context.Context, runtime.Object) field.ErrorList { return nil }

func (strategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList { return nil }

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }

// prepare forgets who owns which field, and adds the checksum.
func prepare(o runtime.Object) {
	p, ok := o.(*profile.ContainerProfile)
	if !ok {
		return
	}
	p.ManagedFields = nil
	spec, err := json.Marshal(p.Spec)
	if err != nil {
		return // it has been decoded: it encodes
	}
	sum := sha256.Sum256(spec)
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[checksum] = hex.EncodeToString(sum[:])
}
