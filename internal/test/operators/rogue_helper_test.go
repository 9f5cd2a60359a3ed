package operators

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/shuffle/stage/leaderfile"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// shifted adds 2^64 to the first total, or to a number of it.
func shifted(s *split.Share) { s.Aggregate[8] ^= 1 }

// plus adds one to the first total, mostly.
func plus(s *split.Share) { s.Aggregate[0] ^= 1 }

// TestRogueHelper: a helper with the learner's, the broker's and devices' help gets one batch a round of an honest
// leader.
func TestRogueHelper(t *testing.T) {
	p := plan{rounds: 3, cohort: 3, minimum: 2}

	besiege(t, "signs two Shares of one attempt, for two processes who both have the lease", p, func(s *siege) {
		h := s.betrays()
		h.finish = func(*betrayed, []byte) [][]byte { return nil }
		first, second := s.liar(), s.liar()
		first.alone, second.alone = true, true
		one := s.leads(first)
		s.announce(1)
		b := h.serves(1, 1, 3)
		h.finished(b)
		two := s.leads(second)
		s.wait(5 * time.Second)
		// Both ask for the Share of what one of them prepared.
		second.lies(func(l *liar) {
			l.receive(h.other(b, plus))
			l.puts = func(subject string, data []byte) (stream.PutResult, error, bool) {
				if subject == s.name.Batch(1) {
					return takes(subject, data)
				}
				return stream.PutResult{}, nil, false
			}
		})
		first.lies(func(l *liar) { l.receive(b.share) })
		s.wait(30 * time.Second)
		if _, batches, _ := s.out.audit(s.t); batches != 1 {
			s.t.Errorf("%d rounds have a batch, want 1", batches)
		}
		_, _ = one.stop(), two.stop()
	})

	besiege(t, "takes back its Share, once the leader has stored it", p, func(s *siege) {
		h := s.betrays()
		l := s.liar()
		l.puts = func(subject string, _ []byte) (stream.PutResult, error, bool) {
			return stream.PutResult{}, errors.New("away"), subject == s.name.Claim(1) || subject == s.name.Batch(1)
		}
		one := s.leads(l)
		s.announce(1)
		b := h.serves(1, 1, 3)
		h.finished(b)
		s.wait(10 * time.Second)
		_ = one.stop()
		h.lies(func() {
			h.finish = func(b *betrayed, _ []byte) [][]byte { return [][]byte{h.gone(b, 0), h.other(b, plus)} }
		})
		s.put(s.ctx, s.name.Share(1), h.other(b, plus))
		one = s.leads(s.liar())
		if got := s.batch(1); got == nil || got.Void || got.Users != 3 {
			s.t.Errorf("the batch is %v, want one of what was stored", got)
		}
		_ = one.stop()
	})

	besiege(t, "says gone, and then shows the Share of the dead attempt", p, func(s *siege) {
		h := s.betrays()
		h.finish = func(b *betrayed, _ []byte) [][]byte { return [][]byte{h.gone(b, 0)} }
		l := s.liar()
		one := s.leads(l)
		s.announce(1)
		a := h.serves(1, 1, 3)
		h.finished(a)
		b := h.joinsAt(1, 2)
		f, err := leaderfile.Open(s.leaderDir, s.stage.Public())
		s.must(err)
		if found, err := f.Find(s.hash); err != nil || found.Prepared != nil {
			s.t.Errorf("the folder still has the share of the dead attempt: %v", err)
		}
		left, err := filepath.Glob(filepath.Join(s.leaderDir, "*.1.1.*"))
		s.must(err)
		for _, path := range left {
			if data, _ := os.ReadFile(path); strings.HasSuffix(path, ".key") && string(data) != string(make([]byte, len(data))) {
				s.t.Errorf("%s still has the key of the dead attempt", path)
			}
		}
		l.lies(func(l *liar) { l.receive(a.share) })
		s.put(s.ctx, s.name.Share(1), a.share)
		if got := s.batch(1); got == nil || !got.Void {
			s.t.Errorf("the batch is %v, want a void one", got)
		}
		_, _ = b, one.stop()
	})

	besiege(t, "tells one process that the attempt died, and gives the other the Share", p, func(s *siege) {
		h := s.betrays()
		h.finish = func(*betrayed, []byte) [][]byte { return nil }
		first, second := s.liar(), s.liar()
		first.alone, second.alone = true, true
		one := s.leads(first)
		s.announce(1)
		a := h.serves(1, 1, 3)
		h.finished(a)
		two := s.leads(second)
		s.wait(5 * time.Second)
		first.lies(func(l *liar) { l.receive(h.gone(a, 0)) })
		b := h.serves(1, 2, 3)
		h.finished(b)
		second.lies(func(l *liar) { l.receive(a.share) })
		s.wait(5 * time.Second)
		first.lies(func(l *liar) { l.receive(b.share) })
		h.lies(func() { h.finish = nil })
		if got := s.batch(1); got == nil || got.Void || got.Attempt != 2 {
			s.t.Errorf("the batch is %v, want the second attempt's", got)
		}
		s.wait(30 * time.Second)
		_, _ = one.stop(), two.stop()
	})

	// A void round reveals whether a total with both floors lies in its range, and nothing else. It stays void.
	besiege(t, "shifts its Share, and offers the right one after the round is void", p, func(s *siege) {
		h := s.betrays()
		h.finish = func(b *betrayed, _ []byte) [][]byte { return [][]byte{h.other(b, shifted)} }
		one := s.leads(s.liar())
		s.announce(1)
		b := h.serves(1, 1, 3)
		if got := s.batch(1); got == nil || !got.Void || got.Reason != "helper" {
			s.t.Errorf("the batch is %v, want a void one", got)
		}
		_ = one.stop()
		h.lies(func() { h.finish = nil })
		s.forgets(s.name.Batch(1), s.name.Close(1, 1), s.name.Claim(1))
		s.put(s.ctx, s.name.Share(1), b.share)
		one = s.leads(s.liar())
		if got := s.batch(1); got == nil || !got.Void {
			s.t.Errorf("the batch is %v, want the void one again", got)
		}
		if _, batches, _ := s.out.audit(s.t); batches > 0 {
			s.t.Error("a round was void, and is released after all")
		}
		_ = one.stop()
	})

	besiege(t, "shows the Share of an earlier round, and one of other users", p, func(s *siege) {
		h := s.betrays()
		l := s.liar()
		one := s.leads(l)
		s.announce(1)
		a := h.serves(1, 1, 3)
		if got := s.batch(1); got == nil || got.Void {
			s.t.Fatalf("round 1: %v", got)
		}
		h.lies(func() {
			h.finish = func(b *betrayed, _ []byte) [][]byte {
				return [][]byte{a.share, {}, []byte("noise"), h.other(b, func(s *split.Share) { s.X.Task[0] ^= 1 }),
					h.other(b, func(s *split.Share) { s.X.Round = 1 })}
			}
		})
		s.announce(2)
		s.put(s.ctx, s.name.Share(2), a.share)
		b := h.serves(2, 1, 3)
		h.finished(b)
		s.wait(time.Minute)
		if s.find(s.name.Batch(2)) != nil {
			s.t.Error("a Share of another round ends the round")
		}
		h.lies(func() {
			h.finish = func(b *betrayed, _ []byte) [][]byte {
				return [][]byte{h.other(b, func(s *split.Share) { s.Users++ })}
			}
		})
		if got := s.batch(2); got == nil || !got.Void {
			s.t.Errorf("the batch is %v, want a void one", got)
		}
		_ = one.stop()
	})

	besiege(t, "the broker forgets the round's outcome over a restart", p, func(s *siege) {
		h := s.betrays()
		one := s.leads(s.liar())
		s.announce(1)
		h.serves(1, 1, 3)
		if got := s.batch(1); got == nil || got.Void {
			s.t.Fatalf("round 1: %v", got)
		}
		for range 3 {
			_ = one.stop()
			s.forgets(s.name.Batch(1), s.name.Claim(1), s.name.Close(1, 1), s.name.Open(1, 1), s.name.Join(1, 1), s.name.Share(1))
			one = s.leads(s.liar())
			if got := s.batch(1); got == nil || got.Void {
				s.t.Errorf("the batch is %v, want the same again", got)
			}
		}
		_ = one.stop()
	})

	besiege(t, "another Round of the number is shown once the attempt is prepared", p, func(s *siege) {
		h := s.betrays()
		h.finish = func(*betrayed, []byte) [][]byte { return nil }
		one := s.leads(s.liar())
		s.announce(1)
		b := h.serves(1, 1, 3)
		h.finished(b)
		_ = one.stop()
		s.forgets(s.name.Round(1))
		s.put(s.ctx, s.name.Round(1), s.sign(s.learner, manifest.RoundOf(s.hash, 1, 1, []float64{1, 1, 1}, nil)))
		h.lies(func() { h.finish = nil })
		one = s.leads(s.liar())
		s.wait(time.Minute)
		if s.find(s.name.Batch(1)) != nil {
			s.t.Error("totals of one Round are released as another's, or the round is void")
		}
		s.forgets(s.name.Round(1))
		s.announce(1)
		if got := s.batch(1); got == nil || got.Void || stream.Hash(got.ManifestHash) != b.manifest {
			s.t.Errorf("the batch is %v, want one once the broker shows the Round again", got)
		}
		_ = one.stop()
	})

	besiege(t, "a second folder of one identity", p, func(s *siege) {
		h := s.betrays()
		one := s.leads(s.liar())
		s.announce(1)
		h.joinsAt(1, 1)
		_ = one.stop()
		s.leaderDir = s.t.TempDir()
		one = s.leads(s.liar())
		s.wait(30 * time.Second)
		select {
		case <-one.done:
		default:
			s.t.Error("a stage works with a folder that knows nothing of its task")
		}
		if err := one.stop(); err == nil || !strings.Contains(err.Error(), "knows nothing of this task") {
			s.t.Errorf("%v", err)
		}
	})

	for name, change := range map[string]func(c *stage.Config, other []byte){
		"another helper than the Task's": func(c *stage.Config, other []byte) { c.Leader.HelperKey = other },
		"no helper":                      func(c *stage.Config, _ []byte) { c.Leader.HelperKey = nil },
		"no learner":                     func(c *stage.Config, _ []byte) { c.LearnerKey = nil },
		"no folder":                      func(c *stage.Config, _ []byte) { c.Leader.Folder = nil },
	} {
		besiege(t, "a leader that pins "+name, p, func(s *siege) {
			one := s.lead(s.ctx, func(c *stage.Config) { change(c, identity(s.t).Public()) })
			s.announce(1)
			s.wait(30 * time.Second)
			if s.find(s.name.Open(1, 1)) != nil {
				s.t.Error("it opens an attempt")
			}
			select {
			case <-one.done:
			default:
				s.t.Error("it goes on")
			}
			if err := one.stop(); err == nil || !strings.Contains(err.Error(), "trust split") && !strings.Contains(err.Error(), "names the helper") {
				s.t.Errorf("it ends with %v", err)
			}
		})
	}
}

