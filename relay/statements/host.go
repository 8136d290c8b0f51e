package statements

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

const (
	// lookEvery is how often a host that knows everything is asked what it knows, a tenth more or less.
	lookEvery = time.Hour
	// meetWithin is how soon a host that was never met is visited although there is nothing to tell it.
	meetWithin = 5 * time.Minute
	// unsupportedFor is how long a host with karpenter-provider-ssh's shim is left alone.
	unsupportedFor = 24 * time.Hour
	// refusedFor is how long a statement that a host refused is not sent again.
	refusedFor = lookEvery
)

// answer is what a host made of a statement that it did not take.
type answer struct {
	result  delivery.Result
	message string
	serial  int64
	at      time.Time
}

// host is what is known of one SSHHost. Its fields are guarded by the memory.
type host struct {
	uid        types.UID
	generation int64
	place      verify.Place
	seen       bool   // place is known
	pinned     string // by which keys; "": by no pin yet

	// sure are the serials that the host was seen to take, or proved, to this process; assumed are those
	// that its HostState tells.
	sure, assumed map[statement.Kind]int64
	refused       map[string]answer // what the host itself answered, by the digest of the text
	last          map[statement.Kind]answer
	// unsupported is when the host said to this process that it takes no statements, and assumedUnsupported
	// when its HostState tells that it did; zero: it did not.
	unsupported, assumedUnsupported time.Time

	facts   *proof.Facts
	doubt   string // why the last proof counts for nothing; "": it counts, or there was none
	skew    int64
	contact time.Time // the host answered
	look    time.Time // when it is asked next
	tried   answer    // the last visit
	fails   int
	retry   time.Time // zero, or not before then
	dirty   bool      // its HostState is behind
}

// memory is what is known of all hosts.
type memory struct {
	mu    sync.Mutex
	hosts map[types.NamespacedName]*host
	count uint64 // rises with each change
}

// anyGeneration is that of who does not know it.
const anyGeneration = -1

func newMemory() *memory { return &memory{hosts: map[types.NamespacedName]*host{}} }

// with gives access to what is known of a host. One that was made anew under its name, or that points
// somewhere else now, is another. anyGeneration takes it as it is.
func (m *memory) with(name types.NamespacedName, uid types.UID, generation int64, do func(*host)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.hosts[name]
	if h != nil && h.generation == anyGeneration {
		h.generation = generation
	}
	if h == nil || h.uid != uid || generation != anyGeneration && h.generation != generation {
		h = newHost(uid, generation)
		m.hosts[name] = h
	}
	m.count++
	do(h)
}

func newHost(uid types.UID, generation int64) *host {
	return &host{
		uid: uid, generation: generation, sure: map[statement.Kind]int64{}, assumed: map[statement.Kind]int64{},
		refused: map[string]answer{}, last: map[statement.Kind]answer{},
	}
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hosts, name)
	m.count++
}

// at is where the host is, and by which keys it is dialled. What answered under other keys was another machine.
func (h *host) at(p verify.Place, pinned string, now time.Time) {
	// check: HostKeyNotPinned: a machine that the Secret pinned for a moment took the statements in place of the host
	if h.pinned != "" && h.pinned != pinned {
		was := *h
		*h = *newHost(was.uid, was.generation)
		h.tried, h.fails, h.retry, h.look, h.dirty = was.tried, was.fails, was.retry, now, true
	}
	h.place, h.seen, h.pinned = p, true, pinned
}

// unseen are the words that a host is to be told before a run: all that this process did not see it take, nor refuse.
func (h *host) unseen(words []verify.Word, now time.Time) []verify.Word {
	return h.lacking(words, h.sure, h.unsupported, now)
}

// pending are those that a visit tells it, by what its HostState tells as well.
func (h *host) pending(words []verify.Word, now time.Time) []verify.Word {
	return h.lacking(words, h.guess(), h.otherShim(), now)
}

// otherShim is when the host had karpenter-provider-ssh's shim, by all that is known; zero: it has ours.
func (h *host) otherShim() time.Time {
	if h.unsupported.IsZero() {
		return h.assumedUnsupported
	}
	return h.unsupported
}

// ours notes that the host has our shim.
func (h *host) ours() { h.unsupported, h.assumedUnsupported = time.Time{}, time.Time{} }

// lacking are the words that are not known, nor in vain: refused a short time ago, or by a shim that takes none.
func (h *host) lacking(words []verify.Word, known map[statement.Kind]int64, unsupported, now time.Time) []verify.Word {
	if !unsupported.IsZero() && now.Sub(unsupported) < unsupportedFor {
		return nil
	}
	var out []verify.Word
	for _, word := range words {
		if known[word.Kind] >= word.Serial {
			continue
		}
		if a, ok := h.refused[digest(word.Signed.Text)]; ok && now.Sub(a.at) < refusedFor {
			continue
		}
		out = append(out, word)
	}
	return out
}

// guess is what is assumed where nothing is sure.
func (h *host) guess() map[statement.Kind]int64 {
	known := maps.Clone(h.assumed)
	for kind, serial := range h.sure {
		known[kind] = serial
	}
	return known
}

// learn takes a host's answers to the words that were sent, in their order.
func (h *host) learn(sent []verify.Word, reports []delivery.StatementReport, now time.Time) {
	for i, r := range reports {
		if i >= len(sent) {
			return
		}
		a := answer{result: r.Result, message: r.Message, serial: r.Serial, at: now}
		key := digest(sent[i].Signed.Text)
		switch r.Result {
		case delivery.Applied:
			h.sure[r.Kind] = max(h.sure[r.Kind], r.Serial)
			h.ours()
			delete(h.refused, key)
		case delivery.Superseded:
			continue
		case delivery.StatementsUnsupported:
			h.unsupported = now
		default:
			// check: StatementRejected: one word of an hour ago, in place of a host's, withholds a revocation
			if r.ShimExit != envelope.Unknown && !retried(r.Result) {
				h.refused[key] = a
			}
		}
		h.last[r.Kind] = a
		h.dirty = true
	}
}

// retried are the answers after which a statement is sent again soon.
func retried(r delivery.Result) bool {
	return r == delivery.Busy || r.Retried()
}

// prove takes what the host proved to know: a state that was put back is found, and told again, and so is
// a host that has another shim than it had, since only ours proves.
func (h *host) prove(f *proof.Facts, now time.Time) {
	h.facts, h.doubt = f, ""
	h.ours()
	h.skew = f.Time - now.Unix()
	h.sure, h.assumed = map[statement.Kind]int64{}, map[statement.Kind]int64{}
	for _, s := range f.Statements {
		h.sure[s.Kind] = s.Serial
	}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
