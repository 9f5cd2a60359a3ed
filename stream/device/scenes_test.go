package device_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// scenes play the situations by the names of their traces.
var scenes = map[string]func(*testing.T) *scene{
	"a clock is ahead": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.config.Ledger = memory.NewLedger()
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.offers("a")
		s.does("the machine's clock goes on by a day", 0, func() { s.ahead.Store(int64(24 * time.Hour)) })
		s.offers("b")
		s.waits(5 * time.Second)
		s.does("the clock is set right", 10*time.Second, func() { s.ahead.Store(0) })
		s.closes(1, 1, everything)
		return s
	},
	"a report is counted": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.closes(1, 1, everything)
		s.ends(1)
		return s
	},
	"three events travel in one message": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 4, bundle: 4})
		s.config.Bundle = 4
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.offers("abc")
		s.offers("d")
		s.closes(1, 1, everything)
		s.ends(1)
		return s
	},
	"an uncounted event joins the next round": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 3, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.closes(1, 1, 0)
		s.announces(2)
		s.opens(2, 1, nil)
		s.closes(2, 1, everything)
		s.ends(2)
		return s
	},
	"one more round costs too much": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 3, cohort: 8, tight: true})
		s.config.Policy.MaxEpsilon = 0 // what the task declares
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.closes(1, 1, 0)
		s.announces(2)
		s.opens(2, 1, nil)
		return s
	},
	"the stage opens a round again": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2})
		most := uint32(3)
		s.config.Policy.MaxReports = &most
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.opens(1, 2, nil)
		s.offers("b")
		s.opens(1, 3, nil)
		s.opens(1, 4, nil)
		s.closes(1, 4, everything)
		s.ends(1)
		return s
	},
	"a round is void": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.does("the round is void", 10*time.Second, func() {
			s.close(s.ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: s.hashes[1], Void: true})
		})
		return s
	},
	"no close comes before the end": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.offers("bc")
		s.ends(1)
		return s
	},
	"a device begins again": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 4})
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.faults[memory.Publish] = memory.LostAck
		s.offers("ab")
		s.faults[memory.Publish] = memory.None
		s.dies()
		s.begins()
		s.offers("b")
		s.waits(5 * time.Second)
		s.closes(1, 1, everything)
		s.offers("a")
		s.ends(1)
		return s
	},
	"the learner announces another round under a number": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 4, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		another := func(r stream.Round, step stream.Step) {
			s.does(fmt.Sprintf("the learner announces another round %d", r), 10*time.Second, func() {
				m := s.round(r, step)
				m.Point[0] = .25
				s.put(s.ctx, s.name.Round(r), s.learner, m)
				hash, err := manifest.RoundHash(m)
				must(t, err)
				s.hashes[r] = hash
			})
		}
		s.broker.Lose(s.name.Round(1))
		s.broker.Lose(s.name.Open(1, 1))
		another(1, 1)
		s.opens(1, 1, nil)
		s.offers("b")
		another(2, 2)
		s.opens(2, 1, nil)
		s.closes(2, 1, everything)
		return s
	},
	"the broker forgets a round": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 3, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.does("the broker is put back to before round 1", 50*time.Second, func() {
			s.broker.Disconnect()
			s.broker.Lose(s.name.Round(1))
			s.broker.Lose(s.name.Open(1, 1))
			s.broker.Connect()
		})
		return s
	},
	"a replica lags": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.offers("a")
		lag := func(f memory.Fault) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.faults[memory.Get], s.faults[memory.Latest] = f, f
		}
		s.does("the connection is lost and back, and a replica answers that lags", 10*time.Second, func() {
			lag(memory.Lag)
			s.broker.Disconnect()
			s.broker.Connect()
		})
		s.offers("b")
		s.does("it lags no more", 30*time.Second, func() { lag(memory.None) })
		s.closes(1, 1, everything)
		return s
	},
	"the open beside a close cannot be read": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2})
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.does("reads of attempts lag", 0, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.faults[memory.Get] = memory.Lag
		})
		s.closes(1, 1, everything)
		s.does("they lag no more", 5*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.faults[memory.Get] = memory.None
		})
		return s
	},
	"wakes are lost": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2, deadline: 10 * time.Second})
		s.faults[memory.Wake] = memory.Lost
		s.begins()
		s.offers("a")
		s.announces(1)
		s.opens(1, 1, nil)
		s.waits(20 * time.Second)
		s.closes(1, 1, everything)
		s.waits(20 * time.Second)
		s.ends(1)
		return s
	},
	"the broker refuses reports": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 6})
		s.answer = func(a *stream.Ack) { *a = stream.Ack{Status: stream.Refused, Cause: "the stream is full"} }
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.offers("ab")
		s.offers("c")
		s.waits(10 * time.Second)
		s.does("the broker takes reports again", 15*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answer = nil
		})
		s.closes(1, 1, everything)
		return s
	},
	"sending ends with the claim": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3})
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.offers("a")
		s.does("the stage claims the batch", 5*time.Second, func() {
			hash := s.hashes[1]
			s.put(s.ctx, s.name.Claim(1), s.stage, &wire.Claim{Version: stream.Version, TaskHash: s.hash[:], Round: 1,
				Attempt: 1, ManifestHash: hash[:], Instance: make([]byte, stream.InstanceSize)})
		})
		s.offers("b")
		s.closes(1, 1, everything)
		return s
	},
	"the same users answer three rounds": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 3, cohort: 2})
		s.replan(asked(2, 3, 0))
		s.begins()
		s.offers("abc")
		for r := stream.Round(1); r <= 3; r++ {
			s.announces(r)
			s.opens(r, 1, nil)
			s.closes(r, 1, everything)
		}
		s.ends(3)
		return s
	},
	"users draw lots": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 6})
		s.begins()
		s.announces(1)
		s.offers("abcdef")
		s.opens(1, 1, func(o *wire.Open) { o.JoinProbability, o.JoinDoublingMs = 1<<30, 2000 })
		s.waits(5 * time.Second)
		s.opens(1, 2, func(o *wire.Open) { o.JoinProbability, o.JoinDoublingMs = 1<<30, 2000 })
		s.closes(1, 2, everything)
		s.ends(1)
		return s
	},
	"a silo answers three rounds with one block": func(t *testing.T) *scene {
		s := newSilos(t, accounting.Shuffle, 3).scene()
		s.config.Rows = true
		s.begins()
		s.announces(1)
		s.opens(1, 1, nil)
		s.runs(part{"a", 0, 7}, part{"b", 7, 5})
		s.closes(1, 1, everything)
		s.announces(2)
		s.opens(2, 1, nil)
		s.dies()
		s.begins()
		s.runs(part{"a", 0, 7}, part{"b", 7, 5})
		s.opens(2, 2, nil)
		s.closes(2, 2, everything)
		s.announces(3)
		s.opens(3, 1, nil)
		s.closes(3, 1, 0)
		s.ends(3)
		return s
	},
	"two operators open a round": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2, trust: accounting.Split})
		s.begins()
		s.offers("a")
		s.announces(1)
		p := s.pair(1, 1, s.hashes[1], nil)
		s.leads(p)
		s.joins(p)
		s.closesByTwo(p, everything)
		s.announces(2)
		p = s.pair(2, 1, s.hashes[2], nil)
		s.joins(p)
		s.leads(p)
		s.offers("b")
		s.closesByTwo(p, 0)
		s.ends(2)
		return s
	},
	"an open waits for its join": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 2, trust: accounting.Split, deadline: time.Minute})
		s.begins()
		s.offers("a")
		s.announces(1)
		p := s.pair(1, 1, s.hashes[1], nil)
		s.leads(p)
		s.waits(time.Minute)
		s.leads(s.pair(1, 2, s.hashes[1], nil))
		s.joins(s.pair(1, 2, s.hashes[1], nil)) // of another open
		s.waits(time.Minute)
		p = s.pair(1, 3, s.hashes[1], nil)
		s.faults[memory.Wake] = memory.Lost
		s.leads(p)
		s.joins(p)
		s.waits(2 * time.Minute)
		s.closesByTwo(p, everything)
		s.waits(2 * time.Minute)
		return s
	},
	"two operators open a round again": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 3, trust: accounting.Split})
		most := uint32(2)
		s.config.Policy.MaxAttempts = &most
		s.begins()
		s.offers("a")
		s.announces(1)
		p := s.pair(1, 1, s.hashes[1], nil)
		s.leads(p)
		s.joins(p)
		s.faults[memory.Publish] = memory.LostAck
		p = s.pair(1, 2, s.hashes[1], nil)
		s.leads(p)
		s.joins(p)
		s.dies()
		s.faults[memory.Publish] = memory.None
		s.begins()
		s.offers("b")
		p = s.pair(1, 3, s.hashes[1], nil)
		s.leads(p)
		s.joins(p)
		s.closesByTwo(p, everything)
		s.offers("a")
		s.ends(1)
		return s
	},
	"places are given": func(t *testing.T) *scene {
		s := newScene(t, plan{rounds: 2, cohort: 4})
		s.task.Plan.Places = true
		s.hash = taskHash(t, s.task)
		answers := func(v stream.PlaceVerdict, d time.Duration) func(stream.PlaceRequest) stream.PlaceAnswer {
			return func(r stream.PlaceRequest) stream.PlaceAnswer {
				if v != stream.PlaceGranted {
					r.Users = 0
				}
				return stream.PlaceAnswer{Verdict: v, Users: r.Users, Time: d}
			}
		}
		give := func(what string, wait time.Duration, f func(stream.PlaceRequest) stream.PlaceAnswer) {
			s.does(what, wait, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.places = f
			})
		}
		s.begins()
		s.announces(1)
		s.opens(1, 1, func(o *wire.Open) { o.PlacesMs = 3000 })
		s.offers("a") // no reply comes
		give("the stage has users wait for 2 s", 5*time.Second, answers(stream.PlaceWait, 2*time.Second))
		give("the stage gives places whose time is over", 4*time.Second, answers(stream.PlaceGranted, time.Millisecond))
		give("the stage gives places", 4*time.Second, answers(stream.PlaceGranted, 3*time.Second))
		give("the stage takes nobody any more", 0, answers(stream.PlaceOver, 0))
		s.offers("b")
		s.waits(10 * time.Second)
		s.opens(1, 2, func(o *wire.Open) { o.PlacesMs = 3000 })
		s.closes(1, 2, everything)
		s.ends(1)
		return s
	},
}
