// Package profile holds the kind that the storage serves, in the normal form in which it stores it.
//
// It is made from the description of the wire format alone and shares no code with hostwarrant's own
// types: what one of the two reads wrongly, the other shows.
package profile

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the one that is served.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "spdx.softwarecomposition.kubescape.io", Version: "v1beta1"}
}

// ContainerProfile is kept with its spec as bytes: nothing here looks into it but the normal form.
type ContainerProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec     `json:"spec,omitempty"`
	Status            struct{} `json:"status,omitempty"`
}

// ContainerProfileList is what List returns, without specs.
type ContainerProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ContainerProfile `json:"items"`
}

// DeepCopyObject is a copy that shares nothing but the spec's bytes, which nobody changes.
func (p *ContainerProfile) DeepCopyObject() runtime.Object {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &out
}

// DeepCopyObject copies each item.
func (l *ContainerProfileList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = make([]ContainerProfile, len(l.Items))
	for i := range l.Items {
		out.Items[i] = l.Items[i]
		out.Items[i].ObjectMeta = *l.Items[i].ObjectMeta.DeepCopy()
	}
	return &out
}

// Spec is JSON in normal form; the zero value is the normal form of an empty spec.
type Spec struct{ normal []byte }

// MarshalJSON writes the normal form.
func (s Spec) MarshalJSON() ([]byte, error) {
	if s.normal == nil {
		return normalize(nil)
	}
	return s.normal, nil
}

// UnmarshalJSON brings what was sent into normal form.
func (s *Spec) UnmarshalJSON(raw []byte) error {
	normal, err := normalize(bytes.Clone(raw))
	s.normal = normal
	return err
}

// OpenAPIModelName is how the kind's schema is called.
func (ContainerProfile) OpenAPIModelName() string { return modelName("ContainerProfile") }

// OpenAPIModelName is how the list's schema is called.
func (ContainerProfileList) OpenAPIModelName() string { return modelName("ContainerProfileList") }

func modelName(kind string) string { return "io.kubescape.softwarecomposition.spdx.v1beta1." + kind }
