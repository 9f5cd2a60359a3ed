package stage

import (
	"errors"
	"sync"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A sealed report is one message on its way from its bytes to the totals. Several are opened at a time, in any order;
// they are counted one after the other, in the order in which they came.
type sealed struct {
	message   *stream.Message
	done      chan struct{} // it was opened; of a pool
	of        place         // the attempt that its subject names
	mine      bool          // it is this one
	reason    Reason        // Accepted: plaintext is to be counted
	report    wire.Report   // scratch
	ids       []shuffle.ReportID
	plaintext []byte
	tokens    []token // of the users, where reports have some
}

// An opener reads and decrypts the reports of one attempt. It changes nothing and sees no totals, so that workers may
// share it.
type opener struct {
	task     stream.Task
	taskHash stream.Hash
	attempt  place
	subject  string // of its reports
	suite    wire.Suite
	context  seal.Context
	key      *seal.RoundKey
	tokens   *tokens       // nil: reports have none
	part     manifest.Part // the part of a message per user's report
	bundle   uint64        // users of the largest message
	largest  int           // its bytes
}

// unseal reads a message, and decrypts it if it is one of the attempt.
func (p *opener) unseal(o *sealed) { o.mine, o.reason, o.plaintext = p.decrypt(o) }

// precedes reports whether the attempt precedes the one in a report's subject: nobody has opened such an attempt as
// long as we have the lease.
func (p *opener) precedes(subject string) bool {
	if subject == p.subject {
		return false
	}
	at, err := stream.ParseSubject(subject)
	return err == nil && (at.Round > p.attempt.round || at.Round == p.attempt.round && at.Attempt > p.attempt.attempt)
}

// parse reads a message into o.report, and refuses what cannot be a report of this attempt.
func (p *opener) parse(o *sealed) (mine bool, reason Reason) {
	at, err := stream.ParseSubject(o.message.Subject)
	o.of = place{at.Round, at.Attempt}
	switch {
	case err != nil || at.Verb != "report" || at.Task != p.task:
		return false, Malformed
	case at.Round != p.attempt.round:
		return false, WrongRound
	case at.Attempt != p.attempt.attempt:
		return false, WrongAttempt
	case len(o.message.Data) > p.largest:
		return true, Length
	}
	r := &o.report
	var version *stream.VersionError
	switch err := stream.ReadReport(o.message.Data, r); {
	case errors.As(err, &version):
		return true, Version
	case err != nil:
		return true, Malformed
	case stream.Hash(r.TaskHash) != p.taskHash:
		return true, WrongTask
	case uint64(len(r.Ids)) > p.bundle:
		return true, Bundle
	case !p.part.Fits(p.suite, r):
		return true, Length
	}
	return true, Accepted
}

func (p *opener) decrypt(o *sealed) (mine bool, reason Reason, plaintext []byte) {
	if mine, reason = p.parse(o); reason != Accepted {
		return mine, reason, nil
	}
	r := &o.report
	plaintext, err := p.key.Open(p.context, r)
	if err != nil {
		return true, Undecryptable, nil
	}
	o.ids = o.ids[:0]
	for _, id := range r.Ids {
		o.ids = append(o.ids, shuffle.ReportID(id))
	}
	if p.tokens != nil {
		o.tokens = p.tokens.verify(o.tokens, plaintext[len(r.Ids)*p.part.Leader:], len(r.Ids))
	}
	return true, Accepted, plaintext
}

// count adds an opened message to the totals, and forgets it. Nothing of it is kept but its ids.
func (a *attempt) count(o *sealed) Reason {
	if o.mine { // opened or not, what was looked at is below the cutoff: too high a cutoff only leaves a user charged
		a.cutoff = max(a.cutoff, o.message.Sequence)
	}
	if o.reason == Accepted {
		if a.tokens != nil {
			o.reason = a.admit(o)
		} else {
			o.reason = reasonOf(a.mixer.Add(o.ids, o.plaintext))
		}
		clear(o.plaintext)
	}
	if o.reason == Accepted {
		a.places.opened(a.table, uint64(len(o.ids)))
	}
	a.backlog.users = a.users()
	a.note(o)
	o.forget()
	return o.reason
}

// note counts a message by its outcome.
func (a *attempt) note(o *sealed) {
	a.counts[o.reason]++
	a.floods.saw(o)
	if prior := a.backlog.before; prior != nil && o.of == prior.of {
		a.backlog.late++
	}
	observe.Tell(a.Observer.Report, o.reason)
}

// forget lets go of a message. Its bytes are the caller's to overwrite: with SUITE_NONE they are plaintext.
func (o *sealed) forget() {
	r := &o.report
	clear(r.Ids)
	r.TaskHash, r.Ids, r.Encapsulated, r.Ciphertext = nil, r.Ids[:0], nil, nil
	o.message, o.plaintext = nil, nil
}

// examine opens and counts one message.
func (a *attempt) examine(m *stream.Message) Reason {
	a.single.message = m
	a.opener.unseal(&a.single)
	return a.count(&a.single)
}

// examineAll opens and counts messages until the cohort is full, and returns how many. With one worker, as always
// under floors, one plaintext is in memory at a time; else window of them. A message is opened only where those before
// it, were they all to be counted with as many users as a message may have, leave a place in the cohort. When it
// returns nothing is being opened.
func (a *attempt) examineAll(reports []stream.Delivery) (n int) {
	if a.Workers == 1 {
		for n < len(reports) && !a.mixer.Full() {
			a.examine(&reports[n].Message)
			n++
		}
		return n
	}
	window := uint64(4 * a.Workers)
	slots, todo := make([]sealed, window), make(chan *sealed, window)
	var pool sync.WaitGroup
	var caught panics.First
	for range min(a.Workers, len(reports)) {
		pool.Go(func() {
			for o := range todo {
				caught.Do(func() { a.opener.unseal(o) })
				o.done <- struct{}{}
			}
		})
	}
	end := sync.OnceFunc(func() {
		close(todo)
		pool.Wait()
	})
	defer end() // also where counting panics
	begun := uint64(0)
	for counted := uint64(0); ; counted++ {
		for begun < uint64(len(reports)) && begun-counted < window &&
			a.mixer.Users()+(begun-counted)*a.round.mixer.MaxBundle < a.round.mixer.Cohort {
			o := &slots[begun%window]
			if o.done == nil {
				o.done = make(chan struct{}, 1)
			}
			o.message = &reports[begun].Message
			todo <- o
			begun++
		}
		if counted == begun {
			break
		}
		o := &slots[counted%window]
		if <-o.done; caught.Any() {
			break
		}
		a.count(o)
	}
	end()
	caught.Again()
	return int(begun)
}
