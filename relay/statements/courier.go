package statements

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/hostrun"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/schedule"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Turns gives a host to one at a time, within the limit over all hosts. hostrun.Line does.
type Turns interface {
	Take(ctx context.Context, c schedule.Claim) (release func(), err error)
}

// Caller reaches hosts. The real one is delivery.Call.
type Caller func(ctx context.Context, t transport.Target, l transport.Limits, s []statement.Signed, q delivery.Question) (delivery.Visit, error)

const (
	// turnWait is how long a visit waits for its host: a run may take two hours.
	turnWait = 20 * time.Second
	// minRetry and maxRetry bound the time between two visits of a host that did not answer.
	minRetry, maxRetry = 5 * time.Second, 10 * time.Minute
)

// Courier brings the roots' statements to hosts. Make one with New.
type Courier struct {
	Client    client.Client // reads a cache; writes HostStates and the status of HostStatements
	Reader    client.Reader // reads what is stored
	Policy    Policy
	Source    *Source
	Turns     Turns
	Call      Caller
	ClusterID string
	Limits    transport.Limits
	Metrics   *Metrics
	Now       func() time.Time
	Rand      io.Reader // of nonces

	memory *memory
	heard  chan event.GenericEvent // hosts that a run told something
}

// maxHeard is how many of those may wait; the others are written down at their next look.
const maxHeard = 1024

// New completes a Courier.
func New(c Courier) *Courier {
	c.memory, c.heard = newMemory(), make(chan event.GenericEvent, maxHeard)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &c
}

var _ hostrun.Statements = (*Courier)(nil)

// Before gives what a host was not seen to know by this process.
func (c *Courier) Before(ctx context.Context, h *object.Host, t transport.Target) (hostrun.Telling, error) {
	words, _, err := c.Source.Words(ctx)
	if err != nil {
		return hostrun.Telling{}, err
	}
	name, uid := types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, types.UID(h.UID)
	var pending []verify.Word
	c.memory.with(name, uid, anyGeneration, func(m *host) {
		m.at(placeOf(h, t.Pin), pinned(t.Pin), c.Now())
		pending = m.unseen(words.For(m.place), c.Now())
	})
	if len(pending) == 0 {
		return hostrun.Telling{}, nil
	}
	return hostrun.Telling{Statements: signed(pending), Heard: func(reports []delivery.StatementReport) {
		c.memory.with(name, uid, anyGeneration, func(m *host) { m.learn(pending, reports, c.Now()) })
		at := hostMetadata()
		at.SetNamespace(h.Namespace)
		at.SetName(h.Name)
		select {
		case c.heard <- event.GenericEvent{Object: at}:
		default:
		}
	}}, nil
}

func placeOf(h *object.Host, pin transport.Pin) verify.Place {
	p := verify.Place{Class: h.Class(), AnyKey: len(pin.Authorities()) > 0}
	for _, key := range pin.Keys() {
		p.Keys = append(p.Keys, sshsig.Fingerprint(key))
	}
	return p
}

