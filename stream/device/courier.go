package device

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A courier sends what the loop decided to send, each message in a goroutine of its own that waits for its tick and for
// the broker's answer. It reads nothing that the loop changes meanwhile.
type courier struct {
	task      stream.Task
	transport stream.Transport
	timeout   time.Duration
	contract  *contract
	chance    chance
	moment    func() moment
	sharer    *sharer

	online    context.Context // of deliveries: it outlives the client's context for a moment
	group     sync.WaitGroup
	delivered *answers[delivery] // publishes that were answered, or failed
	replies   *answers[*ask]     // requests for places, likewise
}

// A delivery is one publish of some bundles to one attempt, and its answer. What it holds does not change until the
// loop has that: a bundle in flight is neither settled nor sent again.
type delivery struct {
	round   *round
	open    *wire.Open
	join    *wire.Join // of two operators; nil: there is one
	attempt participation.Attempt
	bundles []*bundle
	due     time.Time // the tick on which it leaves
	// how long the attempt keeps places, if users charged in an earlier attempt have to be announced to it; 0: none have
	announces time.Duration
	acks      []stream.Ack // one a bundle; short or empty where nothing was answered
	err       error
}

// events returns the number of events of a delivery.
func (d *delivery) events() (n int) {
	for _, b := range d.bundles {
		n += len(b.events)
	}
	return n
}

// cause returns the adapter's reason why a message of a delivery was refused or, if none was, why one was not
// answered.
func (d *delivery) cause() string {
	cause := "no reason is given"
	for _, a := range d.acks {
		if a.Cause == "" {
			continue
		}
		if cause = a.Cause; a.Status == stream.Refused {
			break
		}
	}
	return cause
}

// deliver publishes, and puts the answer among those that were delivered.
func (c *courier) deliver(d delivery) {
	c.group.Go(func() {
		d.acks, d.err = c.publish(c.online, d)
		c.delivered.put(d)
	})
}

// publish seals and sends a delivery, on its tick.
func (c *courier) publish(ctx context.Context, d delivery) ([]stream.Ack, error) {
	if err := Until(ctx, d.due); err != nil {
		return nil, err
	}
	if d.announces > 0 {
		online := ctx // ctx is another one below
		c.group.Go(func() { c.announceCharged(online, d) })
	}
	out, err := c.messages(&d)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.transport.Publish(ctx, out)
}

// messages seals the reports of a delivery.
func (c *courier) messages(d *delivery) (out []stream.Outgoing, err error) {
	subject := c.task.Report(d.round.number, d.attempt.Number)
	out = make([]stream.Outgoing, len(d.bundles))
	agreement := c.contract.agreement
	if agreement.HasOperators() {
		sharing, err := d.sharing(c.contract)
		if err != nil {
			return nil, err
		}
		for i, b := range d.bundles {
			data, first, err := c.sharer.message(sharing, c.contract, d, b)
			if err != nil {
				return nil, err
			}
			out[i] = stream.Outgoing{Subject: subject, ID: messageID(first, d.attempt), Data: data}
		}
		return out, nil
	}
	sealing := seal.Context{ManifestHash: d.round.manifest, Attempt: d.open.Attempt, StageKey: agreement.Task.StageKey,
		Public: d.open.PublicKey}
	for i, b := range d.bundles {
		var ids [][16]byte
		var plaintext []byte
		for _, e := range b.events {
			ids = append(ids, e.record.Draw.Report)
			plaintext = append(plaintext, e.record.Draw.Counts...)
		}
		if plaintext, err = c.contract.appendGrants(plaintext, b.events); err != nil {
			return nil, err
		}
		report, err := seal.Seal(d.open.Suite, sealing, agreement.Hash, ids, plaintext)
		clear(plaintext)
		if err != nil {
			return nil, err
		}
		data, err := stream.Marshal(report)
		if err != nil {
			return nil, err
		}
		out[i] = stream.Outgoing{Subject: subject, ID: messageID(ids[0], d.attempt), Data: data}
	}
	return out, nil
}

// messageID returns the id that all publishes of one message to one attempt share. Two attempts must not share it:
// their reports lie in one stream, and the broker would drop the second message as a duplicate of the first.
// Attempts of the same number differ in their Open: the broker lost the first one's.
func messageID(report [16]byte, attempt participation.Attempt) [16]byte {
	b := append([]byte("panlearn message id\x00"), report[:]...)
	h := sha256.Sum256(append(binary.BigEndian.AppendUint64(b, uint64(attempt.Number)), attempt.Open[:]...))
	return [16]byte(h[:16])
}

// request sends a request for places in an attempt at a round when it is due, and puts the reply among the others.
func (c *courier) request(ctx context.Context, a *ask) {
	request := stream.PlaceRequest{ID: c.chance.id(), Users: uint32(a.users)}
	subject := c.task.Place(a.round, a.attempt)
	c.group.Go(func() {
		if a.err = Until(ctx, a.due); a.err == nil {
			a.asked = c.moment()
			a.answer, a.err = c.askPlaces(ctx, subject, request, a.lease/2)
		}
		c.replies.put(a)
	})
}

var errOtherPlace = errors.New("an answer to another request for places")

// askPlaces makes one request for places, and returns its answer. One to another request is an error.
func (c *courier) askPlaces(ctx context.Context, subject string, request stream.PlaceRequest, within time.Duration) (
	stream.PlaceAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, min(within, c.timeout))
	defer cancel()
	data, err := c.transport.Place(ctx, subject, request.Record())
	if err != nil {
		return stream.PlaceAnswer{}, err
	}
	answer, err := stream.ParsePlaceAnswer(data)
	if err == nil && answer.ID != request.ID {
		err = errOtherPlace
	}
	return answer, err
}

// announceCharged requests places for users whom an earlier attempt at the round charged, and who send in any case, so
// that the stage gives their places to nobody else.
func (c *courier) announceCharged(ctx context.Context, d delivery) {
	most := int(d.round.place.Phase.Mechanism.MaxBundle)
	for users := d.events(); users > 0; users -= min(users, most) {
		r := stream.PlaceRequest{ID: c.chance.id(), Users: uint32(min(users, most)), Charged: true}
		subject := c.task.Place(d.round.number, d.attempt.Number)
		if _, err := c.askPlaces(ctx, subject, r, d.announces/2); err != nil {
			return
		}
	}
}

// Until waits for a time. It returns the context's error if that ends first, or has ended.
func Until(ctx context.Context, tick time.Time) error {
	wait := time.Until(tick)
	if wait <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
