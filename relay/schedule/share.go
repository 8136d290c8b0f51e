package schedule

import "container/heap"

// share is what a namespace, or a profile within one, has of the slots.
type share struct {
	ready   int    // turns that could be taken if there was a slot
	running int    // turns that were
	granted uint64 // the Line's count when it was last given one
}

func (s *share) idle() bool { return s.ready == 0 && s.running == 0 }

// before: who has fewer slots is next, and of equals who waited longer.
func (s *share) before(o *share) bool {
	if s.running != o.running {
		return s.running < o.running
	}
	return s.granted < o.granted
}

// namespace is a share that its profiles divide.
type namespace struct {
	share
	profiles map[string]*profile
}

// profile is a share, and the turns of it whose hosts are free, oldest first.
type profile struct {
	share
	turns turnHeap
}

// next is the share that is given the next slot, nil where nobody waits.
func next[S interface{ waiting() *share }](all map[string]S) (S, bool) {
	var best S
	found := false
	for _, s := range all {
		if s.waiting().ready > 0 && (!found || s.waiting().before(best.waiting())) {
			best, found = s, true
		}
	}
	return best, found
}

func (s *share) waiting() *share { return s }

// turnHeap orders turns by their age.
type turnHeap []*turn

func (h turnHeap) Len() int           { return len(h) }
func (h turnHeap) Less(i, j int) bool { return h[i].age < h[j].age }
func (h turnHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *turnHeap) Push(x any) {
	t, ok := x.(*turn)
	if !ok {
		panic("not a turn")
	}
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

var _ heap.Interface = (*turnHeap)(nil)
