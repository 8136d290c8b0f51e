package fragment

import (
	"bytes"
	"encoding/json"
	"errors"
)

// RulesSpec is the spec of Rules, in the order in which the format writes it.
type RulesSpec struct {
	Rules []Rule `json:"rules"`
}

// Rule is a detection rule.
type Rule struct {
	Enabled                 bool            `json:"enabled"`
	ID                      string          `json:"id"`
	Name                    string          `json:"name"`
	Description             string          `json:"description"`
	Expressions             RuleExpressions `json:"expressions"`
	ProfileDependency       int             `json:"profileDependency"`
	ProfileDataRequired     *ProfileData    `json:"profileDataRequired,omitempty"`
	Severity                int             `json:"severity"`
	SupportPolicy           bool            `json:"supportPolicy"`
	Tags                    []string        `json:"tags"`
	State                   map[string]any  `json:"state,omitempty"`
	AgentVersionRequirement string          `json:"agentVersionRequirement"`
	IsTriggerAlert          bool            `json:"isTriggerAlert"`
	MitreTactic             string          `json:"mitreTactic"`
	MitreTechnique          string          `json:"mitreTechnique"`
}

// RuleExpressions are the CEL texts of a rule.
type RuleExpressions struct {
	Message        string           `json:"message"`
	UniqueID       string           `json:"uniqueId"`
	RuleExpression []RuleExpression `json:"ruleExpression"`
}

// RuleExpression says what one event must be like.
type RuleExpression struct {
	EventType  string `json:"eventType"`
	Expression string `json:"expression"`
}

// ProfileData says which parts of a profile a rule reads.
type ProfileData struct {
	Opens            DataNeed `json:"opens"`
	Execs            DataNeed `json:"execs"`
	Capabilities     DataNeed `json:"capabilities"`
	Syscalls         DataNeed `json:"syscalls"`
	Endpoints        DataNeed `json:"endpoints"`
	EgressDomains    DataNeed `json:"egressDomains"`
	EgressAddresses  DataNeed `json:"egressAddresses"`
	IngressDomains   DataNeed `json:"ingressDomains"`
	IngressAddresses DataNeed `json:"ingressAddresses"`
}

// DataNeed is what a rule reads of one part: nothing (the zero value, null in JSON),
// all of it ("all"), or what matches one of the patterns.
type DataNeed struct {
	All      bool
	Patterns []DataPattern
}

// DataPattern matches a text; one field is set.
type DataPattern struct {
	Exact    string `json:"exact,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
	Contains string `json:"contains,omitempty"`
}

var errDataNeed = errors.New(`neither null, "all" nor a list of patterns`)

// MarshalJSON writes null, "all" or the list.
func (n DataNeed) MarshalJSON() ([]byte, error) {
	switch {
	case n.All:
		return []byte(`"all"`), nil
	case len(n.Patterns) == 0:
		return []byte("null"), nil
	default:
		return json.Marshal(n.Patterns)
	}
}

// UnmarshalJSON reads what MarshalJSON writes, and nothing else.
func (n *DataNeed) UnmarshalJSON(text []byte) error {
	*n = DataNeed{}
	switch {
	case string(text) == "null":
		return nil
	case string(text) == `"all"`:
		n.All = true
		return nil
	case !bytes.HasPrefix(text, []byte("[")):
		return errDataNeed
	}
	if err := json.Unmarshal(text, &n.Patterns); err != nil {
		return err
	}
	if len(n.Patterns) == 0 {
		return errDataNeed
	}
	return nil
}
