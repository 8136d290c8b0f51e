package statements

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

const (
	// pageSize bounds what is read at once: a HostStatement may have 320 KiB.
	pageSize = 16
	// maxUnjudged is how many are held before those that nobody vouches for are dropped.
	maxUnjudged = 2 * verify.MaxStatements
	// freshFor is how long the words are used without a look at the policy they were judged by.
	freshFor = 30 * time.Second
)

// Policy gives what is judged by.
type Policy interface {
	Snapshot(ctx context.Context, now time.Time) (verify.Snapshot, error)
}

// Source keeps what the roots say.
type Source struct {
	Reader client.Reader // what is stored, not a cache
	Policy Policy
	Now    func() time.Time

	mu      sync.Mutex
	words   verify.Words
	digest  string
	read    time.Time // zero: never, or it changed since
	version uint64    // rises with each change of what the roots say
}

// Stale says that a HostStatement changed: the next who asks reads them again.
func (s *Source) Stale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Time{}
}

// Words are what the roots say now, and a number that rises when that changes. The error says why that is
// not known: then nobody may act as if they said nothing.
func (s *Source) Words(ctx context.Context) (verify.Words, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	if !s.read.IsZero() && now.Sub(s.read) < freshFor {
		return s.words, s.version, nil
	}
	words, err := s.judge(ctx, now)
	if err != nil {
		return verify.Words{}, 0, err
	}
	s.words, s.read = words, now
	if digest := digestOf(words); digest != s.digest || s.version == 0 {
		s.digest = digest
		s.version++
	}
	return s.words, s.version, nil
}

// judge reads every stored HostStatement, and drops on the way what nobody vouches for, so that a flood
// takes time and no memory.
func (s *Source) judge(ctx context.Context, now time.Time) (verify.Words, error) {
	snapshot, err := s.Policy.Snapshot(ctx, now)
	// check: PolicyUnavailable: words of roots that are no longer, or not yet, in force
	if err != nil {
		return verify.Words{}, err
	}
	var all []*object.HostStatement
	for next := ""; ; {
		var page v1alpha1.HostStatementList
		if err := s.Reader.List(ctx, &page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return verify.Words{}, fmt.Errorf("reading HostStatements: %w", err)
		}
		for i := range page.Items {
			all = append(all, read(&page.Items[i]))
		}
		if len(all) > maxUnjudged {
			if all, err = vouchedFor(snapshot, all); err != nil {
				return verify.Words{}, err
			}
		}
		if next = page.Continue; next == "" {
			return verify.NewWords(snapshot, all)
		}
	}
}

func vouchedFor(s verify.Snapshot, all []*object.HostStatement) ([]*object.HostStatement, error) {
	words, err := verify.NewWords(s, all)
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, h := range all {
		if _, refused := words.Refused[h.Name]; !refused {
			kept = append(kept, h)
		}
	}
	clear(all[len(kept):])
	return kept, nil
}

func read(h *v1alpha1.HostStatement) *object.HostStatement {
	return &object.HostStatement{
		Meta:      object.Meta{Kind: object.KindHostStatement, Name: h.Name, UID: string(h.UID)},
		Statement: h.Spec.Statement, Signatures: h.Spec.Signatures,
	}
}

// digestOf tells two sets of words apart. Refusals count: their objects say so.
func digestOf(w verify.Words) string {
	text := ""
	for _, word := range w.All {
		text += word.Name + "\x00" + string(word.Signed.Text) + "\x00"
		for _, signature := range word.Signed.Signatures {
			text += signature
		}
	}
	for _, name := range sortedNames(w.Refused) {
		text += name + "\x00" + string(w.Refused[name].Reason) + "\x00"
	}
	return digest([]byte(text))
}
