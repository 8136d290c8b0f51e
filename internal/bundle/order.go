package bundle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// The classes whose names the format gives a strength, the weakest first. All others are stronger.
func precedence() []string { return []string{"base", "admission", "overlay"} }

// order is the strength of classes, and of members of one class, as a policy's priority
// says it.
type order struct {
	classes map[string]int
	members map[string]int // by class/name, from 1 on
}

func orderOf(priority []string) order {
	o := order{classes: map[string]int{}, members: map[string]int{}}
	for i, class := range precedence() {
		o.classes[class] = i
	}
	for i, entry := range priority {
		// An entry is a class or class/name, so that no name of one kind is one of the other.
		o.classes[entry], o.members[entry] = len(precedence())+1+i, i+1
	}
	return o
}

func (o order) class(f *fragment.Fragment) int {
	if strength, ok := o.classes[f.Class]; ok {
		return strength
	}
	return len(precedence())
}

// member is 0 where the policy says nothing of the fragment.
func (o order) member(f *fragment.Fragment) int { return o.members[MemberName(f.Class, f.Name)] }

// MemberName is how reports and a policy's priority name a member.
func MemberName(class, name string) string { return class + "/" + name }

// ranked is a fragment with its place.
type ranked struct {
	*fragment.Fragment
	class, member int
}

// sort gives the fragments as they are merged: the later one wins. Signer and digest
// decide last; they are hashes, so that this is no one's choice, and no one's intent.
func (o order) sort(fragments []*fragment.Fragment) []ranked {
	all := make([]ranked, len(fragments))
	for i, f := range fragments {
		all[i] = ranked{f, o.class(f), o.member(f)}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		if a.class != b.class || a.member != b.member {
			return cmp.Or(a.class-b.class, a.member-b.member)
		}
		return cmp.Or(strings.Compare(a.Signer, b.Signer), strings.Compare(a.Digest, b.Digest), strings.Compare(a.Bytes, b.Bytes))
	})
	return all
}
