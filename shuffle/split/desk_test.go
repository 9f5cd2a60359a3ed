package split

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// Whatever a leader and a broker send, in whatever order, and however often the helper starts again, its folder fails
// or another answer is lost: at most one Share of a round leaves, always with the same bytes, and rounds only go up.
// After all of it a later round is released, and nothing that was sent before, sent again, releases another.
func TestOneShareARound(t *testing.T) {
	longtest.Sequential(t)
	rapid.Check(t, func(rt *rapid.T) {
		folder := HelperMark{}
		desk := NewDesk(Instance{}, folder)
		left := map[uint64]string{} // by round, the signed bytes that left
		signatures := byte(0)
		var finishes []Finish
		attempts := []Attempt{}
		look := func(a Answer) {
			if a.Signed == nil {
				return
			}
			s, err := readSigned(a.Signed[:len(a.Signed)-1])
			if err != nil {
				rt.Fatal(err)
			}
			if before, ok := left[s.X.Round]; ok && before != string(a.Signed) {
				rt.Fatalf("two shares of round %d", s.X.Round)
			}
			left[s.X.Round] = string(a.Signed)
		}
		finish := func(f Finish) {
			a := desk.Finish(f, Entropy{})
			look(a)
			if a.Commit != nil && f.X.Round <= folder.X.Round {
				rt.Fatalf("round %d is to be marked after round %d", f.X.Round, folder.X.Round)
			}
		}
		store := func(known bool) {
			if !desk.committing() {
				return
			}
			signatures++ // a signature need not be the same twice
			folder, _ = folder.Release(desk.closing.X, append(signed(desk.closing), signatures))
			if known {
				look(desk.Committed(folder))
			}
		}
		join := func(x Attempt) {
			signed, _, ok := desk.Join(x)
			look(Answer{Signed: signed})
			if ok && !desk.committing() {
				desk.hold(&counting{in: newInbox(x, Window)})
				attempts = append(attempts, x)
			}
		}
		one := func(what string) int { return rapid.IntRange(0, max(len(attempts)-1, 0)).Draw(rt, what) }
		rt.Repeat(map[string]func(*rapid.T){
			"join": func(rt *rapid.T) {
				join(at(rapid.Uint64Range(1, 4).Draw(rt, "round"), rapid.Uint64Range(1, 3).Draw(rt, "attempt"),
					rapid.Byte().Draw(rt, "hash")))
			},
			"request": func(rt *rapid.T) {
				if len(attempts) == 0 {
					return
				}
				x := attempts[one("request of")]
				r := Request{X: x, N: rapid.Uint64Range(1, 3).Draw(rt, "n"), Bundles: []Bundle{{}}}
				r.Bundles[0].Sealed = []byte{rapid.ByteRange(1, 2).Draw(rt, "bytes")}
				look(desk.Request(r))
				if held, ok := desk.held.(*counting); ok && !desk.committing() {
					if _, ok := held.in.turn(); ok {
						held.in.decide(nil, nil)
					}
				}
			},
			"finish": func(rt *rapid.T) {
				if held, ok := desk.held.(*counting); ok && rapid.Bool().Draw(rt, "right") {
					finishes = append(finishes, held.in.finish(held.in.done))
				} else if len(attempts) > 0 {
					finishes = append(finishes, Finish{X: attempts[one("finish of")]})
				}
				if len(finishes) == 0 {
					return
				}
				f := finishes[len(finishes)-1]
				if rapid.Bool().Draw(rt, "older") {
					f = finishes[rapid.IntRange(0, len(finishes)-1).Draw(rt, "copy")]
				}
				finish(f)
			},
			"store":   func(rt *rapid.T) { store(rapid.Bool().Draw(rt, "know it")) },
			"restart": func(*rapid.T) { desk = NewDesk(Instance{}, folder) },
			"ping": func(rt *rapid.T) {
				if len(attempts) > 0 {
					look(desk.Ping(Ping{X: attempts[one("ping of")], Highest: 9}))
				}
			},
		})
		store(true)
		last := at(5, 1, 0) // above those that were drawn
		join(last)
		held := desk.held.(*counting)
		finishes = append(finishes, held.in.finish(held.in.done))
		finish(finishes[len(finishes)-1])
		store(true)
		if left[last.Round] == "" {
			rt.Fatal("the last round is not released")
		}
		for range 2 {
			for _, x := range attempts {
				join(x)
			}
			for _, f := range finishes {
				finish(f)
				store(true)
			}
			desk = NewDesk(Instance{}, folder)
		}
	})
}