// pinned tells pins apart, in whatever order they are written.
func pinned(pin transport.Pin) string {
	var all []string
	for _, key := range pin.Keys() {
		all = append(all, sshsig.Fingerprint(key))
	}
	for _, key := range pin.Authorities() {
		all = append(all, "authority "+sshsig.Fingerprint(key))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func signed(words []verify.Word) []statement.Signed {
	var out []statement.Signed
	for _, w := range words {
		out = append(out, w.Signed)
	}
	return out
}

// visit is what may be done at a host.
type visit struct {
	host    *object.Host
	target  transport.Target
	refused *judge.Refusal
}

// prepare judges a host as it is stored now. One that karpenter-provider-ssh has claimed is told as well:
// nothing of it is run by that.
func (c *Courier) prepare(ctx context.Context, name types.NamespacedName) (visit, error) {
	s, err := c.Policy.Snapshot(ctx, c.Now())
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return visit{refused: judge.RefusedBy(e.Denied(object.KindTrustPolicy, object.TrustPolicyName))}, nil
	}
	if err != nil {
		return visit{}, err
	}
	var stored judge.Stored
	if err := (judge.Objects{Reader: c.Reader}).Host(ctx, name.Namespace, name.Name, &stored); err != nil {
		return visit{}, err
	}
	if stored.Host == nil {
		return visit{refused: judge.Refuse(judge.ReasonHostNotFound, "there is no such SSHHost")}, nil
	}
	h, err := object.ParseHost(stored.Host)
	if err != nil {
		return visit{refused: judge.RefusedBy(decision.From(err).Denied(object.KindHost, name.Name))}, nil
	}
	// check: RawRefused: a host that was admitted under another policy, or past the webhook, is dialled with the relay's key
	if d := verify.Host(s, h, nil); !d.Allowed() {
		return visit{refused: judge.RefusedBy(d)}, nil
	}
	// check: InUse: a host that is being given up is dialled for as long as somebody's finalizer holds it
	if h.Deleting {
		return visit{refused: judge.Refuse(judge.ReasonHostNotFound, "the SSHHost is being deleted")}, nil
	}
	secret, refused, err := hostrun.ReadSecret(ctx, c.Reader, name.Namespace, h.SecretName, "the keys of the SSHHost")
	if err != nil || refused != nil {
		return visit{refused: refused}, err
	}
	v := visit{host: h}
	if v.target, v.refused = hostrun.Target(h, secret); v.refused != nil {
		return v, nil
	}
	disputed, err := hostrun.Disputed(ctx, c.Reader, s.Policy, h, v.target.Pin)
	if err != nil {
		return visit{}, err
	}
	// check: HostKeyNotPinned: whoever writes the host's Secret has a machine of his own take its statements
	if disputed != nil {
		return visit{refused: disputed}, nil
	}
	return v, nil
}

// visit goes to one host, to tell it what it lacks and to ask what it knows.
func (c *Courier) visit(ctx context.Context, name types.NamespacedName, uid types.UID, generation int64, words verify.Words) error {
	v, err := c.prepare(ctx, name)
	if err != nil {
		return err
	}
	if v.refused != nil {
		c.memory.with(name, uid, generation, func(m *host) { m.failed(delivery.Result(v.refused.Reason), v.refused.Message, c.Now()) })
		return nil
	}
	var pending []verify.Word
	c.memory.with(name, uid, generation, func(m *host) {
		m.at(placeOf(v.host, v.target.Pin), pinned(v.target.Pin), c.Now())
		pending = m.pending(words.For(m.place), c.Now())
	})
	question, err := c.question()
	if err != nil {
		return err
	}
	came, err := c.Call(ctx, v.target, c.Limits, signed(pending), question)
	if err != nil {
		return err
	}
	facts, doubt := c.factsOf(v, came.Proof, question)
	now := c.Now()
	c.memory.with(name, uid, generation, func(m *host) {
		m.learn(pending, came.Statements, now)
		m.doubt = doubt
		if facts != nil {
			m.prove(facts, now)
		}
		m.came(came, now)
	})
	return nil
}

func (c *Courier) question() (delivery.Question, error) {
	nonce := make([]byte, 32)
	if _, err := io.ReadFull(c.Rand, nonce); err != nil {
		return delivery.Question{}, fmt.Errorf("making a nonce: %v", err)
	}
	return delivery.Question{Nonce: hex.EncodeToString(nonce), RunUID: string(uuid.NewUUID())}, nil
}

// factsOf are those that the pinned key of the host vouches for, nil where there are none: a shim without
// proofs, or one whose proof counts for nothing, and why.
func (c *Courier) factsOf(v visit, output []byte, q delivery.Question) (*proof.Facts, string) {
	if len(output) == 0 {
		return nil, ""
	}
	text, armored := proof.Split(output)
	f, err := proof.Verify(text, armored, proof.Host{
		Keys: v.target.Pin.Keys(), Authorities: v.target.Pin.Authorities(), Principals: []string{v.host.Address},
	}, proof.Question{Cluster: c.ClusterID, RunUID: q.RunUID, Nonce: q.Nonce}, c.Now())
	if err != nil {
		return nil, err.Error()
	}
	return f, ""
}

// came notes that a host was visited.
func (h *host) came(v delivery.Visit, now time.Time) {
	if v.Result != delivery.Applied {
		h.failed(v.Result, v.Message, now)
		return
	}
	h.tried = answer{result: v.Result, message: v.Message, at: now}
	h.contact, h.dirty = now, true
	h.fails, h.retry = 0, time.Time{}
	h.look = now.Add(wait.Jitter(lookEvery*9/10, 0.2))
}

// failed notes that a host could not be visited.
func (h *host) failed(result delivery.Result, message string, now time.Time) {
	h.tried = answer{result: result, message: message, at: now}
	h.dirty = true
	delay := maxRetry
	switch {
	case result == delivery.Result(decision.RawRefused):
		delay = lookEvery // nothing to do there before the object changes
	case h.fails < 7:
		delay = min(minRetry<<h.fails, maxRetry)
	}
	h.fails++
	h.retry = now.Add(wait.Jitter(delay, 0.5))
	h.look = h.retry
}

// next says when a host is to be visited: now, or after that time.
func (h *host) next(words verify.Words, now time.Time) time.Duration {
	if now.Before(h.retry) {
		return h.retry.Sub(now)
	}
	if !h.seen || len(h.pending(words.For(h.place), now)) > 0 {
		// Who was never met, and knows of no news, waits for its place among all that were not (assume).
		if h.seen || len(words.For(h.place)) > 0 || !now.Before(h.look) {
			return 0
		}
	}
	return max(h.look.Sub(now), 0)
}

// Reconcile looks after one SSHHost.
func (c *Courier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	meta := hostMetadata()
	if err := c.Client.Get(ctx, request.NamespacedName, meta); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.memory.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	words, _, err := c.Source.Words(ctx)
	if e, ok := errors.AsType[*decision.Error](err); ok {
		noWords(ctx, e)
		return ctrl.Result{RequeueAfter: wait.Jitter(freshFor, 1)}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	uid, generation := meta.GetUID(), meta.GetGeneration()
	if err := c.recall(ctx, meta); err != nil {
		return ctrl.Result{}, err
	}
	var wait time.Duration
	look := func(m *host) {
		m.place.Class, m.place.AnyKey = classOf(meta), m.place.AnyKey || !m.seen
		wait = m.next(words, c.Now())
	}
	c.memory.with(request.NamespacedName, uid, generation, look)
	if wait == 0 {
		if err := c.inTurn(ctx, request.NamespacedName, func() error { return c.visit(ctx, request.NamespacedName, uid, generation, words) }); err != nil {
			return ctrl.Result{}, err
		}
		c.memory.with(request.NamespacedName, uid, generation, look)
	}
	if err := c.save(ctx, meta, words); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(wait, time.Second)}, nil
}

// noWords: nothing is told while nobody knows what the roots say.
func noWords(ctx context.Context, e *decision.Error) {
	ctrl.LoggerFrom(ctx).V(1).Info("nothing is told to hosts", "reason", e.Reason, "message", e.What)
}

// inTurn does something while no run has the host.
func (c *Courier) inTurn(ctx context.Context, name types.NamespacedName, do func() error) error {
	waiting, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	release, err := c.Turns.Take(waiting, schedule.Claim{Namespace: name.Namespace, Host: name.Name})
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil // its run tells it
		}
		return err
	}
	defer release()
	return do()
}
