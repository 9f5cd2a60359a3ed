package split

import (
	"fmt"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"

	"github.com/panlearn/panlearn/shuffle"
)

// A Leader counts the reports of one attempt together with the helper: bundles go in, requests come out; replies go in,
// and users are counted. It is a value machine: no clock, no goroutine, no network, and not for concurrent use; only
// the jobs that it hands out run elsewhere.
//
// Between two calls its memory holds an aggregate share, prep states of unanswered users, their ids, and the verify
// key; no count, and no input share.
type Leader struct {
	acc     *accumulator
	sizes   Lengths
	out     outbox
	pending request            // opened, for the next request
	waiting map[uint64]request // sent and not applied
	taken   uint64             // users in jobs, pending and waiting
	bytes   int                // of bundles in jobs, pending and waiting
	rejects Rejects            // by reason: the leader's own, and the helper's as it told them
	over    error              // why nothing more happens here
}

// A request holds the bundles of one Request, with what the leader keeps of their users.
type request struct {
	jobs  []*Job
	users int
	bytes int
}

// NewLeader validates cfg and returns the leader of an attempt that nobody has sent to.
func NewLeader(cfg Config) (*Leader, error) {
	acc, err := newAccumulator(cfg, leader)
	if err != nil {
		return nil, err
	}
	return &Leader{acc: acc, sizes: lengths(acc.vec), out: newOutbox(cfg.X, Window), waiting: map[uint64]request{}}, nil
}

// Worker returns a worker for one goroutine.
func (l *Leader) Worker(open Opener) (*Worker, error) {
	return newWorker(leader, l.acc.cfg.sharing(), l.acc.cfg.Key, open)
}

// Users returns the number of users whom both leader and helper have counted.
func (l *Leader) Users() uint64 { return l.acc.users }

// Unanswered returns the number of users that were taken and are not decided.
func (l *Leader) Unanswered() uint64 { return l.taken }

// Over returns why the attempt has ended here, and nil while it goes on. An attempt that is over never releases
// anything.
func (l *Leader) Over() error { return l.over }

// Room reports whether a message may be taken and opened: counted and unanswered users are below the cohort, and what
// is unanswered fits the window in bytes and in output shares. With nothing unanswered there is room for one bundle,
// whatever its length.
func (l *Leader) Room() bool {
	switch {
	case l.over != nil || l.acc.users+l.taken >= l.acc.cfg.Cohort:
		return false
	case l.taken == 0:
		return true
	}
	return l.bytes < windowBytes && l.taken*uint64(l.acc.cfg.Params.Dim*elementBytes) < windowShares
}

// Take takes one bundle while there is Room: its users in clear, the ciphertext for the leader, and that for the
// helper. It returns the job that opens it, or nil and the reason for which all its users are refused unopened. Without
// Room it panics: what is opened has to be decided.
func (l *Leader) Take(users []User, sealed, forHelper []byte) (*Job, Outcome) {
	job := &Job{bundle: Bundle{Users: users, Sealed: forHelper}, sealed: sealed}
	refuse := func(o Outcome) (*Job, Outcome) {
		l.rejects[o] += max(uint64(len(users)), 1)
		return nil, o
	}
	if !l.Room() {
		panic(fmt.Sprintf("split: a bundle is taken without room: %v", l))
	}
	if len(users) == 0 || uint64(len(users)) > l.acc.cfg.MaxBundle {
		return refuse(BadLength)
	}
	for _, u := range users {
		if len(u.Public) != l.sizes.Public || u.Prep != nil {
			return refuse(BadLength)
		}
	}
	if job.bytes(l.sizes)+requestHead > l.acc.cfg.MaxRequest {
		return refuse(BadLength)
	}
	var all bool
	if job.spent, all = l.acc.spent.look(users); all {
		return refuse(Duplicate)
	}
	l.taken += uint64(len(users))
	l.bytes += job.bytes(l.sizes)
	return job, Accepted
}

