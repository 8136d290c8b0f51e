package admit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// MaxBody bounds a review. The largest that is legal is an update of an SSHJoinProfile with four
// scripts of 262,144 characters (the CRD's limit) that JSON writes in six bytes each, as "<": 12.6 MiB
// in the object and the old object together. Signatures, managedFields and the rest fit in what is left.
const MaxBody = 16 << 20

const (
	// freeBody is read of any body, without asking for room: whoever sends little and slowly
	// takes no room from others.
	freeBody = 64 << 10
	// smallBody is what a body may have without counting as large.
	smallBody = 1 << 20
)

// maxJudged bounds how many reviews are decoded and judged at once, however many processors there are:
// a decoded one may take a few MiB more than its body.
const maxJudged = 8

// Limits bounds the memory that reviews take together: 64 bodies of up to 1 MiB and two of up to
// MaxBody, of which as many as twice the processors, at most maxJudged, are decoded and judged at a time.
// Room is taken as a body arrives, not as it is announced, and no longer than one review may take.
type Limits struct{ small, large, judging chan struct{} }

// NewLimits returns the shipped limits.
func NewLimits() *Limits {
	return &Limits{
		small: make(chan struct{}, 64), large: make(chan struct{}, 2),
		judging: make(chan struct{}, min(2*runtime.GOMAXPROCS(0), maxJudged)),
	}
}

// take waits for room.
func take(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		// What nobody had time to judge must not pass for lack of an answer.
		return decision.Errorf(decision.Internal, "too many reviews at once").Try("try again")
	}
}

// body is what was read of a request, and the room it takes.
type body struct {
	bytes.Buffer
	held []chan struct{}
}

// beginning is where API servers write the uid.
func (b *body) beginning() []byte { return b.Bytes()[:min(b.Len(), freeBody)] }

// reserve makes room in the buffer for what a step may read, with as much more as ReadFrom wants to see
// the end: else it doubles a buffer that is full.
func (b *body) reserve(announced, limit int64) {
	if announced < 0 || announced > limit {
		announced = limit
	}
	if more := int(announced) - b.Len(); more > 0 {
		b.Grow(more + bytes.MinRead)
	}
}

// release gives the room back.
func (b *body) release() {
	for _, room := range b.held {
		<-room
	}
	b.held = nil
}

// read reads a body. With an error the body holds the beginning, as far as it came.
func (l *Limits) read(ctx context.Context, r *http.Request) (*body, error) {
	b := &body{}
	steps := []struct {
		room  chan struct{} // asked for before the step
		limit int64
	}{{nil, freeBody}, {l.small, smallBody}, {l.large, MaxBody + 1}}
	for _, step := range steps {
		if step.room != nil {
			if err := take(ctx, step.room); err != nil {
				return b, err
			}
			b.held = append(b.held, step.room)
		}
		b.reserve(r.ContentLength, step.limit)
		end, err := b.fill(r.Body, step.limit)
		if end || err != nil {
			return b, err
		}
		// check: TooLarge: work on what nobody vouched for must be bounded
		if r.ContentLength > MaxBody || b.Len() > MaxBody {
			return b, decision.Errorf(decision.TooLarge, "the review has more than %d bytes", MaxBody).
				Try("make the scripts smaller")
		}
	}
	return b, nil
}

// fill reads until b has limit bytes, or to the end.
func (b *body) fill(from io.Reader, limit int64) (end bool, _ error) {
	want := limit - int64(b.Len())
	_, err := io.CopyN(b, from, want)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	// check: Malformed: half a body is none
	if err != nil {
		return false, decision.Errorf(decision.Malformed, "the body broke off after %d bytes: %v", b.Len(), err).Try("try again")
	}
	return false, nil
}
