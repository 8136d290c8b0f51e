package statements

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/judge"
)

// Conditions of a HostState.
const (
	conditionCurrent   = "Current"
	conditionReachable = "Reachable"
)

// Reasons of conditions that are no delivery's result and no decision's.
const (
	reasonCurrent  = "Current"
	reasonBehind   = "Behind"
	reasonAnswered = "Answered"
	reasonUnproven = "Unproven"
)

// maxMarks and maxMessage are the CRD's bounds.
const (
	maxMarks   = 256
	maxMessage = 1024
)

// hostKind is that of SSHHosts, of which metadata alone is watched.
func hostKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: object.GroupKPSSH, Version: judge.KPSSHVersion, Kind: object.KindHost}
}

func hostMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(hostKind())
	return m
}

func hostList() *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(hostKind().GroupVersion().WithKind(object.KindHost + "List"))
	return l
}

func classOf(m *metav1.PartialObjectMetadata) string {
	return (&object.Host{Meta: object.Meta{Labels: m.Labels}}).Class()
}

// recall takes from the HostState what this process does not know yet, once.
func (c *Courier) recall(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	name := client.ObjectKeyFromObject(m)
	fresh := false
	c.memory.with(name, m.UID, m.Generation, func(h *host) { fresh = h.look.IsZero() })
	if !fresh {
		return nil
	}
	var state v1alpha1.HostState
	if err := c.Client.Get(ctx, name, &state); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading HostState %s: %w", name, err)
	}
	c.memory.with(name, m.UID, m.Generation, func(h *host) { h.assume(&state, m, c.Now()) })
	return nil
}

// assume spreads the first looks: who was never met is met within minutes, who was met within the hour an
// hour after that, and the others within the hour.
func (h *host) assume(s *v1alpha1.HostState, m *metav1.PartialObjectMetadata, now time.Time) {
	h.look = now.Add(upTo(meetWithin))
	mine := slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == m.UID })
	// check: InUse: a HostState of another host of the name, or of where it pointed before, says that there is no news for this one
	if !mine || s.Status.LastContact == nil || s.Status.ObservedGeneration != m.Generation {
		return
	}
	// check: NotYetValid: a HostState of 2099 keeps statements from visits for as long
	if s.Status.LastContact.After(now) {
		return
	}
	h.look = now.Add(upTo(lookEvery))
	if last := s.Status.LastContact.Time; now.Sub(last) < lookEvery {
		h.look = last.Add(wait.Jitter(lookEvery, 0.1))
	}
	h.contact = s.Status.LastContact.Time
	again := false
	for _, st := range s.Status.Statements {
		h.assumed[statement.Kind(st.Kind)] = st.Serial
		switch delivery.Result(st.Result) {
		case "", delivery.Applied:
		case delivery.StatementsUnsupported:
			h.assumedUnsupported = h.contact // a run is told all the same: this process did not hear it
			h.last[statement.Kind(st.Kind)] = answer{result: delivery.StatementsUnsupported, serial: st.Sent, at: h.contact}
		default:
			again = true
		}
	}
	if again {
		return // told anew
	}
	h.seen = true
	h.place = verify.Place{Class: classOf(m), AnyKey: true}
}

// upTo is a part of d, by chance.
func upTo(d time.Duration) time.Duration { return wait.Jitter(d, 1) - d }

// save writes the HostState where it is behind.
func (c *Courier) save(ctx context.Context, m *metav1.PartialObjectMetadata, words verify.Words) error {
	name := client.ObjectKeyFromObject(m)
	var want v1alpha1.HostStateStatus
	dirty := false
	c.memory.with(name, m.UID, m.Generation, func(h *host) {
		dirty = h.dirty
		want = h.status(words, m.Generation, c.Now())
	})
	if !dirty {
		return nil
	}
	if err := c.write(ctx, name, m.UID, want); err != nil {
		return err
	}
	c.memory.with(name, m.UID, m.Generation, func(h *host) { h.dirty = false })
	return nil
}

