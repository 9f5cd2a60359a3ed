package split

import (
	"fmt"
	"sync/atomic"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"

	"github.com/panlearn/panlearn/shuffle"
)

// An Opener opens one party's ciphertext of a bundle under the attempt's key, with AssociatedData(users) as its
// associated data. It returns one input share for each user; nil for a user whom the caller refuses for a reason of its
// own. An error means that the ciphertext does not open, so that nothing it says is authentic. Workers call it at the
// same time.
type Opener func(sealed []byte, users []User) ([][]byte, error)

// A Worker opens and prepares reports for one party of one attempt. Every goroutine has its own: Prio3SumVec holds a
// generator of masks that it resets for each, and two goroutines that shared one would make masks of public bytes. A
// Worker that two goroutines use panics.
type Worker struct {
	role  byte
	setup Params
	key   VerifyKey
	open  Opener
	vec   *sumvec.SumVec
	sizes Lengths
	busy  atomic.Bool
}

func newWorker(role byte, p Params, key VerifyKey, open Opener) (*Worker, error) {
	vec, err := p.newVec()
	if err != nil {
		return nil, err
	}
	return &Worker{role: role, setup: p, key: key, open: open, vec: vec, sizes: lengths(vec)}, nil
}

// A Job is one bundle on its way through a Worker. Run it once, on any goroutine, and hand it back.
type Job struct {
	bundle  Bundle
	sealed  []byte // the party's own ciphertext
	spent   []bool // of users: the id was spent before
	opened  bool
	results []result
	ran     bool
}

// Format hides what the job holds of its users.
func (j Job) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "job of %d users", len(j.bundle.Users)) }

// A result is one prepared user of a job.
type result struct {
	outcome Outcome
	state   *sumvec.PrepState // of the leader, until the reply
	prep    []byte            // of the leader
	out     *sumvec.OutShare  // of the helper
	message PrepMessage       // of the helper
}

// Run opens the job's bundle and prepares its users. Its results show nowhere before the job is handed back.
func (j *Job) Run(w *Worker) {
	if !w.busy.CompareAndSwap(false, true) {
		panic("split: a worker is used by two goroutines")
	}
	defer w.busy.Store(false)
	if j.ran {
		panic("split: a job is run twice")
	}
	j.ran = true
	j.results = make([]result, len(j.bundle.Users))
	for i := range j.results {
		j.results[i].outcome = Unopened
	}
	shares, err := w.open(j.sealed, j.bundle.Users)
	if err != nil || len(shares) != len(j.bundle.Users) {
		return
	}
	j.opened = true
	for i, u := range j.bundle.Users {
		if j.spent[i] {
			j.results[i].outcome = Duplicate
		} else {
			j.results[i] = w.prepare(u, shares[i])
		}
		clear(shares[i])
	}
}

// Refuse refuses one user of a job that has run and was not handed back yet, for a reason of the caller's own.
func (j *Job) Refuse(user int) {
	if r := &j.results[user]; r.outcome == Accepted {
		r.erase()
		*r = result{outcome: Refused}
	}
}

// prepare prepares one user. Whatever the bytes are, it returns: a panic in Prio3 is a refusal of this user.
func (w *Worker) prepare(u User, share []byte) (r result) {
	want := w.sizes.Leader
	if w.role == helper {
		want = w.sizes.Helper
	}
	switch {
	case share == nil || w.role == helper && u.Prep == nil:
		return result{outcome: Refused}
	case len(share) != want || len(u.Public) != w.sizes.Public || w.role == helper && len(u.Prep) != w.sizes.Prep:
		return result{outcome: BadLength}
	}
	done := false
	defer func() {
		if !done && recover() != nil {
			r = result{outcome: BadShare}
			// What the panic left half done is not used again. The parameters were valid before.
			w.vec, _ = w.setup.newVec()
		}
	}()
	if w.role == leader {
		r = w.lead(u, share)
	} else {
		r = w.help(u, share)
	}
	done = true
	return r
}

// begin reads an input share and prepares it, under the user's own id and public share.
func (w *Worker) begin(u User, share []byte) (*sumvec.PrepState, *sumvec.PrepShare, bool) {
	p := w.vec.Params()
	input := new(sumvec.InputShare).New(&p, uint(w.role))
	defer func() { _ = input.UnmarshalBinary(make([]byte, len(share))) }() // overwrites it
	if input.UnmarshalBinary(share) != nil {
		return nil, nil, false
	}
	key, nonce := sumvec.VerifyKey(w.key), sumvec.Nonce(u.ID)
	state, prep, err := w.vec.PrepInit(&key, &nonce, w.role, u.Public, *input)
	return state, prep, err == nil
}

// lead makes the leader's prep share.
func (w *Worker) lead(u User, share []byte) result {
	state, prep, ok := w.begin(u, share)
	if !ok {
		return result{outcome: BadShare}
	}
	b, err := prep.MarshalBinary()
	if err != nil {
		return result{outcome: BadShare}
	}
	return result{outcome: Accepted, state: state, prep: b}
}

// help decides: it puts the leader's prep share and the helper's together, and finishes the helper's side.
func (w *Worker) help(u User, share []byte) result {
	state, own, ok := w.begin(u, share)
	if !ok {
		return result{outcome: BadShare}
	}
	p := w.vec.Params()
	theirs := new(sumvec.PrepShare).New(&p)
	if theirs.UnmarshalBinary(u.Prep) != nil {
		return result{outcome: BadShare}
	}
	message, err := w.vec.PrepSharesToPrep([]sumvec.PrepShare{*theirs, *own})
	if err != nil {
		return result{outcome: BadProof}
	}
	out, err := w.vec.PrepNext(state, message)
	if err != nil { // the two parties saw different halves of the public share
		return result{outcome: BadShare}
	}
	b, err := message.MarshalBinary()
	if err != nil || len(b) != len(PrepMessage{}) {
		return result{outcome: BadShare}
	}
	return result{outcome: Accepted, out: out, message: PrepMessage(b)}
}

// A spentSet holds the ids of an attempt that a ciphertext authenticated.
type spentSet map[shuffle.ReportID]struct{}

// look returns which of the users' ids are spent, and whether all are.
func (s spentSet) look(users []User) (spent []bool, all bool) {
	spent, all = make([]bool, len(users)), true
	for i, u := range users {
		_, spent[i] = s[u.ID]
		all = all && spent[i]
	}
	return spent, all
}

// spend spends the ids of a job that opened, in order, and marks users as duplicates if their id was spent meanwhile.
func (s spentSet) spend(j *Job) {
	if !j.opened {
		return
	}
	for i, u := range j.bundle.Users {
		if _, ok := s[u.ID]; ok {
			j.results[i].erase()
			j.results[i] = result{outcome: Duplicate}
		}
		s[u.ID] = struct{}{}
	}
}

// erase overwrites what the result holds of a report.
func (r *result) erase() {
	clear(r.prep)
	if r.state != nil {
		if b, err := r.state.MarshalBinary(); err == nil {
			clear(b)
			_ = r.state.UnmarshalBinary(b)
		}
	}
	if r.out != nil {
		if b, err := r.out.MarshalBinary(); err == nil {
			clear(b)
			_ = r.out.UnmarshalBinary(b)
		}
	}
}
