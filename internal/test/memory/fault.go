package memory

import (
	"errors"
	"math/rand/v2"
)

// ErrDisconnected means that the broker could not be reached, or that its answer was lost.
var ErrDisconnected = errors.New("disconnected from the broker")

// An Op names the operation that an Injector is asked about: one call, or one message of a call.
type Op int

// The operations. Publish, Deliver and Ack are one message each; Wake is one watcher, Place one request, Exchange one
// message of the exchange and Answer one answer to it.
const (
	Put Op = iota + 1
	Swap
	Get
	Latest
	Publish
	Deliver
	Ack
	Purge
	Wake
	Place
	Exchange
	Answer
)

// A Fault selects how an operation fails.
type Fault int

const (
	// None: nothing special.
	None Fault = iota
	// LostAck: done, but the caller is not told: Put and Swap return an error, Publish Unknown.
	LostAck
	// LostAckRead: as LostAck, but Put reads back and succeeds, as an adapter with a connection does.
	LostAckRead
	// Lost: not done and the caller is not told. A lost Deliver counts as delivered, a lost Ack as sent.
	Lost
	// Twice: a publish is stored under two sequences, a delivery comes two times in one Fetch, a request or a message of
	// the exchange two times.
	Twice
	// Lag: a read is answered as if what it looks for were not yet there; a message of the exchange comes after the next
	// one on its way.
	Lag
)

// An Injector chooses the fault of one operation. It is called under the broker's lock, one call at a time, and must
// not call the broker.
type Injector func(op Op, subject string) Fault

// Rates are probabilities of faults, each in [0, 1].
type Rates struct {
	LostAck   float64 // of puts, swaps, publishes and requests for places: done, not acknowledged
	Lost      float64 // of puts, swaps, publishes, deliveries, acks, purges, wakes, requests for places and the exchange
	Duplicate float64 // of publishes, deliveries, requests for places and the exchange
	Lag       float64 // of reads and the exchange
}

// Random returns an Injector that draws faults from a seed.
func Random(seed uint64, rates Rates) Injector {
	rng := rand.New(rand.NewPCG(seed, 0x70616e6c6561726e))
	return func(op Op, _ string) Fault {
		u := rng.Float64()
		pick := func(p float64, f Fault) (Fault, bool) {
			u -= p
			return f, u < 0
		}
		switch op {
		case Get, Latest:
			if f, ok := pick(rates.Lag, Lag); ok {
				return f
			}
			return None
		case Exchange, Answer:
			if f, ok := pick(rates.Lag, Lag); ok {
				return f
			}
		case Put, Swap, Publish, Place:
			if f, ok := pick(rates.LostAck/2, LostAck); ok {
				return f
			}
			if f, ok := pick(rates.LostAck/2, LostAckRead); ok {
				return f
			}
		}
		if f, ok := pick(rates.Lost, Lost); ok {
			return f
		}
		if op == Publish || op == Deliver || op == Place || op == Exchange || op == Answer {
			if f, ok := pick(rates.Duplicate, Twice); ok {
				return f
			}
		}
		return None
	}
}
