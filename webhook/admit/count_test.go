package admit

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// managed is the host as many writers left it: managedFields of so many fields each.
func managed(o fields, writers, each int) fields {
	var entries []fields
	for w := range writers {
		named := fields{}
		for f := range each {
			named[fmt.Sprintf("f:example.com/label-%d", f)] = fields{}
		}
		entries = append(entries, fields{
			"manager": fmt.Sprintf("writer-%d", w), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": fields{"f:metadata": fields{"f:labels": named}},
		})
	}
	return withIn(o, "metadata", "managedFields", entries)
}

func TestWhatAReviewExpandsToIsBounded(t *testing.T) {
	w := newWorld(t)
	text := review(t, create(t, w.host()))
	has := strings.Count(text, `":`) + strings.Count(text, `,"`) // no text holds any
	uid := `"uid":"1",`
	// member puts a member with the value after the uid.
	member := func(value string) string { return strings.Replace(text, uid, uid+`"x":`+value+",", 1) }
	deep := func(n int) string { return member(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	list := func(separators int) string { return member("[0" + strings.Repeat(",0", separators-2) + "]") }
	quoted := strings.Repeat(`:,[{\"`, maxSeparators)
	for name, c := range map[string]struct {
		body string
		want decision.Reason
	}{
		"a host":                         {text, decision.Verified},
		"with many managedFields":        {review(t, create(t, managed(w.host(), 20, 200))), decision.Verified},
		"with too many":                  {review(t, create(t, managed(w.host(), 400, 200))), decision.TooLarge},
		"as many values as may be":       {list(maxSeparators - has), decision.Verified},
		"one more":                       {list(maxSeparators - has + 1), decision.TooLarge},
		"as deep as may be":              {deep(maxDepth - 2), decision.Verified},
		"one deeper":                     {deep(maxDepth - 1), decision.TooLarge},
		"a million deep":                 {deep(1 << 20), decision.TooLarge},
		"many after each other":          {member("[" + strings.Repeat("[],", 5000) + "[]]"), decision.Verified},
		"too many empty lists":           {member("[" + strings.Repeat("[],", maxSeparators) + "[]]"), decision.TooLarge},
		"many signs, all in texts":       {member(`"` + quoted + `"`), decision.Verified},
		"many after a text that escapes": {member(`"\\",` + `"y":[` + strings.Repeat("0,", maxSeparators) + "0]"), decision.TooLarge},
		"a text without an end":          {text[:len(text)-4] + `"` + strings.Repeat(",", maxSeparators), decision.Malformed},
		"an escape at the end":           {text[:len(text)-4] + `"\`, decision.Malformed},
		"text in UTF-8":                  {member(`"ä"`), decision.Verified},
		"text in Latin-1":                {member("\"\xe4\""), decision.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := answerOfBody(t, post(w.endpoint(), strings.NewReader(c.body)))
			if r == nil || r.UID != "1" || reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("%+v; want %s", r, c.want)
			}
		})
	}
}

func TestWhatStandsInAReviewIsCountedFast(t *testing.T) {
	w := newWorld(t)
	text := review(t, create(t, w.host()))
	for name, piece := range map[string]string{"texts": "x", "escapes": `\\`, "separators": `","`} {
		body := strings.Replace(text, `"uid":"1",`, `"uid":"1","x":["`+strings.Repeat(piece, (MaxBody-len(text)-20)/len(piece))+`"],`, 1)
		began := time.Now()
		r := answerOfBody(t, post(w.endpoint(), strings.NewReader(body)))
		if took := time.Since(began); r == nil || took > 20*time.Second { // whatever else the machine does
			t.Errorf("%s: %+v in %s", name, r, took)
		} else {
			t.Logf("%s: %s in %s", name, reason(r), took)
		}
	}
}

// peakHeap is the most that the heap had while f ran, and what it had before.
func peakHeap(f func()) (peak, before uint64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before = m.HeapInuse
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return peak, before
}

// posted is a body and what it is answered.
type posted struct {
	body string
	want decision.Reason
}

// members is JSON members with the value, each of another name, in so many bytes at most and of the given
// number at most.
func members(value string, size, number int) string {
	all := make([]byte, 0, size)
	for i := 0; i < number && len(all) < size-len(value)-16; i++ {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(strconv.AppendInt(append(all, '"'), int64(i), 36), '"', ':')
		all = append(all, value...)
	}
	return string(all)
}

// floods are the bodies that take the most memory for their size.
func floods(t *testing.T, w *world) (large, small []posted) {
	t.Helper()
	text := review(t, create(t, w.host()))
	after := func(place, more string) string { return strings.Replace(text, place, place+more+",", 1) }
	const object, few = `"object":{`, maxSeparators/2 - 500
	from := func(user string) string { return strings.Replace(text, `"userInfo":{}`, `"userInfo":{`+user+`}`, 1) }
	scripts := map[string]string{}
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		scripts[phase] = strings.Repeat("<", 262144)
	}
	legal := review(t, update(t, profile(scripts, []string{}), profile(scripts, nil)))
	room := MaxBody - len(text) - 64
	most := `"x":{` + members("0", MaxBody, few) + `}`
	large = []posted{
		{after(object, `"x":{`+members("0", room, MaxBody)+`}`), decision.TooLarge},
		{from(`"extra":{` + members("[]", room, MaxBody) + `}`), decision.TooLarge},
		{after(object, most+`,"y":"`+strings.Repeat(`\u003c`, (room-len(most))/6)+`"`), decision.Verified},
		{from(`"username":"` + strings.Repeat("\xff", room) + `"`), decision.Malformed},
		{legal, decision.Unsigned},
	}
	room = smallBody - len(text) - 64
	small = []posted{
		{after(object, `"x":{`+members("0", room, MaxBody)+`}`), decision.TooLarge},
		{after(object, most+`,"y":"`+strings.Repeat(`x`, room-len(most))+`"`), decision.Verified},
		{from(`"extra":{` + members("[]", room, few) + `}`), decision.Verified},
	}
	return large, small
}

// allAtOnce posts bodies, a third of them unannounced.
func allAtOnce(e *Endpoint, bodies []posted, answered func(posted, string)) {
	var all sync.WaitGroup
	for i, p := range bodies {
		all.Go(func() {
			body := io.Reader(strings.NewReader(p.body))
			if i%3 == 0 {
				body = io.MultiReader(body)
			}
			answered(p, post(e, body).Body.String())
		})
	}
	all.Wait()
}

// The container may have 256 MiB. What the test itself holds stands for the rest of the program, which
// takes less than 96 MiB with its snapshot.
func TestFloodsOfReviewsStaySmall(t *testing.T) {
	const bound = 224 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(200 << 20)) // as in manifests/base/deployment-webhook.yaml
	w := newWorld(t)
	w.validator.Recorder = uncounted{}
	large, small := floods(t, w)
	flood := func(r Reviewer, bodies []posted, answered func(posted, string)) {
		e := &Endpoint{Reviewer: r, Limits: NewLimits(), Recorder: uncounted{}, Log: silent()}
		e.Limits.judging = make(chan struct{}, maxJudged) // as with many processors
		peak, before := peakHeap(func() { allAtOnce(e, bodies, answered) })
		t.Logf("%T: at most %d MiB, %d before", r, peak>>20, before>>20)
		if peak > bound {
			t.Errorf("%T: the heap had %d MiB; want no more than %d", r, peak>>20, bound>>20)
		}
	}
	flood(w.validator, slices.Concat(slices.Repeat(small, 64/len(small)+1), large), func(p posted, answer string) {
		if !strings.Contains(answer, `"reason":"`+string(p.want)+`"`) {
			t.Errorf("%.300s; want %s", answer, p.want)
		}
	})
	flood(&Mutator{Trust: w.trust, Annotate: true, Log: silent(), Now: w.validator.Now}, slices.Concat(small, large), func(posted, string) {})
}

// uncounted counts nothing, from many sides at once.
type uncounted struct{}

func (uncounted) Decided(string, string, decision.Reason, time.Duration, bool) {}
func (uncounted) Canary(string)                                                {}
func (uncounted) Unread(decision.Reason)                                       {}