func (c *Courier) write(ctx context.Context, name types.NamespacedName, uid types.UID, want v1alpha1.HostStateStatus) error {
	var state v1alpha1.HostState
	err := c.Reader.Get(ctx, name, &state)
	if apierrors.IsNotFound(err) {
		state = v1alpha1.HostState{ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: hostKind().GroupVersion().String(), Kind: object.KindHost, Name: name.Name, UID: uid}},
		}}
		err = c.Client.Create(ctx, &state)
	}
	if err != nil {
		return fmt.Errorf("writing HostState %s: %w", name, err)
	}
	conditions := slices.Clone(state.Status.Conditions)
	for _, condition := range want.Conditions {
		meta.SetStatusCondition(&conditions, condition)
	}
	want.Conditions = conditions
	if equality.Semantic.DeepEqual(state.Status, want) {
		return nil
	}
	state.Status = want
	if err := c.Client.Status().Update(ctx, &state); err != nil {
		return fmt.Errorf("writing the status of HostState %s: %w", name, err)
	}
	return nil
}

// status is what is known of a host, for its HostState.
func (h *host) status(words verify.Words, generation int64, now time.Time) v1alpha1.HostStateStatus {
	s := v1alpha1.HostStateStatus{ObservedGeneration: generation}
	if !h.contact.IsZero() {
		at := metav1.NewTime(h.contact).Rfc3339Copy()
		s.LastContact = &at
	}
	if h.facts != nil {
		s.SkewSeconds, s.BootID = &h.skew, h.facts.BootID
		for _, m := range h.facts.Marks[:min(len(h.facts.Marks), maxMarks)] {
			s.Marks = append(s.Marks, v1alpha1.HostMark{Profile: m.Profile, Serial: m.Serial})
		}
	}
	known := h.guess()
	for _, kind := range statement.Kinds() {
		a, told := h.last[kind]
		if known[kind] == 0 && !told {
			continue
		}
		s.Statements = append(s.Statements, v1alpha1.HostStatementState{Kind: string(kind), Serial: known[kind], Result: string(a.result), Sent: a.serial})
	}
	s.Conditions = []metav1.Condition{h.reachable(generation, now), h.current(words, generation, now)}
	return s
}

func (h *host) reachable(generation int64, now time.Time) metav1.Condition {
	c := metav1.Condition{Type: conditionReachable, Status: metav1.ConditionTrue, Reason: reasonAnswered, Message: "the host answered"}
	switch {
	case h.tried.result == "":
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotTried", "the host was not visited yet"
	case h.tried.result != delivery.Applied:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(h.tried.result), h.tried.message
	case h.facts == nil && h.otherShim().IsZero():
		c.Reason, c.Message = reasonUnproven, "the host answered, and gave no proof"
		if h.doubt != "" {
			c.Message = "the host answered, and its proof does not hold: " + h.doubt
		}
	}
	return stamped(c, generation, now)
}

func (h *host) current(words verify.Words, generation int64, now time.Time) metav1.Condition {
	c := metav1.Condition{Type: conditionCurrent, Status: metav1.ConditionTrue, Reason: reasonCurrent, Message: "the host knows every statement that is for it"}
	behind := h.behind(words)
	switch {
	case !h.seen:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonBehind, "nothing is known of the host yet"
	case len(behind) > 0 && !h.otherShim().IsZero():
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(delivery.StatementsUnsupported), "the host has karpenter-provider-ssh's shim, which takes no statements"
	case len(behind) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonBehind, "the host lacks "+strings.Join(behind, ", ")
		for _, kind := range statement.Kinds() {
			if a, ok := h.last[kind]; ok && a.result != delivery.Applied {
				c.Reason, c.Message = string(a.result), c.Message+"; "+string(kind)+": "+a.message
				break
			}
		}
	}
	return stamped(c, generation, now)
}

// behind names what a host lacks, "kind serial".
func (h *host) behind(words verify.Words) []string {
	known := h.guess()
	var lacks []string
	for _, w := range words.For(h.place) {
		if known[w.Kind] < w.Serial {
			lacks = append(lacks, fmt.Sprintf("%s %d", w.Kind, w.Serial))
		}
	}
	return lacks
}

func stamped(c metav1.Condition, generation int64, now time.Time) metav1.Condition {
	if len(c.Message) > maxMessage {
		c.Message = c.Message[:maxMessage]
	}
	c.Message = strings.ToValidUTF8(c.Message, "?")
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now)
	return c
}
