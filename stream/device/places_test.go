package device_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// withPlaces returns a world whose plan has places.
func withPlaces(t testing.TB, p plan) *world {
	w := newWorld(t, p)
	w.task.Plan.Places = true
	w.hash = taskHash(t, w.task)
	return w
}

// A clerk is between a device and the stage that gives places.
type clerk struct {
	stream.Transport
	answer func(stream.PlaceRequest) (stream.PlaceAnswer, error) // replies for the stage; nil: the stage replies
	way    time.Duration                                         // of everything, there and back

	mu   sync.Mutex
	asks []request
	sent []stream.Outgoing
}

type request struct {
	stream.PlaceRequest
	subject string
	bytes   []byte
	at      time.Time
}

var errSilent = errors.New("no answer")

func (c *clerk) Place(ctx context.Context, subject string, data []byte) ([]byte, error) {
	r, err := stream.ParsePlaceRequest(data)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.asks = append(c.asks, request{r, subject, data, time.Now()})
	answer := c.answer
	c.mu.Unlock()
	if err := device.Until(ctx, time.Now().Add(c.way/2)); err != nil {
		return nil, err
	}
	if answer == nil {
		data, err = c.Transport.Place(ctx, subject, data)
	} else {
		var a stream.PlaceAnswer
		if a, err = answer(r); err == nil {
			data = a.Record()
		}
	}
	if err != nil {
		return nil, err
	}
	return data, device.Until(ctx, time.Now().Add(c.way/2))
}

func (c *clerk) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	c.mu.Lock()
	c.sent = append(c.sent, reports...)
	c.mu.Unlock()
	time.Sleep(c.way / 2)
	acks, err := c.Transport.Publish(ctx, reports)
	time.Sleep(c.way / 2)
	return acks, err
}

func (c *clerk) requests() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asks)
}

func (c *clerk) published() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent)
}

func grants(r stream.PlaceRequest) (stream.PlaceAnswer, error) {
	return stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceGranted, Users: r.Users, Time: placesFor}, nil
}

const placesFor = 3 * time.Second

// place is a device of one event at an attempt that announces places, without a stage.
type placed struct {
	*clerk
	w       *world
	store   *spy
	device  *device.Device
	config  device.Settings
	outcome chan device.Outcome
	charges time.Time // when the store first wrote a charge
}

// A watched store notes when it first writes a charge.
type watched struct {
	*spy
	p *placed
}

func (s watched) Write(c participation.Change) error {
	for _, e := range c.Events {
		if e.State == participation.Charged && s.p.charges.IsZero() {
			s.p.charges = time.Now()
		}
	}
	return s.spy.Write(c)
}

func oneWithPlaces(t *testing.T, trust accounting.Trust, answer func(stream.PlaceRequest) (stream.PlaceAnswer,
	error)) *placed {
	w := withPlaces(t, plan{rounds: 2, cohort: 2, trust: trust, deadline: 10 * time.Minute})
	p := &placed{w: w, store: newSpy(t, participation.NewMemoryStore()), outcome: make(chan device.Outcome, 2)}
	p.config = w.config(watched{p.store, p})
	p.clerk = &clerk{Transport: p.config.Transport, answer: answer}
	p.config.Transport = p.clerk
	return p
}

// publish begins a life of the device.
func (p *placed) publish(ctx context.Context) {
	p.device = p.w.client(p.config)
	d := p.device
	go func() {
		o, _ := d.Publish(ctx, participation.EventKey("a"), example(1))
		p.outcome <- o
	}()
}

// begin opens an attempt at the first round, with places, and has the device publish.
func (p *placed) begin(ctx context.Context) stream.Hash {
	hash := p.w.announce(ctx, 1)
	p.opens(ctx, 1, hash)
	p.publish(ctx)
	return hash
}

func (p *placed) opens(ctx context.Context, a stream.Attempt, hash stream.Hash) {
	m := p.w.openMessage(1, a, hash)
	m.StartedUnixMs, m.PlacesMs = time.Now().UnixMilli(), uint32(placesFor.Milliseconds())
	p.w.put(ctx, p.w.name.Open(1, a), p.w.stage, m)
}

func (p *placed) charged() int {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	return len(p.store.draws)
}

