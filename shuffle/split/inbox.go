package split

// An inbox is the helper's end of the exchange, without the counted shares: which requests it has decided, their
// replies as long as the leader may request them again, and the chain.
type inbox struct {
	x       Attempt
	window  uint64
	base    uint64             // the leader has the replies up to it
	done    uint64             // requests up to it are decided
	chain   Hash               // c_done
	replies []Reply            // to requests base+1, ..., done
	early   map[uint64]Request // received and not decided, at most base + window
}

func newInbox(x Attempt, window int) inbox {
	return inbox{x: x, window: uint64(window), chain: firstChain(x), early: map[uint64]Request{}}
}

// receive takes a request. It returns the kept reply where the request was decided before, and errDiffers where another
// request of its number was seen. A new one is kept until it is its turn; what cannot be of an honest leader that knows
// our replies is dropped.
func (i *inbox) receive(r Request) (kept *Reply, err error) {
	if r.X != i.x || r.Base >= r.N || r.Base > i.done {
		return nil, nil
	}
	if r.Base > i.base {
		i.replies = i.replies[r.Base-i.base:]
		i.base = r.Base
	}
	switch {
	case r.N <= i.base || r.N > i.base+i.window:
		return nil, nil
	case r.N <= i.done:
		kept = &i.replies[r.N-i.base-1]
		if kept.Request != r.digest() {
			return nil, errDiffers
		}
		return kept, nil
	}
	if before, ok := i.early[r.N]; ok && before.digest() != r.digest() {
		return nil, errDiffers
	}
	i.early[r.N] = r
	return nil, nil
}

// turn returns the request that is to be decided next, if it is here.
func (i *inbox) turn() (Request, bool) {
	r, ok := i.early[i.done+1]
	return r, ok
}

// decide notes the decision about the request that turn returned, and returns the reply to it.
func (i *inbox) decide(outcomes []Outcome, messages []PrepMessage) Reply {
	r := i.early[i.done+1]
	digest := r.digest()
	i.chain = nextChain(i.chain, digest, outcomes)
	i.done++
	delete(i.early, i.done)
	reply := Reply{X: i.x, N: i.done, Request: digest, Outcomes: outcomes, Messages: messages, Chain: i.chain}
	i.replies = append(i.replies, reply)
	return reply
}

// finish returns the message by which the leader ends the attempt in the helper's state, with so many users counted.
func (i *inbox) finish(users uint64) Finish {
	return Finish{X: i.x, Requests: i.done, Users: users, Chain: i.chain}
}