// TestRogueJoins: a Join that no device acts on is not counted under, and the leader opens the round again.
func TestRogueJoins(t *testing.T) {
	p := plan{rounds: 2, cohort: 3, minimum: 2}
	for name, lie := range map[string]func(h *traitor){
		"the leader's own key":      func(h *traitor) { h.pledge = func(o *wire.Open) []byte { return o.PublicKey } },
		"another verify key's hash": func(h *traitor) { h.joins = func(j *wire.Join) { j.VerifyKeyHash[0] ^= 1 } },
		"a verify key of noise":     func(h *traitor) { h.joins = func(j *wire.Join) { j.KeyCiphertext[0] ^= 1 } },
		"another Open":              func(h *traitor) { h.joins = func(j *wire.Join) { j.OpenHash[0] ^= 1 } },
		"another manifest":          func(h *traitor) { h.joins = func(j *wire.Join) { j.ManifestHash[0] ^= 1 } },
		"no key":                    func(h *traitor) { h.pledge = func(*wire.Open) []byte { return nil } },
		"another suite":             func(h *traitor) { h.joins = func(j *wire.Join) { j.Suite = wire.Suite_SUITE_X25519 } },
	} {
		besiege(t, name, p, func(s *siege) {
			h := s.betrays()
			lie(h)
			one := s.leads(s.liar())
			s.announce(1)
			h.joinsAt(1, 1)
			h.joins, h.pledge = nil, nil
			h.serves(1, 2, 3)
			if got := s.batch(1); got == nil || got.Void || got.Attempt != 2 {
				s.t.Errorf("the batch is %v, want the second attempt's", got)
			}
			_ = one.stop()
		})
	}
}

