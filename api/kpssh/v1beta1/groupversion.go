package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HostClassLabel groups hosts; a host without it is in class "default".
const HostClassLabel = "karpenter.dklesev.github.io/host-class"

// GroupVersion returns the API group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "karpenter.dklesev.github.io", Version: "v1beta1"}
}

// AddToScheme registers the kinds of this package in scheme. It is called explicitly by each
// program: nothing registers itself.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&SSHJoinProfile{}, &SSHJoinProfileList{},
		&SSHHost{}, &SSHHostList{},
		&SSHNodeClass{}, &SSHNodeClassList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
