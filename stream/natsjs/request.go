package natsjs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// requests ends the requests under way on a connection that no answer will come to: when the connection is lost, and
// when the broker does not permit them.
type requests struct {
	within time.Duration // the ack timeout
	inbox  string        // prefix of reply subjects

	mu      sync.Mutex // guards all below
	asked   map[*question]bool
	mute    error           // why no answer reaches us
	session context.Context // ends when the connection is lost
	lose    context.CancelFunc
}

func newRequests(within time.Duration, inbox string) *requests {
	r := &requests{within: within, inbox: inbox, asked: map[*question]bool{}}
	r.begin()
	return r
}

// begin is called when there is a connection, end when it is lost.
func (r *requests) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.lose = context.WithCancel(context.Background())
}

func (r *requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose()
}

// standing returns a context that ends when the connection of now is lost.
func (r *requests) standing() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

// A question is a request under way. A server says of a publish that it does not permit in a message of its own, that
// names the subject and not the request; without this the request would wait for its time limit.
type question struct {
	subject string
	deny    context.CancelCauseFunc
}

// ask returns a context for one request on subject, which ends after the ack timeout.
func (r *requests) ask(ctx context.Context, subject string) (context.Context, context.CancelFunc) {
	return r.askWithin(ctx, subject, r.within)
}

// askWithin returns a context for one request: it ends with ctx, after a time, when the connection is lost on which the
// answer would come, and when the broker denies the subject.
func (r *requests) askWithin(ctx context.Context, subject string, within time.Duration) (context.Context,
	context.CancelFunc) {
	denied, deny := context.WithCancelCause(ctx)
	wait, cancel := context.WithTimeout(denied, within)
	stop := context.AfterFunc(r.standing(), cancel)
	forget := r.question(subject, deny)
	return wait, func() {
		forget()
		stop()
		cancel()
		deny(nil)
	}
}

// question calls deny if the broker denies the subject, until it is forgotten.
func (r *requests) question(subject string, deny context.CancelCauseFunc) (forget func()) {
	q := &question{subject: subject, deny: deny}
	r.mu.Lock()
	r.asked[q] = true
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		delete(r.asked, q)
		r.mu.Unlock()
	}
}

// outcome returns the error of a request that was made with a context of ask: its cause, such as ErrDenied or a lost
// connection, if one is known, and not just the end of that context.
func (r *requests) outcome(ctx, wait context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(wait); errors.Is(cause, ErrDenied) {
		return cause
	}
	err = unanswered(ctx, err)
	if errors.Is(err, errNoAnswer) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.mute != nil {
			return r.mute
		}
		if r.session.Err() != nil {
			return stream.ErrDisconnected
		}
	}
	return err
}
