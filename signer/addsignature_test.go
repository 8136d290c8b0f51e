package main

import (
	"bytes"
	"crypto/rand"
	"slices"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestNoMoreSignaturesThanReadersTake(t *testing.T) {
	w := newWorld(t)
	text := []byte("text\n")
	var have []string
	for range quorum.MaxSignatures {
		have = append(have, testkit.Sign(t, testkit.NewSigner(t, "ed25519"), "test", text))
	}
	c := &cli{rand: rand.Reader, now: testkit.Now}
	if s, err := c.addSignature("test", text, have[1:], w.alice, false); err != nil || s.at != quorum.MaxSignatures-1 || len(s.all) != quorum.MaxSignatures {
		t.Errorf("the last that fits: %+v, %v", s, err)
	}
	if _, err := c.addSignature("test", text, have, w.alice, false); err == nil || decision.From(err).Reason != decision.SignatureMalformed {
		t.Errorf("one more: %v", err)
	}
	own := testkit.Sign(t, w.alice, "test", text)
	if s, err := c.addSignature("test", text, append(have[:15:15], own), w.alice, false); err != nil || s.at != 15 || len(s.all) != 16 {
		t.Errorf("one's own again: %+v, %v", s, err)
	}
}

func TestSignaturesOfAnotherTextAreDroppedOnlyWhenAsked(t *testing.T) {
	w := newWorld(t)
	text := []byte("text\n")
	good := testkit.Sign(t, testkit.NewSigner(t, "ed25519"), "test", text)
	stale := testkit.Sign(t, w.bob, "test", []byte("other\n"))
	own := testkit.Sign(t, w.alice, "test", []byte("other\n"))
	var said bytes.Buffer
	c := &cli{rand: rand.Reader, now: testkit.Now, err: &said}
	for name, tt := range map[string]struct {
		have    []string
		dropped []int
		at, all int
	}{
		"none is stale":             {[]string{good, own}, nil, 1, 2},
		"all are":                   {[]string{stale, stale}, []int{0, 1}, 0, 1},
		"one before the own":        {[]string{stale, own, good}, []int{0}, 0, 2},
		"one behind the own":        {[]string{own, stale}, []int{1}, 0, 1},
		"one that cannot be read":   {[]string{"none", good}, []int{0}, 1, 2},
		"one for another namespace": {[]string{testkit.Sign(t, w.bob, "kpssh", text)}, []int{0}, 0, 1},
		"the own one twice":         {[]string{own, good, own}, []int{2}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := c.addSignature("test", text, tt.have, w.alice, true)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.dropped, tt.dropped) || s.at != tt.at || len(s.all) != tt.all {
				t.Errorf("dropped %v, own at %d of %d", s.dropped, s.at, len(s.all))
			}
			_, err = c.addSignature("test", text, tt.have, w.alice, false)
			if stale := tt.dropped != nil && name != "the own one twice"; (err != nil) != stale {
				t.Errorf("without being asked: %v", err)
			}
		})
	}
}
