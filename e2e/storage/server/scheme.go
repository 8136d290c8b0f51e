package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/hostwarrant/hostwarrant/e2e/storage/server/profile"
)

// newScheme knows the kind. It has one version, which is its internal one as well: nothing converts.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	internal := schema.GroupVersion{Group: profile.GroupVersion().Group, Version: runtime.APIVersionInternal}
	for _, version := range []schema.GroupVersion{profile.GroupVersion(), internal} {
		scheme.AddKnownTypes(version, &profile.ContainerProfile{}, &profile.ContainerProfileList{})
	}
	metav1.AddToGroupVersion(scheme, profile.GroupVersion())
	// What every API server answers with, whatever the group.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	utilruntime.Must(scheme.SetVersionPriority(profile.GroupVersion()))
	return scheme
}

// text speaks JSON and YAML: the kind has no protobuf, which the namespace controller would prefer.
type text struct{ serializer.CodecFactory }

func (t text) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(t.CodecFactory.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool { return !i.EncodesAsText })
}
