package block

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Person is a unit of all rows of one person that enter a report: the first so many, in the order in which they came.
// It is private data.
type Person[R any] struct {
	ID   string
	Rows []R
}

// Format prints a placeholder under every verb, so that no log or error can carry whom rows are of.
func (p Person[R]) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("block.Person{redacted}")) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (p Person[R]) MarshalText() ([]byte, error) { return fmt.Append(nil, p), nil }

// People groups rows by the person they are of. Every person comes once, in the order of the first rows. When a
// person comes, and whether the grouping is refused, depends on who came and when, and not on how many rows a
// person has, nor on their contents: otherwise one person's rows would move others into other rounds or blocks,
// and more than that person's unit would change.
//
// ID, Items and Most are required and not changed later. Rows are kept: they must own their memory. Group a
// file with Collected; give each row of a stream to Add, and take people with Take when they are due. Use by
// one goroutine at a time.
type People[R any] struct {
	ID    func(R) string // empty: cannot be read, and the row is left out
	Items int            // rows of a person that enter
	Wait  time.Duration  // in a stream: from the first row of a person until it may be taken
	// Most bounds the memory: people that are held, with room for Items rows each, and people that were held,
	// as one row each.
	Most int

	held   []*waiting[R]          // in the order of their first rows
	known  map[string]*waiting[R] // nil: was taken
	counts Counts
	err    error // of Collected
}

// Counts are the numbers of people, and of rows that were left out. They are for the owner of the rows, and no
// part of any report.
type Counts struct {
	People   int
	Nameless int // rows whose person cannot be read
	Surplus  int // rows beyond Items, or after the end of a person's wait
}

type waiting[R any] struct {
	Person[R]
	due time.Time
}

// Counts returns the numbers of the rows seen so far.
func (p *People[R]) Counts() Counts { return p.counts }

// Err returns the error for which Collected yielded nobody: an error of the rows, or more people than Most has
// room for. It is nil if there was none.
func (p *People[R]) Err() error { return p.err }

// Collected reads rows to their end, and then yields all people. It yields nobody where the rows ended with an
// error: more of their rows might have come.
func (p *People[R]) Collected(rows iter.Seq2[R, error]) iter.Seq[Person[R]] {
	return func(yield func(Person[R]) bool) {
		for row, err := range rows {
			if err == nil {
				err = p.Add(row, time.Time{})
			}
			if p.err = err; err != nil {
				return
			}
		}
		for {
			one, _, ok := p.next()
			if !ok || !yield(one) {
				return
			}
		}
	}
}

// Add takes a row that came now. It returns an error if there is no room for the row's person. Then there is no
// room for any other new person either.
func (p *People[R]) Add(row R, now time.Time) error {
	id := p.ID(row)
	if id == "" {
		p.counts.Nameless++
		return nil
	}
	w, known := p.known[id]
	if !known {
		taken := p.counts.People - len(p.held)
		if room := (p.Most - taken) / p.Items; len(p.held) >= room {
			return fmt.Errorf("more than %d people, of up to %d rows each: memory is bounded to %d rows", p.counts.People,
				p.Items, p.Most)
		}
		w = &waiting[R]{Person[R]{ID: id}, now.Add(p.Wait)}
		if p.known == nil {
			p.known = make(map[string]*waiting[R])
		}
		p.known[id], p.held = w, append(p.held, w)
		p.counts.People++
	}
	if w == nil || len(w.Rows) == p.Items || p.Wait > 0 && !now.Before(w.due) {
		p.counts.Surplus++
	} else {
		w.Rows = append(w.Rows, row)
	}
	return nil
}

// Take removes the person of a stream who came first, if the wait from its first row is over now, with the rows
// that came by its end: later ones are surplus, whenever it is taken. Else due is the time at which the wait
// ends; zero if there is nobody.
func (p *People[R]) Take(now time.Time) (one Person[R], due time.Time, ok bool) {
	if len(p.held) > 0 && now.Before(p.held[0].due) {
		return one, p.held[0].due, false
	}
	return p.next()
}

// next removes the person who came first.
func (p *People[R]) next() (one Person[R], due time.Time, ok bool) {
	if len(p.held) == 0 {
		return one, due, false
	}
	w := p.held[0]
	p.held[0] = nil
	p.held, p.known[w.ID] = p.held[1:], nil
	return w.Person, w.due, true
}

// ByUser returns a block of one unit for each person that ids name, in the order of their first rows: ids[i]
// names the person of rows[i]. The rows are not copied. It is for public or local data.
func ByUser(rows []convex.Example, ids []string, items int) ([]Block, Counts) {
	p := People[int]{ID: func(i int) string { return ids[i] }, Items: items, Most: math.MaxInt}
	var out []Block
	for one := range p.Collected(numbered(len(rows))) {
		unit := make([]convex.Example, len(one.Rows))
		for i, at := range one.Rows {
			unit[i] = rows[at]
		}
		out = append(out, Join(unit))
	}
	return slices.Clip(out), p.Counts()
}

func numbered(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}