// TestRogueReplies: a reply that lies ends the attempt, nothing of it is prepared, and no user pays.
func TestRogueReplies(t *testing.T) {
	p := plan{rounds: 2, cohort: 3, minimum: 2}
	for name, lie := range map[string]func(r *split.Reply){
		"another chain":   func(r *split.Reply) { r.Chain[0] ^= 1 },
		"another request": func(r *split.Reply) { r.Request[0] ^= 1 },
		"more outcomes":   func(r *split.Reply) { r.Outcomes = append(r.Outcomes, split.BadProof) },
		"no outcomes":     func(r *split.Reply) { r.Outcomes, r.Messages = nil, nil },
		"a prep message of noise": func(r *split.Reply) {
			for i := range r.Messages {
				r.Messages[i][3] ^= 1
			}
		},
		"a refusal that is not in the chain": func(r *split.Reply) {
			r.Outcomes[0], r.Messages = split.BadProof, r.Messages[1:]
		},
	} {
		besiege(t, name, p, func(s *siege) {
			h := s.betrays()
			h.reply = lie
			one := s.leads(s.liar())
			s.announce(1)
			a := h.serves(1, 1, 3)
			b := h.joinsAt(1, 2)
			h.lies(func() { h.reply = nil })
			all := s.users(3)
			for i := range all {
				s.send(s.ctx, b.x, s.report(&b.opening, all[i:i+1], nil))
			}
			if got := s.batch(1); got == nil || got.Void || got.Attempt != 2 || a.asked > 0 {
				s.t.Errorf("the batch is %v, and the lie was finished %d times", got, a.asked)
			}
			_ = one.stop()
		})
	}

	besiege(t, "noise, copies and old answers", p, func(s *siege) {
		h := s.betrays()
		l := s.liar()
		rng := rand.New(rand.NewPCG(3, 4))
		var old [][]byte
		l.toLeader = func(answer []byte) (out [][]byte) {
			old = append(old, answer)
			for range 30 {
				one := append([]byte{}, old[rng.IntN(len(old))]...)
				if rng.IntN(3) > 0 {
					one[rng.IntN(len(one))] ^= 1 << rng.IntN(8)
				}
				out = append(out, one)
			}
			return append(out, answer, answer)
		}
		one := s.leads(l)
		for r := range stream.Round(2) {
			s.announce(r + 1)
			h.serves(r+1, 1, 3)
			if got := s.batch(r + 1); got == nil || got.Void || got.Users != 3 {
				s.t.Errorf("the batch is %v", got)
			}
		}
		_ = one.stop()
	})
}

