package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

func refusalOf(e *decision.Error) *explainedRefusal {
	return &explainedRefusal{Reason: string(e.Reason), Where: e.Where, What: e.What, Hint: e.Hint}
}

// outs are what is no member, each with the reason.
func outs(all []bundle.Refusal) []explainedOut {
	list := []explainedOut{}
	for _, r := range all {
		list = append(list, explainedOut{r.Name, *refusalOf(r.Error)})
	}
	return list
}

// onlyUnsigned tells whether nothing was refused but what nobody signed.
func onlyUnsigned(all []explainedOut) bool {
	return !slices.ContainsFunc(all, func(o explainedOut) bool { return o.Reason != string(decision.Unsigned) })
}

func (r *explainedRefusal) text() string {
	text := r.Reason + ": " + shown(r.What)
	if r.Where != "" {
		text = shown(r.Where) + ": " + text
	}
	if r.Hint != "" {
		text += "; hint: " + shown(r.Hint)
	}
	return text
}

func writeOuts(b *bytes.Buffer, all []explainedOut, more int) {
	for _, o := range all {
		fmt.Fprintf(b, "  out  %s: %s\n", shown(o.Name), o.text())
	}
	if more > 0 {
		fmt.Fprintf(b, "  out  %d more\n", more)
	}
}
