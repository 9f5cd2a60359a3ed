package accounting

import (
	"container/list"
	"sync"
)

// What the process computed most recently: one task after another asks for the same.
var (
	profiles = newCache[depth, *profile](1024) // at most 20 MiB
	plans    = newCache[Request, calibrated](4096)
)

type calibrated struct {
	plan Plan
	err  error
}

// A cache keeps the most recently used values of a function. Safe for concurrent use.
type cache[K comparable, V any] struct {
	most    int // that it keeps
	mu      sync.Mutex
	order   *list.List          // of entry[K, V], most recent first; guarded by mu
	entries map[K]*list.Element // guarded by mu
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newCache[K comparable, V any](most int) *cache[K, V] {
	return &cache[K, V]{most: most, order: list.New(), entries: make(map[K]*list.Element)}
}

// of returns f(key), which depends on the key alone.
func (c *cache[K, V]) of(key K, f func(K) V) V {
	c.mu.Lock()
	if e, ok := c.entries[key]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(entry[K, V]).value
	}
	c.mu.Unlock()
	// Computed outside the lock: two callers may compute the same at once, which wastes work and breaks nothing.
	v := f(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; !ok {
		c.entries[key] = c.order.PushFront(entry[K, V]{key, v})
		if c.order.Len() > c.most {
			last := c.order.Back()
			c.order.Remove(last)
			delete(c.entries, last.Value.(entry[K, V]).key)
		}
	}
	return v
}