// TestRogueHelperTires: a helper that ends every attempt does not have the leader open one after the other as fast as it
// can: the stream of attempts, and devices, would be full of them.
func TestRogueHelperTires(t *testing.T) {
	p := plan{rounds: 3, cohort: 3, minimum: 2}
	opened := func(s *siege) (n int) {
		for _, m := range s.broker.Dump() {
			if strings.HasPrefix(m.Subject, strings.TrimSuffix(s.name.Opens(1), "*")) {
				n++
			}
		}
		return n
	}
	joinsAll := func(ctx context.Context, h *traitor) {
		for a := stream.Attempt(1); ctx.Err() == nil; a++ {
			m := h.get(ctx, h.name.Open(1, a))
			if m == nil {
				return
			}
			h.answers(1, a, m.Data)
		}
	}
	for name, lie := range map[string]func(s *siege, h *traitor){
		"Joins that no device acts on": func(_ *siege, h *traitor) { h.joins = func(j *wire.Join) { j.VerifyKeyHash[0] ^= 1 } },
		"gone at once":                 func(_ *siege, h *traitor) { h.ping = func(b *betrayed) []byte { return h.gone(b, 0) } },
		"a Share that only its answers hold": func(s *siege, h *traitor) {
			h.ping = func(b *betrayed) []byte {
				data, err := splitwire.SignShare(h.id, split.Share{X: b.x, Refusal: split.Marked})
				s.must(err)
				return data
			}
		},
	} {
		besiege(t, name, p, func(s *siege) {
			ctx, stop := context.WithCancel(s.ctx)
			h := s.betrays()
			lie(s, h)
			one := s.leads(s.liar())
			s.announce(1)
			var all sync.WaitGroup
			all.Go(func() { joinsAll(ctx, h) })
			s.wait(2 * time.Minute)
			if n := opened(s); n < 1 || n > 12 {
				s.t.Errorf("%d attempts in two minutes", n)
			}
			stop()
			all.Wait()
			_ = one.stop()
		})
	}

	besiege(t, "refuses a round in the name of an attempt that nobody opened", p, func(s *siege) {
		h := s.betrays()
		one := s.leads(s.liar())
		s.announce(1)
		a := h.joinsAt(1, 1)
		x := a.x
		x.Number = math.MaxUint64
		refusal, err := splitwire.SignShare(h.id, split.Share{X: x, Refusal: split.Marked})
		s.must(err)
		s.put(s.ctx, s.name.Share(1), refusal)
		_ = one.stop()
		one = s.leads(s.liar())
		if got := s.batch(1); got == nil || !got.Void {
			s.t.Errorf("the batch is %v, want a void one", got)
		}
		s.announce(2)
		h.serves(2, 1, 3)
		if got := s.batch(2); got == nil || got.Void {
			s.t.Errorf("the batch of the next round is %v", got)
		}
		_ = one.stop()
	})
}