// No answer, a broken answer, an answer to another request, and the word that there is no room: none of them is a place.
func TestSilenceIsNoReasonToJoin(t *testing.T) {
	for name, answer := range map[string]func(stream.PlaceRequest) (stream.PlaceAnswer, error){
		"silence": func(stream.PlaceRequest) (stream.PlaceAnswer, error) { return stream.PlaceAnswer{}, errSilent },
		"another": func(r stream.PlaceRequest) (stream.PlaceAnswer, error) { r.ID[0]++; return grants(r) },
		"broken":  func(r stream.PlaceRequest) (stream.PlaceAnswer, error) { r.Users = 0; return grants(r) },
		"wait": func(r stream.PlaceRequest) (stream.PlaceAnswer, error) {
			return stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceWait, Time: time.Second}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := oneWithPlaces(t, accounting.Shuffle, answer)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				p.begin(ctx)
				time.Sleep(5 * time.Minute)
				asks := p.requests()
				if len(asks) < 5 || p.published() != 0 || p.charged() != 0 {
					t.Errorf("%d requests, %d reports, %d charged: want some, 0, 0", len(asks), p.published(), p.charged())
				}
				ids := map[[16]byte]bool{}
				for _, r := range asks {
					ids[r.ID] = true
				}
				if len(ids) != len(asks) {
					t.Errorf("%d ids of %d requests: want a fresh one each time", len(ids), len(asks))
				}
				must(t, p.device.Close())
				if o := soon(t, p.outcome); o.State != participation.Uncounted || o.Round != 0 {
					t.Errorf("%v: want one that took no part", o)
				}
			})
		})
	}
}

func TestOverIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := oneWithPlaces(t, accounting.Shuffle, func(r stream.PlaceRequest) (stream.PlaceAnswer, error) {
			return stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceOver}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		hash := p.begin(ctx)
		time.Sleep(5 * time.Minute)
		if n := len(p.requests()); n != 1 {
			t.Errorf("%d requests to an attempt that takes nobody any more, want 1", n)
		}
		p.opens(ctx, 2, hash)
		time.Sleep(time.Minute)
		if asks := p.requests(); len(asks) != 2 || asks[1].subject != p.w.name.Place(1, 2) {
			t.Errorf("%d requests: want one to the next attempt", len(asks))
		}
		must(t, p.device.Close())
	})
}

// The device measures from before it asked, by the clock that went further: past half of the time for which a place is
// kept it has none.
func TestPastHalfOfTheLeaseThereIsNoPlace(t *testing.T) {
	for _, c := range []struct {
		name    string
		way     time.Duration // of the request and its answer
		asleep  time.Duration // by which the machine's clock goes on while the steady one stops
		charged int
	}{
		{"in time", placesFor/2 - 100*time.Millisecond, 0, 1},
		{"too late", placesFor/2 - time.Millisecond, 0, 0},
		{"it slept", 0, placesFor, 0},
		{"its clock was set back", 0, -time.Hour, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slept sync.Mutex
				var by time.Duration
				p := oneWithPlaces(t, accounting.Shuffle, func(r stream.PlaceRequest) (stream.PlaceAnswer, error) {
					slept.Lock()
					by += c.asleep
					slept.Unlock()
					return grants(r)
				})
				p.way = c.way
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				hash := p.w.announce(ctx, 1)
				p.opens(ctx, 1, hash)
				p.device = p.w.client(p.config)
				device.SetClock(p.device, func() time.Time {
					slept.Lock()
					defer slept.Unlock()
					return time.Now().Round(0).Add(by)
				})
				go func() {
					o, _ := p.device.Publish(ctx, participation.EventKey("a"), example(1))
					p.outcome <- o
				}()
				time.Sleep(30 * time.Second)
				if p.charged() != c.charged || p.published() != c.charged {
					t.Errorf("%d charged, %d reports: want %d", p.charged(), p.published(), c.charged)
				}
				must(t, p.device.Close())
			})
		})
	}
}

// Crash table. Nothing is paid before the write. After it the report is sent, place or no place, by the next life.
func TestOnceChargedItSendsPlaceOrNoPlace(t *testing.T) {
	for _, lost := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := oneWithPlaces(t, accounting.Shuffle, grants)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			p.store.failAt, p.store.lost = 2, lost // the first write pins the task
			p.begin(ctx)
			soon(t, p.outcome)
			if err := p.device.Close(); !errors.Is(err, errDied) {
				t.Fatalf("%v: want the store's death", err)
			}
			if p.published() != 0 {
				t.Fatal("sent before it was durable")
			}
			asked := len(p.requests())
			p.store.failAt = 0
			p.answer = func(stream.PlaceRequest) (stream.PlaceAnswer, error) { return stream.PlaceAnswer{}, errSilent }
			p.publish(ctx)
			time.Sleep(time.Minute)
			want := 1
			if lost { // the place ended unused, and nobody paid
				want = 0
			}
			if p.published() != want || p.charged() != want {
				t.Errorf("lost write %t: %d reports of %d charged, want %d", lost, p.published(), p.charged(), want)
			}
			if lost && len(p.requests()) == asked {
				t.Error("it did not ask again")
			}
			must(t, p.device.Close())
		})
	}
}

