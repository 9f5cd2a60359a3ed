package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotFound means that a read found nothing. It decides nothing: a lagging replica may have answered.
var ErrNotFound = errors.New("not found")

// ErrConflict means that a compare-and-set write lost.
var ErrConflict = errors.New("somebody else wrote first")

// ErrRefused means that a broker or adapter will never take a write as it is: too large, or a subject that the port
// does not write. The same call again fails again.
var ErrRefused = errors.New("refused")

// A Message is one stored message.
type Message struct {
	Subject  string
	Sequence uint64 // in its stream, from 1
	Data     []byte
	Time     time.Time // when the broker stored it, by its clock, of what Get and Latest return; zero: not known
}

// KeptRounds is the number of rounds behind the newest one that keep their records, however old they are. The records
// of earlier rounds may be gone (package retention) and their subjects empty again: nobody puts there, or acts on a
// record that is put there.
const KeptRounds Round = 1000

// A PutResult holds the message that is on a subject after a put, ours or not.
type PutResult struct {
	Ours     bool // the standing bytes equal the ones put
	Standing Message
}

// A Reader reads subjects that hold one message each: all that a device needs of Records.
type Reader interface {
	// Get reads the message on a subject, or ErrNotFound.
	Get(ctx context.Context, subject string) (Message, error)

	// Latest reads the newest message on the subjects that match a pattern of Task: a hint, never a decision. It may lag
	// behind writes, and return an older message or ErrNotFound.
	Latest(ctx context.Context, pattern string) (Message, error)

	// Watch returns a channel of what is written on a task's Rounds, Attempts and Joins streams, as the broker sends it.
	// Wakes may be lost, late, repeated, forged, or merged into one zero Wake: callers verify them like records that
	// they read, and also read on a timer. The first is the zero Wake. The channel closes with ctx.
	Watch(ctx context.Context, task Task) (<-chan Wake, error)
}

// Records are subjects that hold one message each.
type Records interface {
	Reader

	// PutOnce writes data on a subject that must be empty and returns the record that is there afterwards: after a
	// conflict, a duplicate or a lost acknowledgement it reads back. An error means that nothing is known; calling again
	// with the same bytes is always safe.
	PutOnce(ctx context.Context, subject string, data []byte) (PutResult, error)

	// Swap overwrites a subject if its last sequence is expected (0: empty). It returns the new sequence, or ErrConflict.
	// Only the Leases stream takes it.
	Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error)
}

// A Spreader is an adapter that can spread its reconnections: each try to connect again waits for a random time below
// the given one. Zero means the adapter's own jitter.
type Spreader interface {
	Spread(over time.Duration)
}

// An AckStatus is the outcome of a publish.
type AckStatus int

// Unknown: no acknowledgement came; the message may or may not be stored. Stored: stored, at Sequence. Duplicate:
// the same message id was stored before, at Sequence. Refused: the broker answered that it did not store it (full,
// too large); a retry of the same id is safe.
const (
	Unknown AckStatus = iota
	Stored
	Duplicate
	Refused
)

var ackNames = [...]string{"unknown", "stored", "duplicate", "refused"}

func (s AckStatus) String() string {
	if s < 0 || int(s) >= len(ackNames) {
		return "invalid"
	}
	return ackNames[s]
}

// A Reason is the number, the same on every network, of a broker's reason to refuse a message. 0: it gave none.
type Reason byte

// TooLarge: the message is larger than the broker or the stream takes. StreamFull: the stream of reports holds as much
// as it may. AttemptFull: as many reports of the attempt wait as may. NoRoom: the server or the account has no room.
const (
	TooLarge Reason = iota + 1
	StreamFull
	AttemptFull
	NoRoom
)

var reasonNames = [...]string{"the broker refused the report", "the report is too large for the broker",
	"the stream of reports is full",
	"as many reports wait for the attempt as may",
	"the broker has no room left"}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) >= len(reasonNames) {
		return reasonNames[0]
	}
	return reasonNames[r]
}

// An Ack is the outcome of one publish.
type Ack struct {
	Status   AckStatus
	Sequence uint64 // for Stored and Duplicate
	Cause    string // of Refused and Unknown: why, in words; empty where that is not known
	Reason   Reason // of Refused: the same, where it is one of these
}

// An Outgoing is a report on its way: its subject, the message id that all its retries keep, its bytes.
type Outgoing struct {
	Subject string
	ID      [16]byte
	Data    []byte
}

// ReportWriter sends reports.
type ReportWriter interface {
	// Publish sends reports and waits for their acknowledgements, one Ack for each in order. An error says that
	// the connection as a whole failed; the acks then are Unknown where no answer came.
	Publish(ctx context.Context, reports []Outgoing) ([]Ack, error)
}

// A PlaceAsker requests places in an attempt from the stage: the device's end.
type PlaceAsker interface {
	// Place sends the bytes of a PlaceRequest on the place subject of an attempt and returns the bytes of the answer.
	// An error means that no answer came: nothing is known, and nobody joins.
	Place(ctx context.Context, subject string, request []byte) ([]byte, error)
}

// A PlaceServer hands requests for places to the stage: the stage's end.
type PlaceServer interface {
	// ServePlaces calls answer with the subject and the bytes of each request for places of a task, until ctx ends.
	// answer returns at once, from any goroutine; nil leaves the request without an answer.
	ServePlaces(ctx context.Context, task Task, answer func(subject string, request []byte) []byte) error
}