// requestHead is the length of a request without bundles.
const requestHead = attemptBytes + 8 + 8 + 4

// bytes returns the length of the job's bundle in a request, with all prep shares.
func (j *Job) bytes(s Lengths) int {
	return leastBundle + len(j.bundle.Users)*(leastUser+s.Public+s.Prep) + len(j.bundle.Sealed)
}

// Add takes back a job that has run. Ids that its ciphertext authenticates are spent from now on, whatever comes of
// them. It returns the outcome of each user; the users of a bundle that opened go into a request together, those whom
// the leader refuses without a prep share. The message is acknowledged to the broker when Add returns. A job that comes
// back after the attempt ended is erased, and has no outcomes.
func (l *Leader) Add(job *Job) []Outcome {
	if l.over != nil {
		request{jobs: []*Job{job}}.erase()
		return nil
	}
	size := job.bytes(l.sizes)
	l.acc.spent.spend(job)
	out := make([]Outcome, len(job.results))
	for i := range job.results {
		r := &job.results[i]
		out[i] = r.outcome
		job.bundle.Users[i].Prep = r.prep
		if r.outcome != Accepted {
			l.rejects[r.outcome]++
			l.taken--
		}
	}
	if !job.opened {
		l.bytes -= size
		return out
	}
	l.pending.jobs = append(l.pending.jobs, job)
	l.pending.users += len(out)
	l.pending.bytes += size
	return out
}

// Cut returns the next request, of as many pending bundles as fit, or false while none is pending or the window is
// full. Send it, and again after each Again, until it is no longer among Unreplied.
func (l *Leader) Cut() (Request, bool) {
	if l.over != nil || len(l.pending.jobs) == 0 || !l.out.room() {
		return Request{}, false
	}
	var cut request
	for len(l.pending.jobs) > 0 {
		job := l.pending.jobs[0]
		users, size := len(job.results), job.bytes(l.sizes)
		if len(cut.jobs) > 0 && (cut.users+users > maxUsers || requestHead+cut.bytes+size > l.acc.cfg.MaxRequest) {
			break
		}
		cut.jobs = append(cut.jobs, job)
		cut.users, cut.bytes = cut.users+users, cut.bytes+size
		l.pending.jobs = l.pending.jobs[1:]
	}
	l.pending.users -= cut.users
	l.pending.bytes -= cut.bytes
	n := l.out.next()
	l.waiting[n] = cut
	r := l.request(n)
	l.out.send(r)
	return r, true
}

// Pending returns the number of users in bundles that wait for the next request, and whether they fill one.
func (l *Leader) Pending() (users int, full bool) {
	return l.pending.users, l.pending.users >= maxUsers || requestHead+l.pending.bytes >= l.acc.cfg.MaxRequest
}

// request makes request n, with the base of now.
func (l *Leader) request(n uint64) Request {
	r := Request{X: l.out.x, N: n, Base: l.out.base}
	for _, job := range l.waiting[n].jobs {
		r.Bundles = append(r.Bundles, job.bundle)
	}
	return r
}

// Unreplied returns the requests without a reply, in order, as they are to be sent again.
func (l *Leader) Unreplied() []Request {
	var out []Request
	for i, s := range l.out.open {
		if s.reply == nil {
			out = append(out, l.request(l.out.base+uint64(i)+1))
		}
	}
	return out
}

// A Decision is the outcome of one user of a request. A user whom the leader refused has the outcome Refused, and the
// leader's own reason was returned by Add.
type Decision struct {
	ID      shuffle.ReportID
	Outcome Outcome
}

// Handle takes a reply of the helper, with a verified signature. It returns the decisions of this reply and of those
// that waited for it, in order. An error ends the attempt: leader and helper differ, and nothing of it is released.
func (l *Leader) Handle(r Reply) ([]Decision, error) {
	if l.over != nil {
		return nil, l.over
	}
	ready, err := l.out.receive(r)
	if err != nil {
		return nil, l.end(err)
	}
	var decided []Decision
	for _, reply := range ready {
		more, err := l.apply(reply)
		if err != nil {
			return nil, l.end(err)
		}
		decided = append(decided, more...)
	}
	return decided, nil
}