// Users whom an earlier attempt charged are sent to the next one where the trust allows that, and told of; under floors
// nobody sends.
func TestAnEarlierAttemptsUsersAreToldOf(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.ShufflePan} {
		synctest.Test(t, func(t *testing.T) {
			p := oneWithPlaces(t, trust, grants)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			hash := p.begin(ctx)
			time.Sleep(time.Minute)
			p.clerk.mu.Lock()
			p.clerk.answer = func(stream.PlaceRequest) (stream.PlaceAnswer, error) {
				return stream.PlaceAnswer{}, errSilent
			}
			p.clerk.mu.Unlock()
			p.opens(ctx, 2, hash)
			time.Sleep(time.Minute)
			want, asks := 2, p.requests()
			if trust.HasFloors() {
				want = 1
			}
			if p.published() != want || len(asks) != want {
				t.Fatalf("%v: %d reports, %d requests, want %d", trust, p.published(), len(asks), want)
			}
			if asks[0].Charged || want == 2 && (!asks[1].Charged || asks[1].subject != p.w.name.Place(1, 2)) {
				t.Errorf("%v: %+v: want that the second says that its user is charged", trust, asks)
			}
			must(t, p.device.Close())
		})
	}
}

// What the stage sees of a request and of a report has no common value.
func TestARequestAndItsReportShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := oneWithPlaces(t, accounting.Shuffle, grants)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p.begin(ctx)
		time.Sleep(time.Minute)
		asks := p.requests()
		if len(asks) != 1 || p.published() != 1 {
			t.Fatalf("%d requests, %d reports: want one each", len(asks), p.published())
		}
		report := p.sent[0]
		for i := range len(asks[0].ID) - 3 {
			part := asks[0].ID[i : i+4]
			if bytes.Contains(report.Data, part) || bytes.Contains(report.ID[:], part) {
				t.Error("part of a request's id is in the report")
			}
		}
		for i := range len(report.ID) - 3 {
			if bytes.Contains(asks[0].bytes, report.ID[i:i+4]) {
				t.Error("part of the report's id is in the request")
			}
		}
		must(t, p.device.Close())
	})
}

// Whether, when and how much a device asks is the same for every content, also where reports are drawn before.
func TestAskingTellsNothingOfContent(t *testing.T) {
	times := func(e convex.Example) (out []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			p := oneWithPlaces(t, accounting.Shuffle, grants)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			hash := p.w.announce(ctx, 1)
			p.opens(ctx, 1, hash)
			begun := time.Now()
			p.device = p.w.client(p.config)
			go func() {
				o, _ := p.device.PublishFunc(ctx, participation.EventKey("a"), func() convex.Example {
					time.Sleep(time.Duration(len(e.Index)) * time.Millisecond) // work that depends on the content
					return e
				})
				p.outcome <- o
			}()
			time.Sleep(time.Minute)
			for _, r := range p.requests() {
				out = append(out, r.at.Sub(begun), time.Duration(r.Users))
			}
			must(t, p.device.Close())
		})
		return out
	}
	one, other := times(example(1)), times(convex.Example{})
	if len(one) != 2 || len(other) != 2 || one[1] != other[1] || one[0]%(10*time.Millisecond) != 0 ||
		other[0]%(10*time.Millisecond) != 0 {
		t.Errorf("%v and %v: want one request each, of one user, on a tick", one, other)
	}
}

// Places are announced only in tasks whose plan has them; another Open is none of the task's.
func TestPlacesOfAPlanWithoutThemAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := oneWithPlaces(t, accounting.Shuffle, grants)
		p.w.task.Plan.Places = false
		p.w.hash = taskHash(t, p.w.task)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p.begin(ctx)
		time.Sleep(5 * time.Minute)
		if len(p.requests())+p.published()+p.charged() != 0 {
			t.Errorf("%d requests, %d reports, %d charged: want nothing", len(p.requests()), p.published(), p.charged())
		}
		must(t, p.device.Close())
	})
}
