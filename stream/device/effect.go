package device

import (
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// An effect is one thing that a decision needs of the world. The loop performs it (perform.go), and the decision goes on
// with the result: the machines have no other way to the broker, the store, the ledger or the randomizer.
type effect struct {
	call      call
	number    stream.Round         // of reads
	round     *round               // of reads, charges and draws
	attempt   stream.Attempt       // of readClose, readOpenOf and readJoin
	close     *wire.Close          // of readBeside
	message   *wire.Round          // of prepareReports
	phase     int                  // likewise: its index in the plan
	events    []*event             // of readEvents, charge, settleLedger, drawReports and askIssuer
	open      uint64               // of enterLedger: events that are charged
	pinned    bool                 // likewise: the store belongs to the task
	agreement *consent.Agreement   // likewise: by which records are read from now on
	terms     *consent.Agreement   // likewise: by which events are charged; nil: not known yet, and the ledger is not entered
	change    participation.Change // of write
	delivery  delivery             // of publish
	ask       *ask                 // of request
}

// A call names what the loop does for an effect.
type call int

// Reads set found if the record is there, can be read now, and is signed for this task. readNewest looks for the newest
// round after a number. checkRound sets err to the reason why a known round is not shown. publish and request return at
// once: their answers come later.
const (
	readNewest     call = iota + 1 // a Round
	readRound                      // the Round of a number
	checkRound                     // likewise; nothing is logged where it cannot be read
	checkRemoved                   // found if the broker says that it has no such Round
	readOpen                       // the newest attempt at a round
	readOpenOf                     // of an attempt
	readJoin                       // of an attempt, if it is the other part of the Open that is known
	readClose                      // of an attempt
	readBeside                     // a Close together with the Open of its attempt
	readEnd                        // the End of the task
	readTask                       // the Task, under the learner key that it names itself, and the broker's longest message
	readLease                      // when the stage's lease was renewed; err is the reason if that is not known
	readPin                        // of the store
	readManifest                   // under which the store knows a round
	readEvents                     // what the store knows of them
	write                          // a change of the store, durably
	enterLedger                    // the task, before its first event
	chargeLedger                   // events that join a round; the result has those that may, and those that may not
	settleLedger                   // events with known outcomes
	prepareReports                 // for a round
	drawReports                    // of events, unless they are drawn already
	publish                        // a delivery
	request                        // places
	askForToken                    // the issuer, on a device of one person; returns at once
	askIssuer                      // for the tokens of events; returns at once, too
	tellRound                      // there is a newer round
	tellEnd                        // the task is over
	tellProgress                   // something changed
)

// A result holds what came of an effect.
type result struct {
	found      bool
	round      *wire.Round
	hash       stream.Hash // of round or join, or of the manifest that the store has
	open       *wire.Open
	attempt    participation.Attempt // open's
	join       *wire.Join            // and its hash
	close      *wire.Close
	closed     participation.Closed
	end        *wire.End
	task       *wire.Task
	maxPayload int // of readTask: bytes of the longest message; 0: any
	pin        *participation.Pin
	time       time.Time              // of readLease
	ended      bool                   // likewise: the device is closed, and nobody waits for the answer
	records    []participation.Record // of readEvents
	allowed    []*event               // of chargeLedger
	refused    []refusal              // likewise
	err        error                  // ends the device, except of checkRound and readLease
}

// perform does what an effect says, and returns what came of it.
type perform func(effect) result
