package campaign

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// places hold what the publishers of a world got as answers about places, and who else speaks of them.
type places struct {
	forgedUntil time.Time // somebody else replies until then; mu guards it
	asked       uint64    // by floods, so that ids differ
	counts      placeCounts
}

// placeCounts sum up what happened to places.
type placeCounts struct {
	granted int // answers that gave places
	charged int // users charged with one
	forged  int // answers of somebody else
	flooded int // requests of floods
}

func (c *placeCounts) add(d placeCounts) {
	c.granted, c.charged = c.granted+d.granted, c.charged+d.charged
	c.forged, c.flooded = c.forged+d.forged, c.flooded+d.flooded
}

// A grant is places that a publisher was given.
type grant struct {
	subject string
	asked   time.Time
	users   int
}

// forge answers a request in the place of the stage, if somebody else does so now: with places that nobody has, with an
// answer to another request, with noise, or that there is no room.
func (w *world) forge(request []byte) (answer []byte, forged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := stream.ParsePlaceRequest(request)
	if err != nil || !time.Now().Before(w.places.forgedUntil) {
		return nil, false
	}
	w.places.counts.forged++
	a := stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceGranted, Users: r.Users, Time: time.Hour}
	switch w.places.counts.forged % 4 {
	case 1:
		a.ID[3]++
	case 2:
		return []byte("places for all"), true
	case 3:
		a = stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceWait, Time: time.Second}
	}
	return a.Record(), true
}

// told records an answer that a publisher got.
func (l *link) told(subject string, request, answer []byte, asked time.Time) {
	r, _ := stream.ParsePlaceRequest(request)
	a, err := stream.ParsePlaceAnswer(answer)
	if err != nil || a.Verdict != stream.PlaceGranted || a.ID != r.ID || r.Charged {
		return
	}
	for _, p := range l.w.devices {
		if p.process == l.owner {
			p.mu.Lock()
			p.grants = append(p.grants, grant{subject, asked, int(min(a.Users, r.Users))})
			p.mu.Unlock()
		}
	}
	l.w.mu.Lock()
	l.w.places.counts.granted++
	l.w.mu.Unlock()
}

// lease returns for how long the attempts of a number keep places, the longest that any Open says; 0: one of them has
// no places, or none was seen.
func (w *world) lease(of *participation.Record) (longest time.Duration) {
	for _, data := range w.book.of(name.Open(of.Draw.Round, of.Sends[0].Attempt.Number)) {
		o := body(data, &wire.Open{})
		if o.PlacesMs == 0 {
			return 0
		}
		longest = max(longest, time.Duration(o.PlacesMs)*time.Millisecond)
	}
	return longest
}

// seated insists that a user who is charged has a place in the attempt that the report is for: one that was asked for
// less than half of its lease ago, and for nobody else. p.mu is held.
func (p *publisher) seated(e participation.Record) {
	if _, known := p.reports[e.Draw.Report]; known || len(e.Sends) == 0 {
		return
	}
	lease, now := p.w.lease(&e), time.Now()
	if lease == 0 {
		return
	}
	subject := name.Place(e.Draw.Round, e.Sends[0].Attempt.Number)
	for i := range p.grants {
		if g := &p.grants[i]; g.subject == subject && g.users > 0 && now.Sub(g.asked) < lease/2 {
			g.users--
			p.w.mu.Lock()
			p.w.places.counts.charged++
			p.w.mu.Unlock()
			return
		}
	}
	p.w.violate("user %d is charged to round %d, attempt %d, without a place", p.user(p.drawn[e.Key]), e.Draw.Round,
		e.Sends[0].Attempt.Number)
}

// floodPlaces requests places that nobody uses, or lets somebody else reply for the stage.
func (w *world) floodPlaces(o op) {
	if !w.Places {
		return
	}
	w.mu.Lock()
	if o.What%4 == 3 {
		w.places.forgedUntil = time.Now().Add(time.Duration(o.What) * time.Second / 2)
	}
	w.mu.Unlock()
	subject := name.Place(stream.Round(max(1, w.openRound())), stream.Attempt(1+o.Who%2))
	for range 1 + o.What {
		r := stream.PlaceRequest{Users: uint32(1 + o.Who), Charged: o.What%2 == 1}
		w.places.asked++
		binary.BigEndian.PutUint64(r.ID[:], w.places.asked)
		_, _ = w.broker.Place(context.Background(), subject, r.Record())
	}
	w.mu.Lock()
	w.places.counts.flooded += 1 + o.What
	w.mu.Unlock()
}

// TestPlacesInCampaigns: a place is asked for, given and used where every process and the broker fail, and one that is
// not used keeps nobody out for long.
func TestPlacesInCampaigns(t *testing.T) {
	p := small
	p.Places, p.Deadline = true, 2*time.Minute
	for what, ops := range map[string][]op{
		"nothing":                         nil,
		"the stage dies with places":      {{time.Second, "crash", 1, 0}, {time.Second, "crash", 2, 0}},
		"the stage stands still":          {{time.Second, "suspend", 1, 60}, {time.Second, "suspend", 2, 60}},
		"a device dies with a place":      {{0, "trap", 3, 4}, {0, "trap", 4, 3}},
		"a device is cut off":             {{time.Second, "cut", 3, 20}},
		"the store fails":                 {{0, "trap", 3, 0}, {0, "trap", 4, 1}},
		"somebody asks for all":           {{time.Second, "flood", 0, 60}, {4 * time.Second, "flood", 2, 60}, {4 * time.Second, "flood", 4, 60}},
		"somebody else answers":           {{0, "flood", 0, 63}, {8 * time.Second, "flood", 2, 63}},
		"answers are late":                {{0, "slow", 3, 0}, {0, "slow", 4, 0}, {time.Minute, "fast", 3, 0}, {0, "fast", 4, 0}},
		"the broker loses and doubles":    {{0, "lossy", 0, 0}, {time.Minute, "clean", 0, 0}},
		"the broker is gone for a moment": {{time.Second, "outage", 0, 10}},
	} {
		t.Run(what, func(t *testing.T) {
			r := play(t, p, ops, broken{})
			if len(r.violations) > 0 || !r.ended || r.real != 3 {
				t.Errorf("%+v", r)
			}
			if r.places.granted == 0 || r.places.charged == 0 {
				t.Errorf("no places were given and used: %+v", r.places)
			}
		})
	}
}

// A believer takes every request for granted, whatever the stage answers.
type believer struct{ stream.Transport }

func (b believer) Place(_ context.Context, _ string, request []byte) ([]byte, error) {
	r, err := stream.ParsePlaceRequest(request)
	return stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceGranted, Users: r.Users, Time: time.Hour}.Record(), err
}

// A device that is charged without an answer turns the campaigns red.
func TestChargedWithoutAPlaceIsSeen(t *testing.T) {
	p := small
	p.Places, p.Deadline = true, 2*time.Minute
	r := play(t, p, nil, broken{device: func(d stream.Transport) stream.Transport { return believer{d} }})
	if len(r.violations) == 0 {
		t.Error("nobody saw that users were charged without a place")
	}
}
