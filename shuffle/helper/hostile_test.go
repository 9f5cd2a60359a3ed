package helper

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestHostileReports: reports that one party could be made to count and the other not are refused by reason, and the
// totals hold what honest users sent.
func TestHostileReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 4)
		decided := split.Rejects{}
		var mu sync.Mutex
		p := w.start(t.Context(), func(c *Config) {
			c.Observer.Decided = func(o split.Outcome, n uint64) {
				mu.Lock()
				defer mu.Unlock()
				decided[o] += n
			}
		})
		w.announce(t.Context(), 1)
		l := w.opens(t.Context(), 1, 1, nil)
		w.must(l.joined(t.Context(), t.Context()))
		honest := l.report(1, nil)
		second := l.report(1, nil)
		for name, test := range map[string]struct {
			report *wire.Report
			want   split.Outcome
		}{
			"a part for another report": {func() *wire.Report {
				r := l.report(1, nil)
				r.HelperEncapsulated, r.HelperCiphertext = second.HelperEncapsulated, second.HelperCiphertext
				return r
			}(), split.Unopened},
			"noise for the helper": {l.report(1, func(r *seal.SharedReport) {
				for i := range r.Helper {
					r.Helper[i] ^= byte(i + 1)
				}
			}), split.BadShare},
			"another share for the helper": {l.report(1, func(r *seal.SharedReport) { r.Helper[0] ^= 1 }), split.BadShare},
			"a short share":                {l.report(1, func(r *seal.SharedReport) { r.Helper = r.Helper[:9] }), split.BadLength},
			"a long share": {l.report(1, func(r *seal.SharedReport) {
				r.Helper = append(r.Helper, make([]byte, 100)...)
			}), split.BadLength},
		} {
			l.next = 2
			l.take(test.report)
			got, err := l.exchange(t.Context())
			if err != nil || len(got) != 1 || got[0].Outcome != test.want {
				t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
			}
		}
		l.take(honest)
		l.take(second)
		l.next = 2
		_, err := l.exchange(t.Context())
		w.must(err)
		w.must(l.fills(t.Context()))
		got, err := l.finishes(t.Context())
		w.must(err)
		w.checkTotals(got)
		mu.Lock()
		defer mu.Unlock()
		if decided[split.Accepted] != 4 || decided[split.BadLength] != 2 || decided[split.BadShare] != 2 ||
			decided[split.Unopened] != 1 {
			t.Errorf("decided %v", decided)
		}
		_ = p.stop()
	})
}

// TestHostileMessages: whatever comes on the prepare subject, signed by the leader or by nobody, does not panic, is
// counted by a reason, and changes nothing of the attempt.
func TestHostileMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 3)
		counts := map[Reason]int{}
		var mu sync.Mutex
		p := w.start(t.Context(), func(c *Config) {
			c.Observer.Message = func(r Reason) {
				mu.Lock()
				defer mu.Unlock()
				counts[r]++
			}
		})
		w.announce(t.Context(), 1)
		l := w.opens(t.Context(), 1, 1, nil)
		w.must(l.joined(t.Context(), t.Context()))
		l.take(l.report(1, nil))
		r, _ := l.core.Cut()
		plain := r.Append(nil)
		request, err := splitwire.Seal(w.leader, w.task.Suite, l.join.PublicKey, &r)
		w.must(err)
		rng := rand.New(rand.NewPCG(1, 2))
		mutated := func(b []byte) []byte {
			out := bytes.Clone(b)
			switch rng.IntN(3) {
			case 0:
				out = out[:rng.IntN(len(out)+1)]
			case 1:
				out = append(out, byte(rng.Uint32()))
			}
			for range 1 + rng.IntN(4) {
				if len(out) > 0 {
					out[rng.IntN(len(out))] ^= 1 << rng.IntN(8)
				}
			}
			return out
		}
		const each = 2000
		verbs := []wire.Verb{wire.Verb_VERB_PING, wire.Verb_VERB_PONG, wire.Verb_VERB_FINISH, wire.Verb_VERB_GONE,
			wire.Verb_VERB_DIFFERS}
		for i := range each {
			_ = l.send(mutated(request))
			m := &wire.Exchange{Version: stream.Version, Verb: verbs[i%len(verbs)], TaskHash: l.x.Task[:], Round: l.x.Round,
				Attempt: l.x.Number, OpenHash: l.x.Open[:], JoinHash: l.x.Join[:]}
			finish := split.Finish{X: l.x, Requests: 5, Users: 5}
			m.Plain = mutated(split.Append(nil, finish))
			if f, err := split.Decode[split.Finish](m.Plain); len(m.Plain) > 0 && (err != nil || f.X != l.x) { // a finish ends it
				_ = l.send(w.sign(w.leader, m))
			}
			m = &wire.Exchange{Version: stream.Version, Verb: wire.Verb_VERB_REQUEST, TaskHash: l.x.Task[:], Round: l.x.Round,
				Attempt: l.x.Number, OpenHash: l.x.Open[:], JoinHash: l.x.Join[:], Number: 40 + uint64(i)}
			if i%4 == 0 { // sealed to the helper, and signed, with a number that is not its turn
				w.must(seal.SealExchange(w.task.Suite, l.join.PublicKey, m, mutated(plain)))
				_ = l.send(w.sign(w.leader, m))
			}
		}
		time.Sleep(time.Minute)
		mu.Lock()
		if counts[Unsigned] < each || counts[Strange] < each {
			t.Errorf("messages by reason: %v", counts)
		}
		mu.Unlock()
		for len(l.answers) > 0 {
			<-l.answers
		}
		_, err = l.exchange(t.Context())
		w.must(err)
		w.must(l.fills(t.Context()))
		got, err := l.finishes(t.Context())
		w.must(err)
		w.checkTotals(got)
		_ = p.stop()
	})
}
