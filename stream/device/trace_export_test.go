package device

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Names tell keys of events apart in a trace.
type Names func(participation.Key) string

// OnEffect shows each effect of the machines, and its result, in one line without payloads or lots. Effects that only
// show the device's state to others are left out. broken is called for effects that come too early.
func OnEffect(c *Device, names Names, show, broken func(string)) {
	order := order{make(map[participation.Key]stream.Round), make(map[participation.Key]sent)}
	c.loop.onEffect = func(e effect, got result) {
		for _, key := range order.early(e, got) {
			broken(names(key) + " is not charged, durably, before: " + names.line(e, got))
		}
		if e.call != tellProgress {
			show(names.line(e, got))
		}
	}
}

// An order holds what was done for events before they are published.
type order struct {
	charged map[participation.Key]stream.Round // in the ledger
	written map[participation.Key]sent         // in the store
}

// A sent is an attempt that an event is sent to.
type sent struct {
	round   stream.Round
	attempt participation.Attempt
}

// early returns the events for which an effect comes too early: in the store before the ledger has the charge, or
// published before the store has that.
func (o order) early(e effect, got result) (early []participation.Key) {
	switch {
	case got.err != nil:
	case e.call == chargeLedger:
		for _, one := range got.allowed {
			o.charged[one.record.Key] = e.round.number
		}
	case e.call == write:
		for _, r := range e.change.Events {
			if n := len(r.Sends); r.State == participation.Charged && n > 0 {
				o.written[r.Key] = sent{r.Draw.Round, r.Sends[n-1].Attempt}
				if n == 1 && r.Sends[0].Sent == 1 && o.charged[r.Key] != r.Draw.Round {
					early = append(early, r.Key)
				}
			}
		}
	case e.call == publish:
		for _, b := range e.delivery.bundles {
			for _, one := range b.events {
				if o.written[one.record.Key] != (sent{e.delivery.round.number, e.delivery.attempt}) {
					early = append(early, one.record.Key)
				}
			}
		}
	}
	return early
}

// SetChance has the loop draw its lots and waits from a seed.
func SetChance(c *Device, seed byte) {
	lots := chance(rand.NewChaCha8([32]byte{seed}).Read)
	l := c.loop
	l.rounds.chance, l.core.chance, l.core.queue.chance, l.core.queue.seats.chance = lots, lots, lots, lots
	l.core.uplink.refusals.chance, l.times.chance = lots, lots
}

// SetFresh has sharings draw the same bytes again and again, as two copies of one machine do.
func SetFresh(c *Device, b byte) {
	c.loop.courier.sharer.fresh = func(out []byte) (int, error) {
		for i := range out {
			out[i] = b
		}
		return len(out), nil
	}
}

// Begin has the loop begin before anything else is asked of the device.
func Begin(c *Device) { c.run() }

// Offer hands over an event, and has told called, by the loop, with what became of it.
func Offer(ctx context.Context, c *Device, key participation.Key, told func(Outcome)) error {
	return c.loop.inbox.put(ctx, &event{record: participation.Record{Key: key}, rows: 1, callbacks: []func(Outcome){told},
		work: func() block.Block {
			return block.Of(convex.Example{Index: []int32{1}, Value: []float64{0.5}, Label: 1})
		}})
}

// Tell passes outcomes on as a trace shows them.
func (o Outcome) Tell(name string) string {
	text := fmt.Sprintf("tell %s: %v", name, o)
	if o.Open {
		text += ", which is open"
	}
	if o.Refused != nil {
		text += ", refused: " + o.Refused.Field
	}
	return text
}

var callNames = [...]string{
	readNewest: "read the newest round after", readRound: "read round", checkRound: "check round",
	checkRemoved: "check whether the broker removed round", readOpen: "read the newest open of", readOpenOf: "read the open of",
	readJoin: "read the join of", readClose: "read the close of",
	readBeside: "read the open beside the close of", readEnd: "read the end", readTask: "read the task",
	readLease: "read the lease", readPin: "read the pin", readManifest: "look up round",
	readEvents: "look up", write: "write", enterLedger: "enter the ledger", chargeLedger: "charge", settleLedger: "settle in the ledger",
	prepareReports: "prepare reports of", drawReports: "draw", publish: "publish", request: "ask for places",
	tellRound: "tell the newest round", tellEnd: "tell that the task is over", tellProgress: "tell progress"}

