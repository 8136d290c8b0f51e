package object

import "slices"

// Selector is a Kubernetes label selector (metav1.LabelSelector). The zero value selects everything.
type Selector struct {
	MatchLabels map[string]string
	Expressions []Expression
}

// Expression is one requirement of a Selector.
type Expression struct {
	Key      string
	Operator string // In, NotIn, Exists, DoesNotExist
	Values   []string
}

// Matches reports whether the selector may take an object with these labels. An
// expression that Kubernetes would refuse counts as met: whoever asks wants to
// know which objects are out of reach.
func (s Selector) Matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return !slices.ContainsFunc(s.Expressions, func(e Expression) bool { return !e.met(labels) })
}

func (e Expression) met(labels map[string]string) bool {
	value, ok := labels[e.Key]
	switch e.Operator {
	case "In":
		return len(e.Values) == 0 || ok && slices.Contains(e.Values, value)
	case "NotIn":
		return len(e.Values) == 0 || !ok || !slices.Contains(e.Values, value)
	case "Exists":
		return ok || len(e.Values) > 0
	case "DoesNotExist":
		return !ok || len(e.Values) > 0
	default:
		return true
	}
}
