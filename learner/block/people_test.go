package block_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
)

// An event is a row of somebody.
type event struct {
	id     string
	number int
}

func idOf(e event) string { return e.id }

func seq(rows []event, last error) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
		if last != nil {
			yield(event{}, last)
		}
	}
}

// rowsOf draws rows of a few people, some of whom cannot be read.
func rowsOf(t *rapid.T) []event {
	ids := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g"}), 0, 40).Draw(t, "ids")
	out := make([]event, len(ids))
	for i, id := range ids {
		out[i] = event{id, i}
	}
	return out
}

// TestEverybodyOnce: every person is in one unit, in the order of first rows, with the first rows and no
// others; every row is in a unit or counted.
func TestEverybodyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, items := rowsOf(t), rapid.IntRange(1, 5).Draw(t, "items")
		p := block.People[event]{ID: idOf, Items: items, Most: 1000}
		var order []string
		own := make(map[string][]event)
		want := block.Counts{}
		for _, r := range rows {
			switch of := own[r.id]; {
			case r.id == "":
				want.Nameless++
			case len(of) == items:
				want.Surplus++
			default:
				if of == nil {
					order = append(order, r.id)
				}
				own[r.id] = append(of, r)
			}
		}
		want.People = len(order)
		var got []string
		for one := range p.Collected(seq(rows, nil)) {
			got = append(got, one.ID)
			if !slices.Equal(one.Rows, own[one.ID]) {
				t.Fatalf("%s has %v, want %v", one.ID, one.Rows, own[one.ID])
			}
			if s := fmt.Sprintf("%+v", one); s != "block.Person{redacted}" {
				t.Fatalf("a person prints %s", s)
			}
		}
		if !slices.Equal(got, order) || p.Counts() != want || p.Err() != nil {
			t.Fatalf("%v, %+v, %v; want %v, %+v", got, p.Counts(), p.Err(), order, want)
		}
	})
}

// TestRowsOfOneMoveNobody: however many rows one person has beside the first, and wherever they come, the
// blocks of all people are of the same people, and the others' rows in them are the same; and so is whether
// there is room.
func TestRowsOfOneMoveNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, items := rowsOf(t), rapid.IntRange(1, 3).Draw(t, "items")
		who, k := rapid.SampledFrom([]string{"a", "d", "g"}).Draw(t, "who"), rapid.IntRange(1, 4).Draw(t, "K")
		most := rapid.IntRange(items, 8*items).Draw(t, "most")
		var others []event
		seen := false
		for _, r := range rows {
			if r.id != who || !seen {
				others, seen = append(others, r), seen || r.id == who
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				if seen {
					others = append(others, event{who, 1000 + len(others)})
				}
			}
		}
		blocks := func(rows []event) (out []string, room bool) {
			p := block.People[event]{ID: idOf, Items: items, Most: most}
			left := 0
			for people := range block.Each(p.Collected(seq(rows, nil)), k, nil, func(n int) { left = n }) {
				for _, one := range people {
					if out = append(out, one.ID); one.ID != who {
						out = append(out, fmt.Sprint(one.Rows))
					}
				}
				out = append(out, "end")
			}
			return append(out, fmt.Sprint(left)), p.Err() == nil
		}
		want, fits := blocks(rows)
		got, still := blocks(others)
		if !slices.Equal(got, want) || fits != still {
			t.Fatalf("%v, room %t, became %v, room %t", want, fits, got, still)
		}
	})
}

// TestNobodyBeforeTheEnd: rows that end with an error are of nobody yet: more might have come.
func TestNobodyBeforeTheEnd(t *testing.T) {
	broken := errors.New("broken")
	read := 0
	rows := []event{{"a", 0}, {"b", 1}, {"a", 2}}
	p := block.People[event]{ID: idOf, Items: 1, Most: 10}
	for one := range p.Collected(seq(rows, broken)) {
		t.Errorf("%s though the rows broke off", one.ID)
	}
	if !errors.Is(p.Err(), broken) {
		t.Error(p.Err())
	}
	counted := func(yield func(event, error) bool) {
		for r := range seq(rows, nil) {
			if read++; !yield(r, nil) {
				return
			}
		}
	}
	q := block.People[event]{ID: idOf, Items: 1, Most: 10}
	for one := range q.Collected(counted) {
		if read != len(rows) {
			t.Errorf("%s after %d rows", one.ID, read)
		}
	}
}

// TestMemoryIsBounded: more people than there is room for are refused before anybody is offered, by how many
// they are.
func TestMemoryIsBounded(t *testing.T) {
	rows := []event{{"a", 0}, {"a", 1}, {"a", 2}, {"b", 3}, {"secret", 4}}
	for most, refused := range map[int]bool{3: true, 5: true, 6: false} {
		p := block.People[event]{ID: idOf, Items: 2, Most: most}
		people := 0
		for range p.Collected(seq(rows, nil)) {
			people++
		}
		if got := p.Err() != nil; got != refused || got != (people == 0) {
			t.Errorf("room for %d rows: %d people, %v", most, people, p.Err())
		}
		if p.Err() != nil && strings.Contains(p.Err().Error(), "secret") {
			t.Errorf("the error names somebody: %v", p.Err())
		}
	}
}

