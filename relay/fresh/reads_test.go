package fresh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// store is what is read: a value that a read takes when it begins, and gives a second later.
type store struct {
	Reads[string, int]
	value int
	reads int
	err   error
}

func (s *store) read(ctx context.Context) (int, error) {
	s.reads++
	value, err := s.value, s.err
	select {
	case <-time.After(time.Second):
		return value, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// asks has so many ask, and gives their answers when they have them. It returns when all wait.
func (s *store) asks(ctx context.Context, n int) <-chan string {
	answers := make(chan string, n)
	for range n {
		go func() {
			value, err := s.Do(ctx, "it", s.read)
			answers <- fmt.Sprint(value, " ", err)
		}()
	}
	synctest.Wait()
	return answers
}

func wants(t *testing.T, who string, answers <-chan string, want string) {
	t.Helper()
	for range cap(answers) {
		if got := <-answers; got != want {
			t.Errorf("%s: %s; want %s", who, got, want)
		}
	}
}

func TestAReadIsSharedByWhoAskedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: 1}
		first := s.asks(t.Context(), 1)
		s.value = 2
		during := s.asks(t.Context(), 10) // the first read is on its way: what it found is too old for them
		wants(t, "who asked first", first, "1 <nil>")
		synctest.Wait()
		s.value = 3
		later := s.asks(t.Context(), 10)
		wants(t, "who asked while a read was on its way", during, "2 <nil>")
		wants(t, "who asked after the next had begun", later, "3 <nil>")
		if s.reads != 3 {
			t.Errorf("%d reads", s.reads)
		}
		synctest.Wait()
		s.value = 4
		wants(t, "who asked when all was quiet", s.asks(t.Context(), 1), "4 <nil>")
	})
}

func TestAnErrorIsThatOfOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: 1, err: errors.New("away")}
		first := s.asks(t.Context(), 1)
		s.err = nil
		next := s.asks(t.Context(), 2)
		wants(t, "first", first, "1 away")
		wants(t, "next", next, "1 <nil>")
	})
}

func TestWhoGivesUpEndsNoReadOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: 1}
		impatient, giveUp := context.WithCancel(t.Context())
		begun := s.asks(impatient, 1)
		patient := s.asks(t.Context(), 1)
		waiting := s.asks(impatient, 1) // the last to ask, whose function is called
		giveUp()
		wants(t, "of the read on its way", begun, "0 waiting for a read: context canceled")
		wants(t, "of the next", waiting, "0 waiting for a read: context canceled")
		wants(t, "who waited with them", patient, "1 <nil>")
	})
}

func TestAReadToWhichNobodyAnswersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: 1}
		stuck := make(chan error, 1)
		go func() {
			_, err := s.Do(t.Context(), "it", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			stuck <- err
		}()
		synctest.Wait()
		began := time.Now()
		next := s.asks(t.Context(), 1)
		wants(t, "who asked meanwhile", next, "1 <nil>")
		if err := <-stuck; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != bound+time.Second {
			t.Errorf("after %s", took)
		}
	})
}

// Nobody is given what was stored before they asked, whoever else asks.
func TestNobodyGetsAnOlderValueThanWasStoredWhenTheyAsked(t *testing.T) {
	var r Reads[string, int64]
	var stored, reads atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				least := stored.Add(1)
				got, err := r.Do(t.Context(), "it", func(context.Context) (int64, error) {
					reads.Add(1)
					return stored.Load(), nil
				})
				if err != nil || got < least {
					t.Errorf("%d, %v; want %d or more", got, err, least)
				}
			}
		})
	}
	all.Wait()
	if n := reads.Load(); n > 8*2000 {
		t.Errorf("%d reads", n)
	}
}
