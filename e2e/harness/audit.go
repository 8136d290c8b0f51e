//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// AuditEvent is what is read of a line of the API server's audit log.
type AuditEvent struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
	// Raw is the whole line.
	Raw string `json:"-"`
}

// Annotation is the value of the first annotation whose name ends so.
func (e AuditEvent) Annotation(suffix string) string {
	for name, value := range e.Annotations {
		if strings.HasSuffix(name, suffix) {
			return value
		}
	}
	return ""
}

// ReadAudit gives the events of the log that are wanted.
func ReadAudit(path string, wanted func(AuditEvent) bool) ([]AuditEvent, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	var events []AuditEvent
	for line := range bytes.Lines(text) {
		event := AuditEvent{Raw: string(line)}
		if json.Unmarshal(line, &event) != nil {
			continue // the last line may be half written
		}
		if wanted(event) {
			events = append(events, event)
		}
	}
	return events, nil
}
