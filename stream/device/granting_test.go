package device

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A clerk is an issuer that signs one message a person. Its replies may be lost.
type clerk struct {
	t      *testing.T
	signer *grant.Signer
	of     *grant.Task
	store  grants.Store
	given  map[string][]byte // messages by person
	lose   int               // replies that are lost first
	asked  int
	when   []time.Time
	order  [][]string // of the people in each request
	wrong  bool       // it replies with bytes that are no signature
}

// Sign implements grants.Source. What it is asked for has to be in the store.
func (c *clerk) Sign(_ context.Context, asks []grants.Ask) ([]grants.Answer, error) {
	c.asked++
	c.when, c.order = append(c.when, time.Now()), append(c.order, nil)
	out := make([]grants.Answer, len(asks))
	for i, a := range asks {
		c.order[len(c.order)-1] = append(c.order[len(c.order)-1], a.Person)
		known, err := c.store.Look([]participation.Key{keptAs(c.of, participation.EventKey(a.Person))})
		if err != nil || !known[0].Drawn {
			c.t.Errorf("the issuer is asked for what is not stored: %v", err)
		}
		if before := c.given[a.Person]; before != nil && !bytes.Equal(before, a.Message) {
			out[i].Refused = true
			continue
		}
		c.given[a.Person] = a.Message
		blinded, err := grant.ParseRequest(a.Message, grant.KeyID(c.signer.Public()))
		if err != nil {
			return nil, err
		}
		if out[i].Signature, err = c.signer.Sign(blinded); err != nil {
			return nil, err
		}
		if c.wrong {
			clear(out[i].Signature)
		}
	}
	if c.lose > 0 {
		c.lose--
		return nil, errors.New("the answer is lost")
	}
	return out, nil
}

func askers(names ...string) (out []*event) {
	for _, n := range names {
		out = append(out, &event{record: participation.Record{Key: participation.EventKey(n)}, person: n})
	}
	return out
}

// demand gets the tokens of events as the loop has them got.
func (g *granting) demand(ctx context.Context, of *grant.Task, events []*event) {
	if g.come(events) {
		g.request(ctx, of)
	}
}

// TestAsksWithOneMessage: a device whose issuer's answer is lost, before or after a restart, asks with the same
// message, and has its token; one that lost its store is refused; an answer that is no signature is none.
func TestAsksWithOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signer := granttest.Signer(t)
		of, err := grant.Of(signer.Public(), stream.Hash{3})
		if err != nil {
			t.Fatal(err)
		}
		store := grants.NewMemoryStore()
		c := &clerk{t: t, signer: signer, of: of, store: store, given: map[string][]byte{}, lose: 3}
		with := func(store grants.Store) *granting {
			c.store = store
			return newGranting(c, store, slog.New(slog.DiscardHandler))
		}
		// The first life ends while the replies are lost.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		first := with(store)
		first.demand(ctx, of, askers("ann", "bob"))
		if got := first.done.take(); len(got) != 0 || c.asked < 2 {
			t.Fatalf("%d were answered, asked %d times", len(got), c.asked)
		}
		second := with(store)
		second.demand(t.Context(), of, askers("ann", "bob"))
		got := second.done.take()
		for _, g := range got {
			if _, err := of.Verify(g.token); err != nil || g.err != nil {
				t.Errorf("%v, %v", err, g.err)
			}
		}
		asked := c.asked
		third := with(store) // after a restart nobody is asked
		third.demand(t.Context(), of, askers("ann"))
		if again := third.done.take(); len(got) != 2 || len(again) != 1 || c.asked != asked ||
			!slices.ContainsFunc(got, func(g granted) bool { return bytes.Equal(g.token, again[0].token) }) {
			t.Errorf("%d and %d answers, asked %d times more", len(got), len(again), c.asked-asked)
		}
		lost := with(grants.NewMemoryStore())
		lost.demand(t.Context(), of, askers("ann", "carl"))
		refused := 0
		for _, g := range lost.done.take() {
			if g.token == nil && g.err == nil && g.event.person == "ann" {
				refused++
			} else if g.event.person != "carl" {
				t.Errorf("%s has a token", g.event.person)
			}
		}
		if refused != 1 {
			t.Error("who lost its store is not refused")
		}
		c.wrong = true
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		forged := with(grants.NewMemoryStore())
		forged.demand(ctx, of, askers("dora"))
		if got := forged.done.take(); len(got) != 0 {
			t.Errorf("an answer that is no signature is taken: %v", got)
		}
	})
}

// TestDrawsOfOneTask: a store that is given another task under the same issuer's key draws again: two messages of one
// blinding would tell the issuer whose a token is.
func TestDrawsOfOneTask(t *testing.T) {
	signer, store := granttest.Signer(t), grants.NewMemoryStore()
	events := askers("ann")
	nonces, blinds := map[[grant.NonceSize]byte]bool{}, map[[32]byte]bool{}
	for n := range byte(3) {
		of, err := grant.Of(signer.Public(), stream.Hash{n})
		if err != nil {
			t.Fatal(err)
		}
		c := &clerk{t: t, signer: signer, of: of, store: store, given: map[string][]byte{}}
		got, _, err := newGranting(c, store, slog.New(slog.DiscardHandler)).once(t.Context(), of, events)
		if err != nil || len(got) != 1 {
			t.Fatalf("%d answers, %v", len(got), err)
		}
		if _, err := of.Verify(got[0].token); err != nil {
			t.Errorf("task %d: a token of another task: %v", n, err)
		}
		nonces[[grant.NonceSize]byte(got[0].token)] = true
		all, err := store.Look([]participation.Key{keptAs(of, events[0].record.Key)})
		if err != nil {
			t.Fatal(err)
		}
		blinds[all[0].Request.Blind] = true
	}
	if len(nonces) != 3 || len(blinds) != 3 {
		t.Errorf("%d nonces and %d blindings in 3 tasks", len(nonces), len(blinds))
	}
}

// TestGatewayAsksOnTicks: an issuer learns neither when within a second a gateway's people came nor in which order,
// which is their reports' order, and gets one request for all people of a tick.
func TestGatewayAsksOnTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signer := granttest.Signer(t)
		of, err := grant.Of(signer.Public(), stream.Hash{3})
		if err != nil {
			t.Fatal(err)
		}
		var orders [][]string
		for _, names := range [][]string{{"ann", "bob", "carl", "dora"}, {"dora", "carl", "bob", "ann"},
			{"bob", "dora", "ann", "carl"}} {
			c := &clerk{t: t, signer: signer, of: of, store: grants.NewMemoryStore(), given: map[string][]byte{}}
			g := newGranting(c, c.store, slog.New(slog.DiscardHandler))
			for i, name := range names {
				time.Sleep(time.Duration(i) * 37 * time.Millisecond)
				go g.demand(t.Context(), of, askers(name))
			}
			time.Sleep(2 * askEvery)
			synctest.Wait()
			var came []string
			for _, one := range g.done.take() {
				came = append(came, one.event.person)
			}
			if len(c.when) != 1 || c.when[0].Sub(g.began) != askEvery {
				t.Errorf("%v: asked at %v, began at %v", names, c.when, g.began)
			}
			if !slices.Equal(came, names) { // reports go on in the order in which events came
				t.Errorf("%v came, and go on as %v", names, came)
			}
			orders = append(orders, c.order[0])
		}
		for _, o := range orders {
			if !slices.Equal(o, orders[0]) {
				t.Errorf("the issuer is asked in the order %v, or %v", orders[0], o)
			}
		}
	})
}
