//go:build linux

package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Metrics are the series of a /metrics page, by name with labels.
type Metrics map[string]float64

// ReadMetrics fetches the page of the server at the base URL.
func ReadMetrics(ctx context.Context, base string) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	page, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return ParseMetrics(string(page)), nil
}

// ParseMetrics reads such a page.
func ParseMetrics(page string) Metrics {
	all := Metrics{}
	for line := range strings.Lines(page) {
		name, value, ok := cutLast(strings.TrimSpace(line))
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = number
		}
	}
	return all
}

func cutLast(line string) (name, value string, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return "", "", false
	}
	return line[:at], line[at+1:], true
}

// Sum adds up the series of a name whose labels hold all of the given texts, such as `outcome="deny"`.
func (m Metrics) Sum(name string, labels ...string) float64 {
	sum := 0.0
series:
	for series, value := range m {
		rest, ok := strings.CutPrefix(series, name)
		if !ok || rest != "" && rest[0] != '{' {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(rest, label) {
				continue series
			}
		}
		sum += value
	}
	return sum
}

// Series is how many series have a name that begins so.
func (m Metrics) Series(prefix string) int {
	n := 0
	for series := range m {
		if strings.HasPrefix(series, prefix) {
			n++
		}
	}
	return n
}

// Quantile of a histogram without labels, between two readings, in seconds: linear within the bucket
// in which it lies, as Prometheus does it.
func Quantile(before, after Metrics, name string, q float64) float64 {
	rank := q * (after[name+"_count"] - before[name+"_count"])
	type bucket struct{ bound, count float64 }
	var all []bucket
	for series, value := range after {
		label, ok := strings.CutPrefix(series, name+`_bucket{le="`)
		if !ok {
			continue
		}
		if bound, err := strconv.ParseFloat(strings.TrimSuffix(label, `"}`), 64); err == nil {
			all = append(all, bucket{bound, value - before[series]})
		}
	}
	slices.SortFunc(all, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	below := bucket{}
	for _, b := range all {
		if b.count >= rank && b.count > below.count {
			return below.bound + (b.bound-below.bound)*(rank-below.count)/(b.count-below.count)
		}
		below = b
	}
	return math.Inf(1)
}
