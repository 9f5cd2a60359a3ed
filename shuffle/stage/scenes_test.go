package stage

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// scenes are the situations whose traces are kept, by name.
var scenes = map[string]func(*testing.T) *scene{
	"a round fills": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.answers(1, 2, 1)
		s.announces(2)
		s.answers(2, 0, 3)
		s.ends(2)
		return s
	},
	"a deadline passes with the minimum": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 5, minimum: 3, deadline: time.Minute})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 3)
		s.waits(50 * time.Second)
		s.answers(1, 3, 1)
		s.waits(10 * time.Second)
		return s
	},
	"a deadline passes under the minimum": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 5, minimum: 3, deadline: time.Minute})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.waits(2 * time.Minute)
		s.answers(1, 2, 1)
		s.waits(10 * time.Second)
		return s
	},
	"a claim stands without its batch": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.announces(1)
		s.puts("a life that is over claimed the round", s.name.Claim(1), s.claim(stream.Hash{}))
		s.begins("")
		s.waits(time.Minute)
		return s
	},
	"the batch of a claim comes late": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 4})
		s.announces(1)
		s.puts("another life claimed the round", s.name.Claim(1), s.claim(stream.Hash{}))
		s.begins("")
		s.waits(10 * time.Second)
		s.puts("its batch comes", s.name.Batch(1), s.real())
		s.waits(10 * time.Second)
		return s
	},
	"another claim comes first": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 4})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 3)
		s.puts("another life claims the round", s.name.Claim(1), s.claim(stream.Hash{}))
		s.answers(1, 3, 1)
		s.waits(time.Minute)
		return s
	},
	"a Close stands without its batch": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.announces(1)
		s.puts("a life that is over opened the round", s.name.Open(1, 1), s.opened(1))
		s.puts("it closed the round", s.name.Close(1, 1), &wire.Close{Version: stream.Version, TaskHash: s.hash[:], Round: 1,
			Attempt: 1, ManifestHash: s.manifest(1), BatchHash: make([]byte, stream.HashSize), Cutoff: 5})
		s.begins("")
		s.waits(time.Minute)
		return s
	},
	"it dies between mark and claim": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, spares: 1})
		s.beginsTo("put claim.1", false)
		s.announces(1)
		s.answers(1, 0, 3)
		s.begins("")
		s.waits(time.Minute)
		return s
	},
	"it dies between claim and batch": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, spares: 1})
		s.beginsTo("put batch.1", false)
		s.announces(1)
		s.answers(1, 0, 3)
		s.begins("")
		s.waits(time.Minute)
		return s
	},
	"it dies between batch and Close": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.beginsTo("put batch.1", true)
		s.announces(1)
		s.answers(1, 0, 3)
		s.begins("")
		s.waits(time.Minute)
		return s
	},
	"an open attempt dies": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, suite: wire.Suite_SUITE_X25519})
		p := s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		p.falls()
		s.begins("")
		s.waits(20 * time.Second)
		s.answers(1, 0, 3)
		s.waits(10 * time.Second)
		return s
	},
	"another process takes the lease": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, spares: 1})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.does("another process takes the lease, and is not seen again", 20*time.Second, func() { s.takeLease(t) })
		s.waits(time.Minute)
		s.answers(1, 0, 3)
		return s
	},
	"a second process stands by": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, spares: 1})
		p := s.begins("a")
		s.announces(1)
		s.begins("b")
		s.answers(1, 0, 2)
		p.falls()
		s.waits(20 * time.Second)
		s.answers(1, 0, 3)
		s.waits(10 * time.Second)
		return s
	},
	"it is asked to stop": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.adapt = func(c *Config) { c.Drain = time.Minute }
		p := s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.does("the stage is asked to stop", 10*time.Second, func() { p.stop() })
		s.answers(1, 2, 1)
		s.waits(10 * time.Second)
		p = s.begins("")
		p.ends()
		return s
	},
	"reports are refused": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, bundle: 2, suite: wire.Suite_SUITE_X25519})
		s.bundle = 1
		s.begins("")
		s.announces(1)
		in := s.invited(s.ctx, 1, 0)
		sends := func(what, subject string, data []byte) {
			s.does("a report comes: "+what, 10*time.Millisecond, func() {
				s.deliver(s.ctx, []stream.Outgoing{{Subject: subject, ID: randomID(), Data: data}})
			})
		}
		here, ids := s.name.Report(1, 1), [][16]byte{randomID(), randomID()}
		good := s.plaintext(0)
		valid := s.seal(in, ids[:1], good)
		change := func(f func(*wire.Report)) []byte {
			r, err := seal.Seal(in.suite, in.context, s.hash, ids[1:], good)
			must(t, err)
			f(r)
			return s.encode(r)
		}
		sends("a good one", here, valid)
		sends("the same again", here, bytes.Clone(valid))
		sends("to another round", s.name.Report(2, 1), valid)
		sends("to another attempt", s.name.Report(1, 2), valid)
		sends("of another task", here, change(func(r *wire.Report) { r.TaskHash = make([]byte, stream.HashSize) }))
		sends("of bytes that are no report", here, []byte("no report"))
		sends("of another version", here, change(func(r *wire.Report) { r.Version++ }))
		sends("of too many users", here, change(func(r *wire.Report) {
			r.Ids, r.Ciphertext, r.Encapsulated = [][]byte{r.Ids[0], r.Ids[0], r.Ids[0]}, r.Ciphertext[:1], r.Encapsulated[:1]
		}))
		sends("of another length", here, s.seal(in, ids[1:], append(bytes.Clone(good), 0)))
		sends("which does not open", here, change(func(r *wire.Report) { r.Ciphertext[0] ^= 1 }))
		over := bytes.Clone(good)
		over[0] |= 3
		sends("with a count that is too high", here, s.seal(in, ids[1:], over))
		s.answers(1, 1, 2)
		return s
	},
	"a device floods the task": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.begins("")
		s.announces(1)
		s.does("200 reports to attempts that nobody opened", 5*time.Second, func() {
			for i := range 200 {
				s.deliver(s.ctx, []stream.Outgoing{{Subject: s.name.Report(1, stream.Attempt(2+i%3)), ID: randomID(),
					Data: []byte("flood")}})
				time.Sleep(time.Millisecond)
			}
		})
		s.answers(1, 0, 3)
		return s
	},
	"places are given": func(t *testing.T) *scene {
		s := withPlaces(t, plan{cohort: 3, minimum: 2, deadline: time.Minute}).scene()
		s.adapt = func(c *Config) { c.PlaceServer = s.broker }
		s.begins("")
		s.announces(1)
		for n := range uint64(4) {
			s.asksFor(n, 1, 1)
		}
		s.answers(1, 0, 2)
		s.waits(20 * time.Second)
		s.asksFor(4, 1, 1)
		s.waits(40 * time.Second)
		s.asksFor(5, 1, 1)
		return s
	},
	"places are not used": func(t *testing.T) *scene {
		s := floodOfPlaces(t, wire.Trust_TRUST_SHUFFLE)
		s.asksEachSecond(1, 1, 90)
		s.asksEachSecond(1, 2, 150)
		s.answers(1, 0, 6)
		s.announces(2)
		return s
	},
	"places are not used under floors": func(t *testing.T) *scene {
		s := floodOfPlaces(t, wire.Trust_TRUST_SHUFFLE_PAN)
		s.asksEachSecond(1, 1, 90)
		s.answers(1, 0, 6)
		s.announces(2)
		s.asksEachSecond(2, 1, 150)
		s.answers(2, 0, 6)
		s.announces(3)
		return s
	},
	"nobody asks for a place": func(t *testing.T) *scene {
		s := withPlaces(t, plan{rounds: 2, cohort: 2, deadline: time.Minute}).scene()
		s.adapt = func(c *Config) { c.PlaceServer = s.broker }
		s.begins("")
		s.announces(1)
		s.waits(time.Minute)
		s.answers(1, 0, 2)
		s.announces(2)
		return s
	},
	"the broker is away": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, spares: 1})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.does("the broker is away for 4 s", 4*time.Second, s.broker.Disconnect)
		s.does("the broker is back", 5*time.Second, s.broker.Connect)
		s.does("the broker is away for 65 s", 65*time.Second, s.broker.Disconnect)
		s.does("the broker is back", 20*time.Second, s.broker.Connect)
		s.answers(1, 0, 3)
		return s
	},
	"an answer of the broker is lost": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.begins("")
		s.fails("answers about Opens are lost", memory.Put, "open", memory.LostAck)
		s.announces(1)
		s.fails("answers about batches are lost", memory.Put, "batch", memory.LostAck)
		s.waits(time.Second) // so that the Open stands: its wake and the reports would come in any order
		s.answers(1, 0, 3)
		s.fails("the broker is well", memory.Put, "batch", memory.None)
		s.waits(10 * time.Second)
		return s
	},
	"the task ends in an open round": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.ends(0)
		return s
	},
	// The looks get rarer while nobody reports, and the End that is announced hurries the next one.
	"the task ends after nobody reported for long": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.begins("")
		s.announces(1)
		s.waits(5 * time.Minute)
		s.ends(0)
		return s
	},
	"the broker loses all but the rounds": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3, spares: 1})
		p := s.begins("")
		s.announces(1)
		s.answers(1, 0, 3)
		p.ends()
		s.does("the broker loses all but the rounds", 0, s.forget)
		s.begins("")
		s.waits(time.Minute)
		s.announces(2)
		return s
	},
	"a replica does not show the outcome": func(t *testing.T) *scene {
		s := laggingReplica(t)
		s.announces(2)
		s.answers(2, 0, 3)
		return s
	},
	"a replica does not show the outcome of the last round": func(t *testing.T) *scene {
		s := laggingReplica(t)
		s.ends(1)
		return s
	},
	"a replica shows the batch of a decided round late": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.beginsTo("put close.1.1", false)
		s.announces(1)
		s.answers(1, 0, 3)
		s.announces(2)
		s.fails("a replica does not know batches", memory.Get, "batch", memory.Lag)
		s.begins("")
		s.waits(10 * time.Second)
		s.fails("the replica has them", memory.Get, "batch", memory.None)
		s.waits(10 * time.Second)
		return s
	},
	"the batch of a decided round is lost": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.announces(1)
		s.puts("a life that is over claimed the round", s.name.Claim(1), s.claim(stream.Hash{}))
		s.announces(2)
		s.begins("")
		s.waits(time.Minute)
		return s
	},
	"somebody else writes Opens": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.announces(1)
		s.does("a strange key has signed an Open", 0, func() {
			s.put(s.ctx, s.name.Open(1, 1), s.sign(s.learner, s.opened(1)))
		})
		s.begins("")
		s.waits(5 * time.Second)
		return s
	},
	"marks cannot be written": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.does("the disk is full", 0, func() { s.marks.set(errors.New("no space left on device")) })
		s.answers(1, 2, 1)
		s.waits(time.Minute)
		s.does("the disk has room", 10*time.Second, func() { s.marks.set(nil) })
		return s
	},
	"another process has marked the round": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		s.does("a process at another broker marks the round", 0, func() {
			_, err := s.marks.Claim(s.hash, 1, [stream.InstanceSize]byte{1})
			must(t, err)
		})
		s.answers(1, 2, 1)
		s.waits(10 * time.Second)
		return s
	},
	"another process has marked and claimed the round": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 4})
		s.begins("")
		s.announces(1)
		s.answers(1, 0, 3)
		s.does("another process marks the round", 0, func() {
			_, err := s.marks.Claim(s.hash, 1, [stream.InstanceSize]byte{1})
			must(t, err)
		})
		s.puts("it claims the round", s.name.Claim(1), s.claim(stream.Hash{}))
		s.answers(1, 3, 1)
		s.puts("its batch comes", s.name.Batch(1), s.real())
		s.waits(10 * time.Second)
		return s
	},
	"an attempt dies under floors": func(t *testing.T) *scene {
		s := newScene(t, plan{cohort: 3, spares: 1, trust: wire.Trust_TRUST_SHUFFLE_PAN, suite: wire.Suite_SUITE_X25519})
		s.adapt = func(c *Config) { *c = exactly(t, *c) }
		p := s.begins("")
		s.announces(1)
		s.answers(1, 0, 2)
		p.ends()
		s.begins("")
		s.waits(5 * time.Second)
		return s
	},
}

