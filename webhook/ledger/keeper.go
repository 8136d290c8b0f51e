package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// page is how many records are read at once.
const page = 200

// attempts bounds how often a write that was overtaken is judged again.
const attempts = 5

// Keeper keeps the ledger. It implements verify.Ledger by what it read and wrote itself, so that a
// record it wrote a moment ago counts. Make one with New.
type Keeper struct {
	client client.Client
	reader client.Reader
	anchor inforce.Anchor
	log    *slog.Logger
	alarm  func(ctx context.Context, reason, message string)

	mu      sync.RWMutex
	records map[string]*v1alpha1.Ledger // by name; never changed in place
	loaded  bool
	lost    bool // nothing was there when it was read first
	writes  int
}

// New returns a Keeper that has read nothing. The reader must not be a cache: after a conflict the
// present version is needed. Alarm is told what a person should look at.
func New(c client.Client, reader client.Reader, anchor inforce.Anchor, alarm func(ctx context.Context, reason, message string), log *slog.Logger) *Keeper {
	return &Keeper{client: c, reader: reader, anchor: anchor, alarm: alarm, log: log, records: map[string]*v1alpha1.Ledger{}}
}

// Load reads every record. What is gone or lower than what this Keeper knows is written again: it was
// deleted or turned back by somebody else. It returns how many were read, and how many written.
func (k *Keeper) Load(ctx context.Context) (read, restored int, err error) {
	stored := map[string]*v1alpha1.Ledger{}
	for next := ""; ; {
		var list v1alpha1.LedgerList
		if err := k.reader.List(ctx, &list, client.Limit(page), client.Continue(next)); err != nil {
			return 0, 0, fmt.Errorf("reading the ledger: %w", err)
		}
		for i := range list.Items {
			stored[list.Items[i].Name] = &list.Items[i]
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	behind := k.take(stored)
	for _, known := range behind {
		if err := k.restore(ctx, known, stored[known.Name]); err != nil {
			return len(stored), restored, err
		}
		restored++
	}
	return len(stored), restored, nil
}

// take puts what is stored into memory, and returns the records of which memory knows more.
func (k *Keeper) take(stored map[string]*v1alpha1.Ledger) (behind []*v1alpha1.Ledger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.loaded {
		k.loaded, k.lost = true, stored[v1alpha1.LedgerPolicyName] == nil
	}
	for name, known := range k.records {
		if lower(stored[name], known) {
			behind = append(behind, known)
		}
	}
	for name, record := range stored {
		if known := k.records[name]; known == nil || !lower(record, known) {
			k.records[name] = record
		}
	}
	return behind
}

// lower reports whether a stored record says less than one that was known.
func lower(stored, known *v1alpha1.Ledger) bool {
	if stored == nil {
		return true
	}
	if p := known.Spec.Profile; p != nil {
		return stored.Spec.Profile == nil || stored.Spec.Profile.Serial < p.Serial
	}
	if known.Spec.Slots != nil {
		return lowerSlots(stored.Spec.Slots, known.Spec.Slots)
	}
	p, s := known.Spec.Policy, stored.Spec.Policy
	return s == nil || s.Version < p.Version || s.RootVersion < p.RootVersion
}

// restore writes a record again as it was known.
func (k *Keeper) restore(ctx context.Context, known, stored *v1alpha1.Ledger) error {
	next := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: known.Name}, Spec: *known.Spec.DeepCopy()}
	if stored != nil {
		next.ObjectMeta = *stored.ObjectMeta.DeepCopy()
		keepUsed(next, stored)
	}
	return k.write(ctx, next)
}

// keepUsed adds to a record the resets that a stored one names as used: whoever lowered that may have
// written honest ones too, and policies/ledger.yaml lets none go.
func keepUsed(next, stored *v1alpha1.Ledger) {
	if p, s := next.Spec.Profile, stored.Spec.Profile; p != nil && s != nil && p.Reset == "" {
		p.Reset = s.Reset
	}
	p, s := next.Spec.Policy, stored.Spec.Policy
	if p == nil || s == nil {
		return
	}
	used := slices.Clone(s.ResetsUsed)
	for _, id := range p.ResetsUsed {
		if !slices.Contains(used, id) {
			used = append(used, id)
		}
	}
	p.ResetsUsed = used[max(0, len(used)-maxResets):]
}

// Lost reports whether there was no ledger when it was read first: it is new, or was lost.
func (k *Keeper) Lost() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.lost
}

// Loaded reports whether the ledger has been read.
func (k *Keeper) Loaded() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.loaded
}

// Writes counts what was written.
func (k *Keeper) Writes() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.writes
}

// Mark is the highest version of a profile that was seen stored and verified.
func (k *Keeper) Mark(profile string) (ledger.Mark, bool) {
	l := k.record(v1alpha1.LedgerProfilePrefix + profile)
	if l == nil || l.Spec.Profile == nil {
		return ledger.Mark{}, false
	}
	return ledger.Mark{Serial: l.Spec.Profile.Serial, Digest: string(l.Spec.Profile.Digest)}, true
}

// ResetUsed reports whether a reset was applied: the record of policies names it or, until that is
// written too, a profile's own.
func (k *Keeper) ResetUsed(id string) bool {
	if policyOf(k.record(v1alpha1.LedgerPolicyName)).ResetUsed(id) {
		return true
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, l := range k.records {
		if l.Spec.Profile != nil && string(l.Spec.Profile.Reset) == id {
			return true
		}
		if l.Spec.Slots != nil && record.SlotReset(l.Spec.Slots, id) {
			return true
		}
	}
	return false
}

// record is what is known under a name; nil where nothing is.
func (k *Keeper) record(name string) *v1alpha1.Ledger {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.records[name]
}

// write stores a record that was made from the one that is known, and knows it. A conflict leaves
// both as they are.
func (k *Keeper) write(ctx context.Context, l *v1alpha1.Ledger) error {
	var err error
	if l.ResourceVersion == "" {
		err = k.client.Create(ctx, l)
	} else {
		err = k.client.Update(ctx, l)
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records[l.Name] = l
	k.writes++
	return nil
}

// change writes what next makes of the record under a name, and asks it again by the stored record
// where somebody else was faster. Next returns nil where nothing is to be written.
func (k *Keeper) change(ctx context.Context, name string, next func(known *v1alpha1.Ledger) (*v1alpha1.Ledger, error)) error {
	for range attempts {
		l, err := next(k.record(name))
		if err != nil || l == nil {
			return err
		}
		err = k.write(ctx, l)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
		if err := k.reread(ctx, name); err != nil {
			return err
		}
	}
	return fmt.Errorf("writing Ledger %s: somebody else changes it as well", name)
}

// reread takes a record as it is stored, where that says no less than what is known; where it does,
// what is known stays and is written over the present version.
func (k *Keeper) reread(ctx context.Context, name string) error {
	stored := &v1alpha1.Ledger{}
	err := k.reader.Get(ctx, types.NamespacedName{Name: name}, stored)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.records[name]
	if known == nil {
		if err == nil {
			k.records[name] = stored
		}
		return nil
	}
	if err == nil && !lower(stored, known) {
		k.records[name] = stored
		return nil
	}
	kept := known.DeepCopy()
	kept.ResourceVersion, kept.UID = stored.ResourceVersion, stored.UID // both empty where it is gone: it is made again
	keepUsed(kept, stored)
	k.records[name] = kept
	return nil
}