func (n Names) line(e effect, got result) string {
	text := callNames[e.call]
	switch {
	case e.call == readNewest || e.call == readRound || e.call == checkRound || e.call == checkRemoved ||
		e.call == readManifest || e.call == readOpen || e.call == readBeside || e.call == tellRound ||
		e.call == prepareReports:
		text += fmt.Sprintf(" %d", e.number)
	case e.call == readClose || e.call == readOpenOf || e.call == readJoin:
		text += fmt.Sprintf(" %d.%d", e.number, e.attempt)
	case e.call == publish:
		text += " " + n.delivery(e.delivery)
	case e.call == request:
		text += fmt.Sprintf(" for %d in %d.%d", e.ask.users, e.ask.round, e.ask.attempt)
	case e.call == write:
		text += n.change(e.change)
	case e.events != nil:
		text += n.events(e.events)
		if e.round != nil {
			text += fmt.Sprintf(" in round %d", e.round.number)
		}
	}
	return text + ": " + n.result(e, got)
}

func (n Names) events(events []*event) (text string) {
	for _, e := range events {
		text += " " + n(e.record.Key)
	}
	return text
}

// delivery names the bundles of a delivery, whose events are joined by "+".
func (n Names) delivery(d delivery) string {
	var messages []string
	for _, b := range d.bundles {
		messages = append(messages, strings.Join(strings.Fields(n.events(b.events)), "+"))
	}
	text := fmt.Sprintf("%s to %d.%d", strings.Join(messages, " "), d.round.number, d.attempt.Number)
	if d.announces > 0 {
		text += ", and announce them"
	}
	return text
}

// change describes the events of a write: their states, and how often each was sent to each attempt, stored and
// refused.
func (n Names) change(c participation.Change) (text string) {
	if c.Pin != nil {
		text += " pin"
	}
	for _, r := range c.Events {
		text += fmt.Sprintf(" [%s %v in %d", n(r.Key), r.State, r.Draw.Round)
		for _, s := range r.Sends {
			text += fmt.Sprintf(", to %d: sent %d", s.Attempt.Number, s.Sent)
			if s.Acked > 0 {
				text += fmt.Sprintf(" stored %d", s.Acked)
			}
			if s.Refused > 0 {
				text += fmt.Sprintf(" refused %d", s.Refused)
			}
		}
		text += "]"
	}
	return text
}

func (n Names) result(e effect, got result) string {
	switch {
	case errors.Is(got.err, stream.ErrNotFound):
		return "not found"
	case got.err != nil:
		return got.err.Error()
	case e.call == chargeLedger:
		text := "charged" + n.events(got.allowed)
		for _, r := range got.refused {
			text += ", refused " + n(r.event.record.Key)
		}
		return text
	case e.call == readEvents:
		var states []string
		for _, r := range got.records {
			states = append(states, r.State.String())
		}
		return strings.Join(states, " ")
	case e.call == readLease:
		return "renewed"
	case e.call > readManifest:
		return "done"
	case !got.found:
		return "no"
	case got.round != nil:
		return fmt.Sprintf("round %d, step %d", got.round.Round, got.round.Step)
	case got.join != nil:
		return fmt.Sprintf("joined attempt %d", got.join.Attempt)
	case got.open != nil:
		return fmt.Sprintf("attempt %d", got.open.Attempt)
	case got.close != nil:
		return fmt.Sprintf("attempt %d closed", got.close.Attempt)
	case e.call == readBeside && got.closed.Void:
		return "void"
	case e.call == readBeside:
		return fmt.Sprintf("attempt %d, cutoff %d", got.closed.Attempt.Number, got.closed.Cutoff)
	}
	return "yes"
}
