package drift

import "fmt"

// Missing is what is said of an object that is not there.
const Missing = "is missing"

// touchedSince is what is said of one that is as shipped, and was not all the time.
const touchedSince = "was changed, or deleted and made again, since it was looked at last; the audit log says by whom"

// Looks compares objects, and remembers those that were as shipped. It is not safe for concurrent use.
type Looks struct {
	known map[string]look
}

// look is what an object was known by when it was as shipped. Between two looks there is time for a guard
// to be taken away, used and put back.
type look struct {
	uid        string
	generation int64
	bundles    string // the caBundles, whose renewal is a change too
}

// At says how a live object differs from the shipped one; nil where it does not. A nil live object is missing.
func (l *Looks) At(shipped, live Object) []Difference {
	var all []Difference
	for _, what := range l.look(shipped, live) {
		all = append(all, Difference{shipped.Kind(), shipped.Name(), what})
	}
	return all
}

func (l *Looks) look(shipped, live Object) []string {
	if live == nil {
		delete(l.known, shipped.String())
		return []string{Missing}
	}
	if found := compare(shipped, live); len(found) > 0 {
		delete(l.known, shipped.String()) // what is put right again is no other alarm
		return found
	}
	if l.touched(shipped.String(), lookAt(live)) {
		return []string{touchedSince}
	}
	return nil
}

// touched says whether an object that is as shipped was anything else since the last look.
func (l *Looks) touched(key string, now look) bool {
	was, known := l.known[key]
	if l.known == nil {
		l.known = map[string]look{}
	}
	l.known[key] = now
	return known && (was.uid != now.uid || was.generation != now.generation && !renewed(was, now))
}

// renewed says whether the caBundle changed and nothing did beside.
func renewed(was, now look) bool {
	// check: Unsigned: who may renew the caBundle opens the guard, uses that, and closes it with another caBundle
	if now.generation != was.generation+1 {
		return false
	}
	return was.bundles != now.bundles
}

func lookAt(live Object) look {
	l := look{uid: Object(live.metadata()).text("uid"), generation: as[int64](live.metadata()["generation"])}
	for _, hook := range as[[]any](live["webhooks"]) {
		config := as[map[string]any](as[map[string]any](hook)["clientConfig"])
		l.bundles += fmt.Sprintln(config["caBundle"])
	}
	return l
}
