package split

import "errors"

// errDiffers means that leader and helper saw different things in one attempt, which therefore ends.
var errDiffers = errors.New("leader and helper differ")

// An outbox is the leader's end of the exchange without what is counted: which requests are unanswered, and the chain.
type outbox struct {
	x      Attempt
	window int
	base   uint64 // replies up to it are applied
	chain  Hash   // c_base
	open   []sent // requests base+1, base+2, ...
}

// A sent is a request without an applied reply.
type sent struct {
	digest Hash
	users  int
	reply  *Reply // received, waits for those before it
}

func newOutbox(x Attempt, window int) outbox {
	return outbox{x: x, window: window, chain: firstChain(x)}
}

// next returns the number of the next request.
func (o *outbox) next() uint64 { return o.base + uint64(len(o.open)) + 1 }

// room reports whether another request may be sent.
func (o *outbox) room() bool { return len(o.open) < o.window }

// send notes a request of number next.
func (o *outbox) send(r Request) {
	o.open = append(o.open, sent{digest: r.digest(), users: r.users()})
}

// receive takes a reply and returns the replies whose turn has come, in order; each is returned once. A reply that the
// leader does not wait for changes nothing.
func (o *outbox) receive(r Reply) (ready []Reply, err error) {
	if r.X != o.x || r.N <= o.base || r.N >= o.next() {
		return nil, nil
	}
	s := &o.open[r.N-o.base-1]
	if s.reply != nil {
		return nil, nil
	}
	accepted := 0
	for _, outcome := range r.Outcomes {
		if outcome == Accepted {
			accepted++
		}
	}
	if r.Request != s.digest || len(r.Outcomes) != s.users || len(r.Messages) != accepted {
		return nil, errDiffers
	}
	s.reply = &r
	for len(o.open) > 0 && o.open[0].reply != nil {
		first := *o.open[0].reply
		chain := nextChain(o.chain, first.Request, first.Outcomes)
		if chain != first.Chain {
			return nil, errDiffers
		}
		o.base, o.chain, o.open = o.base+1, chain, o.open[1:]
		ready = append(ready, first)
	}
	return ready, nil
}

// finish returns the message that ends the attempt here, with so many users counted.
func (o *outbox) finish(users uint64) Finish {
	return Finish{X: o.x, Requests: o.base, Users: users, Chain: o.chain}
}