// laggingReplica plays a round whose outcome the next life does not see at first, so that it opens another attempt.
func laggingReplica(t *testing.T) *scene {
	s := newScene(t, plan{rounds: 2, cohort: 3})
	p := s.begins("")
	s.announces(1)
	s.answers(1, 0, 3)
	p.ends()
	s.does("a replica does not know the outcome", 0, func() {
		s.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if a, _ := stream.ParseSubject(subject); op == memory.Get && (a.Verb == "batch" || a.Verb == "claim" ||
				a.Verb == "close") {
				return memory.Lag
			}
			return memory.None
		})
	})
	s.marks = &memoryMarks{} // it has none in common with the life before
	s.begins("")
	s.waits(5 * time.Second)
	s.does("the replica has it", 10*time.Second, func() { s.broker.Inject(nil) })
	return s
}

// floodOfPlaces begins a task whose rounds give places.
func floodOfPlaces(t *testing.T, trust wire.Trust) *scene {
	s := withPlaces(t, plan{rounds: 3, cohort: 6, deadline: 8 * time.Minute, trust: trust}).scene()
	s.adapt = func(c *Config) { c.PlaceServer = s.broker }
	s.begins("")
	s.announces(1)
	return s
}

// asksEachSecond requests places that nobody uses.
func (s *scene) asksEachSecond(r stream.Round, a stream.Attempt, seconds int) {
	s.does(fmt.Sprintf("somebody asks for a place in %d.%d each second for %d s", r, a, seconds), 5*time.Second, func() {
		for n := range seconds {
			s.asks(r, a, 1_000_000*uint64(r)+1000*uint64(a)+uint64(n), 1)
			time.Sleep(time.Second + time.Millisecond)
		}
	})
}

