package sarif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// Level says how much a result matters (section 3.27.10).
type Level string

// The levels of results.
const (
	Note    Level = "note"
	Warning Level = "warning"
	Error   Level = "error"
)

// Tool is who speaks.
type Tool struct {
	Name, Version string
	Rules         []Rule
}

// Rule is what results are instances of.
type Rule struct {
	ID      string
	Level   Level // of a result that says nothing else
	Summary string
}

// Result is one finding.
type Result struct {
	Rule    string // an ID of the tool's rules
	Level   Level
	Message string
	Hint    string // what to do about it; may be empty
	Path    string // of the file, as given on the command line
	Region  Region
	Ignored string // the reason for which the source asks not to report it; empty: it does not ask
}

// Region is a place in a file; all zero: the whole file. Lines and columns count from 1, columns in
// characters, and the end is the place behind the last character.
type Region struct{ Line, Col, EndLine, EndCol int }

// Write gives a log of one run. The order of rules and results stays.
func Write(tool Tool, results []Result) ([]byte, error) {
	index := map[string]int{}
	driver := toolComponent{Name: tool.Name, Version: tool.Version, Rules: []reportingDescriptor{}}
	for i, r := range tool.Rules {
		if _, twice := index[r.ID]; twice || r.ID == "" {
			return nil, fmt.Errorf("rule %q has no id of its own", r.ID)
		}
		index[r.ID] = i
		driver.Rules = append(driver.Rules, reportingDescriptor{
			ID: r.ID, ShortDescription: text{r.Summary}, DefaultConfiguration: configuration{r.Level},
		})
	}
	all := []result{}
	for _, r := range results {
		i, known := index[r.Rule]
		if !known {
			return nil, fmt.Errorf("the tool has no rule %q", r.Rule)
		}
		all = append(all, r.written(i))
	}
	return marshal(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []run{{Tool: wrapped{driver}, ColumnKind: "unicodeCodePoints", Results: all}},
	})
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("writing SARIF: %v", err)
	}
	return b.Bytes(), nil
}

func (r Result) written(index int) result {
	message := r.Message
	if r.Hint != "" {
		message += "; hint: " + r.Hint
	}
	place := physicalLocation{ArtifactLocation: artifactLocation{URI: URI(r.Path)}}
	if r.Region != (Region{}) {
		place.Region = &region{r.Region.Line, r.Region.Col, r.Region.EndLine, r.Region.EndCol}
	}
	w := result{RuleID: r.Rule, RuleIndex: index, Level: r.Level, Message: text{message}, Locations: []location{{place}}}
	if r.Ignored != "" {
		w.Suppressions = []suppression{{"inSource", r.Ignored}}
	}
	return w
}

// URI writes a path as an RFC 3986 reference: relative where the path is, file:///… where it is absolute.
func URI(name string) string {
	slashed := filepath.ToSlash(name)
	if volume := filepath.VolumeName(name); volume != "" {
		slashed = "/" + slashed
	}
	slashed = path.Clean(slashed)
	parts := strings.Split(slashed, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	escaped := strings.Join(parts, "/")
	switch {
	case strings.HasPrefix(escaped, "/"):
		return "file://" + escaped
	case strings.Contains(parts[0], ":"): // would be read as a scheme (RFC 3986, section 4.2)
		return "./" + escaped
	default:
		return escaped
	}
}
