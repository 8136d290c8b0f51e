package verify

import (
	"regexp"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Operation is that of an admission request.
type Operation string

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Request is one write as admission sees it.
type Request struct {
	Operation             Operation
	Kind, Namespace, Name string
	// User is who writes, as the API server knows it; "" where nobody does, as offline.
	User string
	// Object and Old are JSON; Object is empty for Delete, Old for Create.
	Object, Old []byte
}

// Outcome is what admission answers, as metrics and audit annotations name it.
type Outcome string

// The outcomes. The zero value is none of them, and refuses.
const (
	OutcomeAllow  Outcome = "allow"
	OutcomeDeny   Outcome = "deny"
	OutcomeWarn   Outcome = "warn"   // would be refused, but the policy's mode is warn
	OutcomeExempt Outcome = "exempt" // guarded content is unchanged, or the policy says nothing of the kind
	OutcomeWaive  Outcome = "waive"  // would be refused, but the policy excuses this object until a date
)

// Answer is what admission says of a request. With OutcomeWarn the Decision is the
// refusal that is only warned of; with OutcomeWaive it allows, and its warnings say
// what is excused and until when.
type Answer struct {
	Outcome  Outcome
	Decision decision.Decision
}

// Admits reports whether the request may go through.
func (a Answer) Admits() bool {
	switch a.Outcome {
	case OutcomeAllow, OutcomeWarn, OutcomeExempt, OutcomeWaive:
		return true
	default:
		return false
	}
}

// Kinds are those that Admission judges.
func Kinds() []string {
	return []string{
		object.KindJoinProfile, object.KindHost, object.KindNodeClass, object.KindHostRun,
		object.KindHostStatement,
		object.KindContainerProfile, object.KindRules, object.KindRuleBinding, object.KindSeccompProfile,
	}
}

// Admission judges a request about any kind but TrustPolicy, which needs the anchor
// (see TrustPolicy): the same in the webhook and offline.
func Admission(s Snapshot, r Request) Answer {
	if err := judgeable(r); err != nil {
		return refusal(err.Denied(r.Kind, r.Name))
	}
	if r.Operation == Delete {
		return s.answer(r, deletion(s, r))
	}
	if r.Operation == Update && object.SameGuarded(r.Kind, r.Old, r.Object) {
		return Answer{OutcomeExempt, decision.Decision{Outcome: decision.Allow, Kind: r.Kind, Name: r.Name, What: "guarded content is unchanged"}}
	}
	if err := Canary(r.Name); err != nil {
		return refusal(err.Denied(r.Kind, r.Name))
	}
	answer, err := s.judge(r)
	if err != nil {
		return s.answer(r, decision.From(err).Denied(r.Kind, r.Name))
	}
	return answer
}

func refusal(d decision.Decision) Answer { return Answer{OutcomeDeny, d} }

// judgeable refuses what no rule here judges.
func judgeable(r Request) *decision.Error {
	// check: KindMismatch: what no rule judges must not pass because nothing objected
	if !slices.Contains(Kinds(), r.Kind) {
		return decision.Errorf(decision.KindMismatch, "no rule judges the kind %.60q", r.Kind)
	}
	// check: KindMismatch: an operation that no rule judges must not pass because nothing objected
	if !slices.Contains([]Operation{Create, Update, Delete}, r.Operation) {
		return decision.Errorf(decision.KindMismatch, "no rule judges the operation %.20q", r.Operation)
	}
	return nil
}

var canaryName = regexp.MustCompile(`^hostwarrant-canary-([0-9a-f]{16})$`)

// Canary always refuses the names by which the controller asks whether it is asked.
func Canary(name string) *decision.Error {
	// check: Canary: the one answer that shows that admission is in the path, in any mode and without a policy
	if nonce := canaryName.FindStringSubmatch(name); nonce != nil {
		return decision.Errorf(decision.Canary, "seen %s", nonce[1]).Try("this name is for the controller's own question; use another")
	}
	return nil
}

// named wants the object to be the one that the request names.
func named(r Request, meta object.Meta) error {
	// check: Malformed: scopes and names are judged by the object's own name, which must be the stored one
	if r.Name != "" && meta.Name != r.Name || meta.Namespace != r.Namespace {
		return decision.Errorf(decision.Malformed, "the object is named %.100q, the request %.100q", meta.Namespace+"/"+meta.Name, r.Namespace+"/"+r.Name).
			At("metadata")
	}
	// check: KindMismatch: a kind of the same name in another group is another kind
	if meta.Group() != object.GroupOf(r.Kind) {
		return decision.Errorf(decision.KindMismatch, "apiVersion %.80q is not of group %s", meta.APIVersion, object.GroupOf(r.Kind)).At("apiVersion")
	}
	return nil
}

// judge judges the object of a request, whose kind is known.
func (s Snapshot) judge(r Request) (Answer, error) {
	switch r.Kind {
	case object.KindJoinProfile:
		return s.profile(r)
	case object.KindHost:
		return s.host(r)
	case object.KindNodeClass:
		c, err := object.ParseNodeClass(r.Object)
		if err != nil {
			return Answer{}, err
		}
		return s.answer(r, NodeClass(s, c)), named(r, c.Meta)
	case object.KindHostRun:
		run, err := object.ParseHostRun(r.Object)
		if err != nil {
			return Answer{}, err
		}
		return s.answer(r, HostRun(s, run)), named(r, run.Meta)
	case object.KindHostStatement:
		return s.statementWrite(r)
	case object.KindContainerProfile, object.KindRules, object.KindRuleBinding, object.KindSeccompProfile:
		return s.fragmentWrite(r)
	default:
		return refusal(decision.Decision{Kind: r.Kind, Name: r.Name, Reason: decision.KindMismatch}), nil
	}
}

// answer makes of a decision what the policy's waivers and mode say.
func (s Snapshot) answer(r Request, d decision.Decision) Answer {
	if d.Allowed() {
		return Answer{OutcomeAllow, d}
	}
	if firm(d.Reason) || s.usable() != nil {
		return refusal(d)
	}
	if waived, ok := s.waived(r, d); ok {
		return Answer{OutcomeWaive, waived}
	}
	return s.inMode(d)
}

// inMode makes of a refusal by a usable policy what its mode says.
func (s Snapshot) inMode(d decision.Decision) Answer {
	if s.Policy.Mode(s.Now) == trustpolicy.Warn {
		return Answer{OutcomeWarn, d}
	}
	return refusal(d)
}

// firm are the refusals that neither mode nor waiver softens: what was not judged is
// not known to be harmless, and a trial must not outlive the policy that granted it.
func firm(reason decision.Reason) bool {
	return slices.Contains([]decision.Reason{
		"", decision.Internal, decision.KindMismatch, decision.Canary,
		decision.PolicyExpired, decision.PolicyUnavailable, decision.SnapshotUnavailable,
	}, reason)
}