// manifest returns the hash of a round.
func (s *scene) manifest(r stream.Round) []byte {
	body, err := stream.Marshal(s.round(r, uint64(r)))
	must(s.t, err)
	hash := stream.HashOf(body)
	return hash[:]
}

// opened returns the Open of attempt 1 of a life that is over.
func (s *scene) opened(r stream.Round) *wire.Open {
	return &wire.Open{Version: stream.Version, TaskHash: s.hash[:], Round: uint64(r), Attempt: 1,
		ManifestHash: s.manifest(r), Suite: wire.Suite_SUITE_NONE, Instance: make([]byte, stream.InstanceSize)}
}

// asksFor requests places in attempt 1, and records the reply.
func (s *scene) asksFor(n uint64, r stream.Round, users uint32) {
	s.does(fmt.Sprintf("a device asks for %d place", users), time.Second, func() {
		a, answered := s.asks(r, 1, n, users)
		text := "nobody answers"
		if answered {
			verdict := map[stream.PlaceVerdict]string{stream.PlaceGranted: "granted", stream.PlaceWait: "wait",
				stream.PlaceOver: "over"}[a.Verdict]
			text = fmt.Sprintf("it is answered: %s, %d users, %v", verdict, a.Users, a.Time)
		}
		s.trace.Say("", "| "+text)
	})
}
