package main

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hostwarrant/hostwarrant/e2e/storage/server/profile"
)

// resource is the name of the resource.
const resource = "containerprofiles"

// profiles is a registry as every API server has them, but for what it makes of lists and watches.
type profiles struct{ *registry.Store }

func newProfiles(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*profiles, error) {
	s := strategy{ObjectTyper: scheme}
	group := profile.GroupVersion().WithResource(resource).GroupResource()
	store := &registry.Store{
		NewFunc:     func() runtime.Object { return &profile.ContainerProfile{} },
		NewListFunc: func() runtime.Object { return &profile.ContainerProfileList{} },

		DefaultQualifiedResource:  group,
		SingularQualifiedResource: profile.GroupVersion().WithResource("containerprofile").GroupResource(),
		TableConvertor:            rest.NewDefaultTableConvertor(group),

		CreateStrategy: s, UpdateStrategy: s, DeleteStrategy: s,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	return &profiles{Store: store}, nil
}

// List returns everything of the namespace, whatever is selected, without specs.
func (p *profiles) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	found, err := p.Store.List(ctx, unselective(options))
	if err != nil {
		return nil, err
	}
	list, ok := found.(*profile.ContainerProfileList)
	if !ok {
		return nil, fmt.Errorf("listing %s: a %T", resource, found)
	}
	for i := range list.Items {
		strip(&list.Items[i])
	}
	return list, nil
}

// Watch begins now and tells of everything in the namespace, without specs.
func (p *profiles) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	now, err := p.Storage.Storage.GetCurrentResourceVersion(ctx)
	if err != nil {
		return nil, err
	}
	options = unselective(options)
	options.ResourceVersion = strconv.FormatUint(now, 10)
	events, err := p.Store.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		if changed, ok := e.Object.(*profile.ContainerProfile); ok {
			strip(changed)
		}
		return e, true
	}), nil
}

// DeleteCollection deletes everything of the namespace, whatever is selected.
func (p *profiles) DeleteCollection(
	ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *internalversion.ListOptions,
) (runtime.Object, error) {
	return p.Store.DeleteCollection(ctx, validate, options, unselective(list))
}

// unselective drops the selectors.
func unselective(options *internalversion.ListOptions) *internalversion.ListOptions {
	if options == nil {
		return &internalversion.ListOptions{}
	}
	all := options.DeepCopy()
	all.LabelSelector, all.FieldSelector = nil, nil
	return all
}

// strip leaves the metadata.
func strip(p *profile.ContainerProfile) { p.Spec = profile.Spec{} }