// An ExchangeAsker is the leader's end of the exchange of two operators.
type ExchangeAsker interface {
	// Exchange returns a function that sends messages on the prepare subject of a helper's instance, until ctx ends.
	// What is sent may be lost. Answers come to receive as they arrive, from another goroutine, one call at a time:
	// any number for one message, late, in any order, and forged. nil means that nobody listens on the subject.
	Exchange(ctx context.Context, subject string, receive func(answer []byte)) (send func(message []byte) error, err error)
}

// An ExchangeServer is the helper's end of the exchange of two operators.
type ExchangeServer interface {
	// ServeExchange calls take with the subject and the bytes of each message on a prepare subject of a task, one call
	// at a time, until ctx ends. reply sends one answer to the sender of the message, which may be lost: it is called
	// from any goroutine, at any time, any number of times.
	ServeExchange(ctx context.Context, task Task, take func(subject string, message []byte, reply func(answer []byte))) error
}

// CheckPrepare returns an error unless a subject is one of the exchange: the prepare subject of one instance.
func CheckPrepare(subject string) (Task, error) {
	a, err := ParseSubject(subject)
	if err != nil {
		return "", fmt.Errorf("exchange: %w: %w", ErrRefused, err)
	}
	if a.Verb != prepare {
		return "", fmt.Errorf("exchange %s: %w: want a prepare subject", quoted(subject), ErrRefused)
	}
	return a.Task, nil
}

// A Transport is all that a device needs of the network. Packages natsjs and relayclient have one.
type Transport interface {
	Reader
	ReportWriter
	PlaceAsker

	// Limits returns the limits of the broker, or zero where they are not known yet.
	Limits() Limits
}

// A Delivery is one report at the stage. Its data are the receiver's, who overwrites them when it has counted the
// report.
type Delivery struct {
	Message
	Redelivered bool
	Came        time.Time // when the broker stored it, by its clock: a hint
	Pending     uint64    // messages that waited behind this one when it was sent: a hint
	// Ack lets the broker forget the message; it does not wait for the broker. A lost Ack means a redelivery.
	Ack func() error
}

// ReportReader is the stage's end of the work queue: of the reports of all attempts of a task.
type ReportReader interface {
	// Fetch waits up to wait for at least one report and returns up to max of them, in any order, some of them
	// again. None is not an error.
	Fetch(ctx context.Context, max int, wait time.Duration) ([]Delivery, error)

	// Queue returns the size of the stream, over all attempts; reports that were taken and not acknowledged count too.
	Queue(ctx context.Context) (Queue, error)

	// Purge deletes all reports with sequences below before, of all attempts. It is for tidiness, and may be repeated.
	// Reports that are stored later have higher sequences, so a late Purge deletes only reports that were stored before
	// that sequence was the next one.
	Purge(ctx context.Context, before uint64) error
}

// A Queue holds the size of the stream of reports.
type Queue struct {
	Messages, Bytes uint64
	MaxBytes        uint64 // what it may hold; 0: no limit
	Next            uint64 // sequence: all that is or was stored is below it
}

// Limits holds the limits of a broker, for refusing a plan before it runs.
type Limits struct {
	MaxPayload int // bytes of one message
}

// CheckPut returns an error unless PutOnce takes a subject: concrete, of Rounds, Attempts, Batches, Joins or Spends.
func CheckPut(subject string) (Task, Stream, error) {
	return checkPort("put once", subject, Rounds, Attempts, Batches, Joins, Spends)
}

// CheckSwap returns an error unless Swap takes a subject: one of Leases.
func CheckSwap(subject string) (Task, Stream, error) { return checkPort("swap", subject, Leases) }

// CheckPublish returns an error unless the subject is one that Publish takes: the subject of the reports of one
// attempt.
func CheckPublish(subject string) (Task, Stream, error) {
	return checkPort("publish", subject, Reports)
}

// CheckGet returns an error unless the subject is one that Get takes: any except subjects of reports, which only the
// work queue hands out.
func CheckGet(subject string) (Task, Stream, error) {
	return checkPort("get", subject, Rounds, Attempts, Leases, Batches, Joins, Spends)
}

// CheckLatest returns an error unless Latest takes a pattern: one that [Task.Rounds] or [Task.Opens] returns.
func CheckLatest(pattern string) (Task, Stream, error) {
	task, s, err := StreamOf(pattern)
	if err != nil {
		return "", 0, fmt.Errorf("latest: %w: %w", ErrRefused, err)
	}
	if pattern == task.Rounds() {
		return task, s, nil
	}
	if prefix, ok := cutLast(pattern); ok {
		if a, err := ParseSubject(prefix + ".1"); err == nil && a.Verb == "open" {
			return task, s, nil
		}
	}
	return "", 0, fmt.Errorf("latest %s: want all rounds, or the opens of a round: %w", quoted(pattern), ErrRefused)
}

func cutLast(pattern string) (string, bool) {
	n := len(pattern) - len(".*")
	if n < 0 || pattern[n:] != ".*" {
		return "", false
	}
	return pattern[:n], true
}

func checkPort(verb, subject string, streams ...Stream) (Task, Stream, error) {
	a, err := ParseSubject(subject)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w: %w", verb, ErrRefused, err)
	}
	s := verbs[a.Verb].stream
	for _, ok := range streams {
		if s == ok {
			return a.Task, s, nil
		}
	}
	return "", 0, fmt.Errorf("%s %s: %w: a subject of %v, want one of %v", verb, quoted(subject), ErrRefused, s, streams)
}