// apply counts the users of one request whom the helper accepted.
func (l *Leader) apply(reply Reply) ([]Decision, error) {
	decided := make([]Decision, 0, len(reply.Outcomes))
	p := l.acc.vec.Params()
	outcomes, messages := reply.Outcomes, reply.Messages
	for _, job := range l.waiting[reply.N].jobs {
		for i := range job.results {
			own, theirs := &job.results[i], outcomes[0]
			outcomes = outcomes[1:]
			decided = append(decided, Decision{ID: job.bundle.Users[i].ID, Outcome: theirs})
			if own.outcome != Accepted {
				if theirs == Accepted {
					return nil, fmt.Errorf("the helper accepts a user whom the leader refused: %w", errDiffers)
				}
				continue // counted in rejects by Add
			}
			l.taken--
			if theirs != Accepted {
				l.rejects[theirs]++
				own.erase()
				continue
			}
			message := new(sumvec.PrepMessage).New(&p)
			if err := message.UnmarshalBinary(messages[0][:]); err != nil {
				return nil, fmt.Errorf("a prep message: %w", errDiffers)
			}
			messages = messages[1:]
			out, err := l.acc.vec.PrepNext(own.state, message)
			if err != nil {
				return nil, fmt.Errorf("the leader cannot finish what the helper accepted: %w", errDiffers)
			}
			l.acc.add(out)
			own.erase()
		}
	}
	l.bytes -= l.waiting[reply.N].bytes
	delete(l.waiting, reply.N)
	return decided, nil
}

// CanPrepare reports whether the attempt may end: every request has its reply, and the minimum is counted. Call it when
// the cohort is full or the deadline has come.
func (l *Leader) CanPrepare() bool {
	decided := l.taken == 0 && len(l.pending.jobs) == 0 && len(l.waiting) == 0 // all, refused users of bundles included
	return l.over == nil && decided && l.acc.users >= l.acc.cfg.Minimum
}

// Prepare ends the counting: it lays the leader's floor into the leader's share and erases the Leader. The caller fixed
// its cutoff and erased the attempt's key before; note holds what it will read again beside the share. Store what
// Prepare returns with Ending before anything of it leaves.
func (l *Leader) Prepare(e Entropy, note Note) (Prepared, error) {
	if !l.CanPrepare() {
		return Prepared{}, fmt.Errorf("prepare with %d users, Minimum = %d, %d unanswered: %w", l.acc.users,
			l.acc.cfg.Minimum, l.taken, errTooSmall)
	}
	f := l.out.finish(l.acc.users)
	share, err := l.acc.finish(f, e)
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare: %w", err)
	}
	out := Prepared{Finish: f, Note: note, Rejects: l.rejects, Aggregate: share}
	_ = l.end(errErased)
	return out, nil
}

// Erase drops the attempt with all that it holds. It is safe to call at any time and more than once.
func (l *Leader) Erase() { _ = l.end(errErased) }

// end erases everything for a reason, which it returns. The first reason stays.
func (l *Leader) end(why error) error {
	if l.over != nil {
		return l.over
	}
	l.over = why
	for _, r := range l.waiting {
		r.erase()
	}
	l.pending.erase()
	clear(l.waiting)
	l.pending, l.taken, l.bytes, l.out.open = request{}, 0, 0, nil
	l.acc.erase()
	return why
}

func (r request) erase() {
	for _, job := range r.jobs {
		for i := range job.results {
			job.results[i].erase()
		}
	}
}

// Format describes progress and shows no share.
func (l Leader) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "leader with %d of %d users, %d unanswered", l.acc.users, l.acc.cfg.Cohort, l.taken)
}