// TestStreamsWait: a person of a stream is offered from the end of the own wait on, however many rows came;
// later rows are surplus, and bring nobody back.
func TestStreamsWait(t *testing.T) {
	for _, c := range []struct {
		rows, want string // a letter at each second, of whom a row comes; a blank: none
		every      int    // second, when people are taken
		surplus    int
	}{
		{rows: "a", every: 1, want: "a1@10 "},
		{rows: "aab", every: 1, want: "a2@10 b1@12 "},
		{rows: "aaaab", every: 1, want: "a2@10 b1@14 ", surplus: 2},
		{rows: "a        b a", every: 1, want: "a1@10 b1@19 ", surplus: 1},
		{rows: "a        ab a    b", every: 1, want: "a2@10 b2@20 ", surplus: 1},
		// b's second row came when its time was over, before b was taken
		{rows: "ab         b   a", every: 15, want: "a1@15 b1@15 ", surplus: 2},
		{rows: "ab        b", every: 15, want: "a1@15 b2@15 "},
	} {
		begun := time.Unix(1e9, 0)
		p := block.People[event]{ID: idOf, Items: 2, Wait: 10 * time.Second, Most: 100}
		var got strings.Builder
		for i := range 40 {
			now := begun.Add(time.Duration(i) * time.Second)
			for i%c.every == 0 {
				one, due, ok := p.Take(now)
				if !ok && (due.IsZero() || due.After(now)) {
					break
				}
				_, _ = fmt.Fprintf(&got, "%s%d@%d ", one.ID, len(one.Rows), i)
			}
			if i >= len(c.rows) || c.rows[i] == ' ' {
				continue
			}
			if err := p.Add(event{c.rows[i : i+1], i}, now); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != c.want || p.Counts().Surplus != c.surplus {
			t.Errorf("%q: %s%+v; want %ssurplus %d", c.rows, got.String(), p.Counts(), c.want, c.surplus)
		}
	}
}

// TestTakenPeopleAreKnown: people who were taken need room, too, for their names: a stream without end is
// refused at last.
func TestTakenPeopleAreKnown(t *testing.T) {
	p := block.People[event]{ID: idOf, Items: 3, Wait: 1, Most: 5}
	for i := range 10 {
		now := time.Unix(int64(i), 0)
		_, _, _ = p.Take(now)
		if err := p.Add(event{fmt.Sprint("p", i), i}, now); (err != nil) != (i >= 3) {
			// the first two leave room for three rows, three do not
			t.Errorf("person %d: %v", i, err)
		}
	}
}

// TestEach: blocks have n rows, end at the ends of files, and hold each row at most once; another file moves
// none of them.
func TestEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "n")
		files := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 5).Draw(t, "rows")
		made := func(skip int) (blocks map[string]bool, left int) {
			blocks = make(map[string]bool)
			var rows []event
			for f, size := range files {
				for i := range size {
					if f != skip {
						rows = append(rows, event{string(rune('A' + f)), i})
					}
				}
			}
			for b := range block.Each(slices.Values(rows), n, idOf, func(rows int) { left += rows }) {
				if len(b) != n {
					t.Fatalf("a block of %d rows, want %d", len(b), n)
				}
				for i, r := range b {
					if r.id != b[0].id || r.number != b[0].number+i || b[0].number%n != 0 {
						t.Fatalf("a block %v", b)
					}
				}
				blocks[fmt.Sprint(b)] = true
			}
			return blocks, left
		}
		all, left := made(-1)
		want, tails := 0, 0
		for _, size := range files {
			want, tails = want+size/n, tails+size%n
		}
		if len(all) != want || left != tails {
			t.Fatalf("%d blocks and %d left, want %d and %d", len(all), left, want, tails)
		}
		some, _ := made(rapid.IntRange(0, len(files)-1).Draw(t, "without"))
		for b := range maps.Keys(some) {
			if !all[b] {
				t.Fatalf("%s is a block without a file alone", b)
			}
		}
	})
}

// TestByUser: the blocks of people in memory are units with the rows of one person each.
func TestByUser(t *testing.T) {
	rows := make([]convex.Example, 6)
	for i := range rows {
		rows[i].Label = float64(i)
	}
	blocks, counts := block.ByUser(rows, []string{"b", "a", "b", "", "b", "a"}, 2)
	var got []string
	for _, b := range append(blocks, block.Join(blocks[0].Unit(0), nil, blocks[1].Unit(0))) {
		for u := range b.Units() {
			text := "|"
			for _, r := range b.Unit(u) {
				text += fmt.Sprint(r.Label)
			}
			got = append(got, text)
		}
	}
	if want := []string{"|02", "|15", "|02", "|", "|15"}; !slices.Equal(got, want) ||
		counts != (block.Counts{People: 2, Nameless: 1, Surplus: 1}) {
		t.Errorf("%v, %+v; want %v", got, counts, want)
	}
}