// TestForkedLeader: two copies of one process prepare one attempt, each with a floor of its own. The folder takes one
// of them, and the other goes on with that.
func TestForkedLeader(t *testing.T) {
	dir, key := t.TempDir(), identity(t).Public()
	if err := leaderfile.Make(dir, key); err != nil {
		t.Fatal(err)
	}
	f, err := leaderfile.Open(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	x := split.Attempt{Task: split.Hash{1}, Round: 1, Number: 1, Open: split.Hash{2}, Join: split.Hash{3}}
	of := func(fill byte) split.Prepared {
		return split.Prepared{Finish: split.Finish{X: x, Requests: 1, Users: 3}, Aggregate: bytes.Repeat([]byte{fill}, 16)}
	}
	if err := f.Begin(stream.Hash(x.Task)); err != nil {
		t.Fatal(err)
	}
	for i, fill := range []byte{0, 1, 0} {
		if ok, err := f.Prepare(stream.Hash(x.Task), of(fill)); err != nil || ok != (i != 1) {
			t.Errorf("share %d: %v, %v", fill, ok, err)
		}
	}
	for i, signed := range []string{"one", "other", "one"} {
		if ok, err := f.Release(stream.Hash(x.Task), x, []byte(signed)); err != nil || ok != (i != 1) {
			t.Errorf("Share %s: %v, %v", signed, ok, err)
		}
	}
}
