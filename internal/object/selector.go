package object

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
