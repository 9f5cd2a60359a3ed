package split

import (
	"errors"
	"fmt"
)

// errNoRequest means that a request has more in it than a leader puts into one.
var errNoRequest = errors.New("no leader makes such a request")

// errManyIDs means that an attempt showed the helper more users than any honest one does.
var errManyIDs = errors.New("too many users were shown")

// A Helper decides the requests of one attempt: requests go in, replies come out. It is a value machine as Leader is,
// and a Desk holds it. Between two calls its memory holds an aggregate share, ids, kept replies and requests that wait
// for earlier ones.
type Helper struct {
	acc   *accumulator
	in    inbox
	work  []*Job // of the next request in order, handed out and not decided
	shown uint64 // users of decided requests
	over  error
}

// NewHelper validates cfg and returns the helper of an attempt that was shown nothing.
func NewHelper(cfg Config) (*Helper, error) {
	acc, err := newAccumulator(cfg, helper)
	if err != nil {
		return nil, err
	}
	return &Helper{acc: acc, in: newInbox(cfg.X, Window)}, nil
}

// Worker returns a worker for one goroutine.
func (h *Helper) Worker(open Opener) (*Worker, error) {
	return newWorker(helper, h.acc.cfg.sharing(), h.acc.cfg.Key, open)
}

// Users returns the number of users that the helper has counted.
func (h *Helper) Users() uint64 { return h.acc.users }

// Over returns why the attempt has ended here, and nil while it goes on.
func (h *Helper) Over() error { return h.over }

// attempt returns the attempt that the helper decides.
func (h *Helper) attempt() Attempt { return h.in.x }

// receive takes a request of the leader with a verified signature. It returns the reply if the request was decided
// before; an error ends the attempt.
func (h *Helper) receive(r Request) (*Reply, error) {
	if h.over != nil {
		return nil, h.over
	}
	if !r.fits() {
		return nil, h.end(errNoRequest)
	}
	kept, err := h.in.receive(r)
	if err != nil {
		return nil, h.end(err)
	}
	return kept, nil
}

// Work returns the jobs of the next request in order, for any number of goroutines, or false if there is none. It
// returns each request's jobs once: run all of them, then Decide.
func (h *Helper) Work() ([]*Job, bool) {
	if h.over != nil || h.work != nil {
		return nil, false
	}
	r, ok := h.in.turn()
	if !ok {
		return nil, false
	}
	jobs := make([]*Job, len(r.Bundles))
	for i, b := range r.Bundles {
		spent, _ := h.acc.spent.look(b.Users)
		jobs[i] = &Job{bundle: b, sealed: b.Sealed, spent: spent}
	}
	h.work = jobs
	return jobs, true
}

// Decide counts the users of the request after all its jobs have run, in the request's order, and returns the reply. An
// error ends the attempt. If the attempt has ended while the jobs ran, Decide erases them and returns the reason.
func (h *Helper) Decide() (Reply, error) {
	jobs := h.work
	h.work = nil
	if h.over != nil {
		request{jobs: jobs}.erase()
		return Reply{}, h.over
	}
	var outcomes []Outcome
	var messages []PrepMessage
	for _, job := range jobs {
		if !job.ran {
			panic("split: a request is decided before its jobs have run")
		}
		h.acc.spent.spend(job)
		for i := range job.results {
			r := &job.results[i]
			outcomes = append(outcomes, r.outcome)
			if r.outcome != Accepted {
				continue
			}
			messages = append(messages, r.message)
			h.acc.add(r.out)
			r.erase()
		}
	}
	h.shown += uint64(len(outcomes))
	if h.shown > max(4*h.acc.cfg.Cohort, leastIDs) || h.acc.users > h.acc.cfg.most() {
		return Reply{}, h.end(errManyIDs)
	}
	return h.in.decide(outcomes, messages), nil
}

// finish ends the counting if helper and leader agree on the requests decided, and returns the release. An error ends
// the attempt: nothing of it is released.
func (h *Helper) finish(f Finish, e Entropy) (Share, error) {
	if h.over != nil {
		return Share{}, h.over
	}
	if f != h.in.finish(h.acc.users) || h.work != nil {
		return Share{}, h.end(errDiffers)
	}
	share, err := h.acc.finish(f, e)
	if err != nil {
		return Share{}, h.end(fmt.Errorf("%w: %w", errDiffers, err))
	}
	_ = h.end(errErased)
	return Share{X: f.X, Requests: f.Requests, Users: f.Users, Chain: f.Chain, Aggregate: share}, nil
}

// Erase drops the attempt with all that it holds. It is safe to call at any time and more than once.
func (h *Helper) Erase() { _ = h.end(errErased) }

// end erases everything for a reason, which it returns. The first reason stays.
func (h *Helper) end(why error) error {
	if h.over != nil {
		return h.over
	}
	h.over = why
	h.in.early, h.in.replies = nil, nil // jobs may be running: Decide erases them
	h.acc.erase()
	return why
}

// Format describes progress and shows no share.
func (h Helper) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "helper with %d users, %d requests decided", h.acc.users, h.in.done)
}
