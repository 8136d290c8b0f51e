package lint

import (
	"bytes"
	"errors"
	"path"
	"regexp"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// unsignable says what every verifier would say of the bytes.
func unsignable(s *source) []hit {
	if errors.Is(s.parseErr, errTooLarge) {
		return []hit{{level: Error, message: "the script is larger than any verifier takes", hint: "make it smaller"}}
	}
	err := script.Check(s.text)
	if err == nil {
		return nil
	}
	e := decision.From(err)
	h := hit{level: Error, message: e.What, hint: e.Hint}
	if e.Reason == decision.TemplateFound {
		h.start = bytes.Index(s.text, []byte("{{"))
		h.end = h.start + 2
	}
	return []hit{h}
}

// warrantMalformed says why the warrant cannot be read.
func warrantMalformed(s *source) []hit {
	if s.warrantErr == nil {
		return nil
	}
	e := decision.From(s.warrantErr)
	h := s.onLine("#warrant:", Error, e.What, e.Hint)
	if m := regexp.MustCompile(`\bline ([0-9]{1,7})\b`).FindStringSubmatch(e.Where + " " + e.What); m != nil {
		h.start, h.end = s.lineNumbered(m[1])
		h.message = strings.TrimPrefix(h.message, "line "+m[1]+": ") // the finding says where it is
	}
	return []hit{h}
}

// carriageReturn points at the first line that ends in CR LF: all the others follow.
func carriageReturn(s *source) []hit {
	i := bytes.Index(s.text, []byte("\r\n"))
	if i < 0 {
		return nil
	}
	return []hit{{level: Error, start: i, end: i + 1, message: "a line ends in CR LF; bash takes the CR as part of the last word", hint: "sed -i 's/\\r$//' SCRIPT"}}
}

// foreignShebang finds a first line for another interpreter. Any shell may stand there.
func foreignShebang(s *source) []hit {
	rest, found := bytes.CutPrefix(s.text, []byte("#!"))
	if !found {
		return nil
	}
	first, _, _ := bytes.Cut(rest, []byte("\n"))
	interpreter := ""
	for _, word := range strings.Fields(string(first)) {
		interpreter = path.Base(word)
		if interpreter != "env" && !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			break
		}
	}
	switch interpreter {
	case "bash", "sh", "dash", "ash":
		return nil
	}
	return []hit{{
		level: Error, start: 0, end: len("#!") + len(first),
		message: "phase scripts run under bash, whatever their first line names",
		hint:    "write the script in bash, and #!/usr/bin/env bash in its first line",
	}}
}
