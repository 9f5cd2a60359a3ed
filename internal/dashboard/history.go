package dashboard

// kept bounds a history. It is even, so that points merge in pairs.
const kept = 240

// A history keeps at most kept points of a sequence without end: when it is full, neighbours are merged, and from then
// on twice as many entries make a point.
type history[T any] struct {
	merge  func(older, newer T) T
	points []T
	stride int // entries of a point; 0 before the first
	n      int // entries in pending
	next   T   // the point that is not complete
}

func (h *history[T]) add(x T) {
	if h.stride = max(h.stride, 1); h.n == 0 {
		h.next = x
	} else {
		h.next = h.merge(h.next, x)
	}
	if h.n++; h.n < h.stride {
		return
	}
	h.points, h.n = append(h.points, h.next), 0
	if len(h.points) < kept {
		return
	}
	for i := range kept / 2 {
		h.points[i] = h.merge(h.points[2*i], h.points[2*i+1])
	}
	h.points, h.stride = h.points[:kept/2], 2*h.stride
}

// all returns the points, with the incomplete one.
func (h *history[T]) all() []T {
	out := append(make([]T, 0, len(h.points)+1), h.points...)
	if h.n > 0 {
		out = append(out, h.next)
	}
	return out
}
