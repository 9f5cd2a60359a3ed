package device_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A scene is a situation whose trace is kept in testdata: a device, and a test that plays learner, stage and broker.
// Lines with a bar are what the test does; the others are effects that the device's machines asked for, outcomes that it
// told, and what it logged. Times count from the beginning; lots and waits are the same in every run.
type scene struct {
	*world
	ctx    context.Context
	config device.Settings
	lives  byte
	device *device.Device
	hashes map[stream.Round]stream.Hash

	mu     sync.Mutex
	begun  time.Time
	lines  []string
	faults map[memory.Op]memory.Fault
	places func(stream.PlaceRequest) stream.PlaceAnswer // nil: nobody gives places
	answer func(*stream.Ack)                            // nil: the broker's answer is told as it is
}

func newScene(t *testing.T, p plan) *scene {
	s := &scene{ctx: t.Context(), begun: time.Now(), hashes: make(map[stream.Round]stream.Hash),
		faults: make(map[memory.Op]memory.Fault)}
	p.broker.Inject = func(op memory.Op, _ string) memory.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.faults[op]
	}
	s.world = newWorld(t, p)
	s.config = s.dear(inOrder{participation.NewMemoryStore()})
	s.config.Transport = player{s.config.Transport, s}
	s.config.Logger = slog.New(lineLog{Handler: slog.DiscardHandler, say: s.say})
	return s
}

// An inOrder is a store that lists events in the order of their keys.
type inOrder struct{ participation.Store }

func (s inOrder) Charged() iter.Seq2[participation.Record, error] {
	return func(yield func(participation.Record, error) bool) {
		var all []participation.Record
		for r, err := range s.Store.Charged() {
			if err != nil {
				yield(r, err)
				return
			}
			all = append(all, r)
		}
		slices.SortFunc(all, func(a, b participation.Record) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// say appends a line.
func (s *scene) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%9v  %s", device.Times(time.Since(s.begun)), line))
}

// does records what the test does next, does it, and waits.
func (s *scene) does(what string, wait time.Duration, f func()) {
	s.say("| " + what)
	f()
	time.Sleep(wait)
	synctest.Wait()
}

// waits lets time go by.
func (s *scene) waits(d time.Duration) { s.does(fmt.Sprintf("%v go by", d), d, func() {}) }

// begins starts a device on the scene's store.
func (s *scene) begins() {
	s.does("a device begins", 0, func() {
		s.lives++
		s.device = s.client(s.config)
		s.device.SetChance(s.lives)
		s.device.OnEffect(func(k participation.Key) string {
			for name := 'a'; name <= 'z'; name++ {
				if participation.EventKey(string(name)) == k {
					return string(name)
				}
			}
			return "?"
		}, s.say)
	})
}

// dies closes the device.
func (s *scene) dies() {
	s.does("the device is closed", 0, func() { must(s.t, s.device.Close()) })
}

// offers hands over an event of each letter.
func (s *scene) offers(names string) {
	s.does("events are submitted: "+names, time.Second, func() {
		for _, name := range names {
			name := string(name)
			must(s.t, s.device.Offer(s.ctx, participation.EventKey(name), func(o device.Outcome) { s.say(o.Tell(name)) }))
		}
	})
}

// announces puts a round of the step of its number.
func (s *scene) announces(r stream.Round) {
	s.does(fmt.Sprintf("the learner announces round %d", r), time.Second, func() { s.hashes[r] = s.announce(s.ctx, r) })
}

// opens puts an attempt, as open changes it.
func (s *scene) opens(r stream.Round, a stream.Attempt, open func(*wire.Open)) {
	s.does(fmt.Sprintf("the stage opens %d.%d", r, a), 5*time.Second, func() {
		m := s.openMessage(r, a, s.hashes[r])
		m.StartedUnixMs = time.Now().UnixMilli()
		if open != nil {
			open(m)
		}
		s.put(s.ctx, s.name.Open(r, a), s.stage, m)
	})
}

const everything = 1 << 40

// closes puts the Close of an attempt.
func (s *scene) closes(r stream.Round, a stream.Attempt, cutoff uint64) {
	what := "which counts no report"
	if cutoff > 0 {
		what = "which counts its reports"
	}
	s.does(fmt.Sprintf("the stage closes %d.%d, %s", r, a, what), 10*time.Second, func() {
		s.close(s.ctx, participation.Closed{Round: r, Attempt: nth(a), Manifest: s.hashes[r], Cutoff: cutoff})
	})
}

func (s *scene) ends(last stream.Round) {
	s.does("the learner ends the task", 30*time.Second, func() { s.end(s.ctx, last) })
}

// A player is the way to the broker of a scene.
type player struct {
	stream.Transport
	s *scene
}

func (p player) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := p.Transport.Publish(ctx, reports)
	p.s.mu.Lock()
	answer := p.s.answer
	p.s.mu.Unlock()
	for i := range acks {
		if answer != nil {
			answer(&acks[i])
		}
	}
	return acks, err
}

func (p player) Place(ctx context.Context, subject string, data []byte) ([]byte, error) {
	r, err := stream.ParsePlaceRequest(data)
	must(p.s.t, err)
	p.s.mu.Lock()
	answer := p.s.places
	p.s.mu.Unlock()
	if answer == nil {
		return nil, errSilent
	}
	a := answer(r)
	a.ID = r.ID
	return a.Record(), nil
}

// A lineLog records what is logged, with numbers and truths alone beside the message.
type lineLog struct {
	slog.Handler
	say func(string)
}

func (lineLog) Enabled(context.Context, slog.Level) bool { return true }

func (l lineLog) Handle(_ context.Context, r slog.Record) error {
	text := "log: " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindInt64, slog.KindUint64, slog.KindBool:
			text += " " + a.String()
		}
		if n, ok := a.Value.Any().(stream.Round); ok {
			text += fmt.Sprintf(" %s=%d", a.Key, n)
		}
		return true
	})
	l.say(text)
	return nil
}

// TestTraces plays each situation and compares what the device decided, in which order and when, with its trace.
func TestTraces(t *testing.T) {
	traces, err := filepath.Glob("testdata/traces/*.txt")
	must(t, err)
	if len(traces) != len(scenes) && !golden.Updating() {
		t.Errorf("%d traces in testdata of %d scenes", len(traces), len(scenes))
	}
	for name, play := range scenes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t)
				must(t, s.device.Close())
				got := strings.Join(s.lines, "\n") + "\n"
				path := filepath.Join("testdata", "traces", strings.ReplaceAll(name, " ", "_")+".txt")
				if want, err := os.ReadFile(path); err == nil && string(want) != got && !golden.Updating() {
					t.Errorf("line %d differs", differs(got, string(want)))
				}
				golden.File(t, path, got)
			})
		})
	}
}

// differs returns the first line in which two texts differ, both of which it logs.
func differs(got, want string) int {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			fmt.Printf("got:  %s\nwant: %s\n", a[i], b[i])
			return i + 1
		}
	}
	return min(len(a), len(b)) + 1
}

var scenes = map[string]func(*testing.T) *scene{
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
		s.offers("a") // nobody answers
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
