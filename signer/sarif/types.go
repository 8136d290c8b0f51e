package sarif

// sarifLog is the whole file (section 3.13).
type sarifLog struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

// run is one call of a tool (section 3.14).
type run struct {
	Tool       wrapped  `json:"tool"`
	ColumnKind string   `json:"columnKind"`
	Results    []result `json:"results"` // an empty list says that there is nothing to say
}

// wrapped is a tool without extensions (section 3.18).
type wrapped struct {
	Driver toolComponent `json:"driver"`
}

// toolComponent is a program with its rules (section 3.19).
type toolComponent struct {
	Name    string                `json:"name"`
	Version string                `json:"version,omitempty"`
	Rules   []reportingDescriptor `json:"rules"`
}

// reportingDescriptor is a rule (section 3.49).
type reportingDescriptor struct {
	ID                   string        `json:"id"`
	ShortDescription     text          `json:"shortDescription"`
	DefaultConfiguration configuration `json:"defaultConfiguration"`
}

// configuration is how a rule is set (section 3.50).
type configuration struct {
	Level Level `json:"level"`
}

// text is a message (section 3.11).
type text struct {
	Text string `json:"text"`
}

// result is a finding (section 3.27).
type result struct {
	RuleID       string        `json:"ruleId"`
	RuleIndex    int           `json:"ruleIndex"`
	Level        Level         `json:"level"`
	Message      text          `json:"message"`
	Locations    []location    `json:"locations"`
	Suppressions []suppression `json:"suppressions,omitempty"`
}

// location is where a result is (section 3.28).
type location struct {
	PhysicalLocation physicalLocation `json:"physicalLocation"`
}

// physicalLocation is a place in a file (section 3.29).
type physicalLocation struct {
	ArtifactLocation artifactLocation `json:"artifactLocation"`
	Region           *region          `json:"region,omitempty"`
}

// artifactLocation names a file (section 3.4).
type artifactLocation struct {
	URI string `json:"uri"`
}

// region is a part of a file (section 3.30).
type region struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
	EndLine     int `json:"endLine,omitempty"`
	EndColumn   int `json:"endColumn,omitempty"`
}

// suppression is a request not to report (section 3.35).
type suppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}
