package envelope

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// tailSize is more than the longest trailer with its line feed (about 190
// bytes): all that a TrailerReader holds back.
const tailSize = 256

const readSize = 4096

// ErrNoTrailer says that the stream did not end with an acceptable trailer.
var ErrNoTrailer = errors.New("no trailer")

// TrailerReader passes on a run's stdout and keeps its trailer back. A trailer
// counts only as the last bytes before EOF, with the run-id and phase of this
// run, and with the count and digest of what was received: a script can print
// lines that look like one, but never as the last bytes of a run whose run-id
// it does not know, and a stream that was cut has none.
//
// Memory is bounded whatever the stream holds.
type TrailerReader struct {
	src   io.Reader
	runID RunID
	phase Phase

	ready []byte // output that Read may pass on
	tail  []byte // received, may still belong to the trailer
	sum   hash.Hash
	count int64 // bytes of output that sum holds

	end     error // what Read answers once ready is empty; nil: more may come
	trailer Trailer
	refusal error
}

// NewTrailerReader reads src as the stdout of one run.
func NewTrailerReader(src io.Reader, runID RunID, phase Phase) *TrailerReader {
	return &TrailerReader{src: src, runID: runID, phase: phase, sum: sha256.New(), refusal: ErrNoTrailer}
}

// Trailer gives the accepted trailer once Read has answered io.EOF. Before, and
// where there was none, the error wraps ErrNoTrailer and says why.
func (r *TrailerReader) Trailer() (Trailer, error) {
	return r.trailer, r.refusal
}

// Read gives the script's output without the trailer.
func (r *TrailerReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 && len(p) > 0 {
		if r.end != nil {
			return 0, r.end
		}
		r.fill()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// fill reads once. What can no longer belong to a trailer becomes output.
func (r *TrailerReader) fill() {
	var chunk [readSize]byte
	n, err := r.src.Read(chunk[:])
	r.tail = append(r.tail, chunk[:n]...)
	if over := len(r.tail) - tailSize; over > 0 {
		r.output(r.tail[:over])
		r.tail = append(r.tail[:0], r.tail[over:]...)
	}
	if err == nil {
		return
	}
	r.end = err
	rest := r.tail
	if errors.Is(err, io.EOF) {
		rest = r.judge()
	}
	r.ready = append(r.ready, rest...)
	r.tail = nil
}

// output hashes bytes and makes them ready. It is called only when ready is
// empty, so ready never grows beyond one chunk and one tail.
func (r *TrailerReader) output(b []byte) {
	r.sum.Write(b)
	r.count += int64(len(b))
	r.ready = append(r.ready[:0], b...)
}

// judge looks for the trailer in the tail and gives back what of the tail is
// output: all of it where there is no acceptable trailer.
func (r *TrailerReader) judge() []byte {
	at := bytes.LastIndex(r.tail, []byte(trailerName+": "))
	if at < 0 || r.tail[len(r.tail)-1] != '\n' {
		r.refusal = fmt.Errorf("%w: the stream ends without one", ErrNoTrailer)
		return r.tail
	}
	t, err := ParseTrailer(string(r.tail[at : len(r.tail)-1]))
	if err != nil {
		r.refusal = fmt.Errorf("%w: %v", ErrNoTrailer, err)
		return r.tail
	}
	if err := r.accept(t, r.tail[:at]); err != nil {
		r.refusal = fmt.Errorf("%w: %v", ErrNoTrailer, err)
		return r.tail
	}
	r.trailer, r.refusal = t, nil
	return r.tail[:at]
}

// accept compares the trailer with this run and with what was received. The
// trailer stands right after the last byte of output, whatever that is.
func (r *TrailerReader) accept(t Trailer, body []byte) error {
	// check: Malformed: the trailer of another run, replayed or printed by a script
	if t.RunID != r.runID {
		return errors.New("the trailer is for another run")
	}
	if t.Phase != r.phase {
		return errors.New("the trailer is for another phase")
	}
	got := r.count + int64(len(body))
	if got != t.Bytes {
		return fmt.Errorf("%d bytes came before the trailer, which says %d", got, t.Bytes)
	}
	r.sum.Write(body)
	// check: Malformed: output changed or replaced between the script and the reader
	if !bytes.Equal(r.sum.Sum(nil), t.SHA256[:]) {
		return errors.New("the bytes before the trailer have another digest than it says")
	}
	return nil
}
