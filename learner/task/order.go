package task

import (
	"iter"
	"math/rand/v2"
)

// MaxShuffle bounds the window of Shuffled: that many items are held at once.
const MaxShuffle = 1 << 24

// Shuffled yields items in a random order: each time one of n, the n-1 it holds and the next item, with equal
// probability. The order of at most n items is uniform. Of more items, each comes at most n-1 places early; a delay of
// about n places is common.
//
// The order follows from source, n and the number of items alone, never from what they hold, and begins the same where
// more of them follow. The sequence can be walked once.
func Shuffled[T any](items iter.Seq[T], n int, source rand.Source) iter.Seq[T] {
	if n <= 1 {
		return items
	}
	return func(yield func(T) bool) {
		r := rand.New(source)
		var held []T
		for item := range items {
			if len(held) < n-1 {
				held = append(held, item)
				continue
			}
			if at := r.IntN(n); at < n-1 {
				item, held[at] = held[at], item
			}
			if !yield(item) {
				return
			}
		}
		r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		for _, item := range held {
			if !yield(item) {
				return
			}
		}
	}
}
