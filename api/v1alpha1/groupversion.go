package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion returns the API group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "hostwarrant.dev", Version: "v1alpha1"}
}

// AddToScheme registers the kinds of this package in scheme. It is called explicitly by each
// program: nothing registers itself.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&HostRun{}, &HostRunList{},
		&HostState{}, &HostStateList{},
		&HostStatement{}, &HostStatementList{},
		&Ledger{}, &LedgerList{},
		&ProfileBundle{}, &ProfileBundleList{},
		&TrustPolicy{}, &TrustPolicyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
