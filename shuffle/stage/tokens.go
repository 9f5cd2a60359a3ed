package stage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// tokens of a task: how they verify, and which of them batches have counted. The lists at the broker are the truth; what is
// here was read there, or put there by this process.
type tokens struct {
	of    *grant.Task
	plan  *wire.Plan
	next  stream.Round // the first round whose lists are not in spent
	chain grant.Chain  // of the rounds before next
	spent map[int]*sortedRuns
}

// once is the stint of users who answer one round, under which nonces of all such rounds are kept.
const once = -1

func newTokens(task *wire.Task, hash stream.Hash) (*tokens, error) {
	of, err := grant.Of(task.IssuerKey, hash)
	if err != nil {
		return nil, err
	}
	return &tokens{of: of, plan: task.Plan, next: 1, chain: grant.First(hash), spent: map[int]*sortedRuns{}}, nil
}

// stint returns the stint of a step where the same users answer several rounds, else once.
func (t *tokens) stint(step stream.Step) int {
	if at, found := manifest.PhaseOf(t.plan, uint64(step)); found && at.Interactive() {
		return at.Stint.Index
	}
	return once
}

// most returns how many tokens a round of a step counts at most; 0 for a step that the plan has not.
func (t *tokens) most(step stream.Step) uint64 {
	at, found := manifest.PhaseOf(t.plan, uint64(step))
	if !found {
		return 0
	}
	return at.Cohort + uint64(max(at.Phase.GetMechanism().GetMaxBundle(), 1)) - 1
}

// isSpent reports whether a nonce was counted in a round that does not share its users with the rounds of this step.
func (t *tokens) isSpent(h grant.Hash, step stream.Step) bool {
	own := t.stint(step)
	for stint, all := range t.spent {
		if (stint == once || stint != own) && all.has(h) {
			return true
		}
	}
	return false
}

// A counted is one round's tokens as a batch covers them.
type counted struct {
	round  stream.Round
	step   stream.Step
	hashes []grant.Hash // sorted
	after  grant.Chain
}

// add takes the tokens of a round that a batch covers.
func (t *tokens) add(c counted) {
	stint := t.stint(c.step)
	if t.spent[stint] == nil {
		t.spent[stint] = new(sortedRuns)
	}
	t.spent[stint].add(c.hashes)
	t.next, t.chain = c.round+1, c.after
}

// ofRound returns the tokens of a round that is to be released, by their hashes in any order.
func (t *tokens) ofRound(r round, hashes []grant.Hash) (counted, error) {
	if t.next != r.number {
		return counted{}, fmt.Errorf("%w: round %d is released where those of rounds before %d are known", ErrHidden, r.number,
			t.next)
	}
	slices.SortFunc(hashes, compareHashes)
	return counted{round: r.number, step: r.step, hashes: hashes, after: grant.Next(t.chain, r.number, r.step, hashes)}, nil
}

func compareHashes(a, b grant.Hash) int { return bytes.Compare(a[:], b[:]) }

// sortedRuns holds hashes in sorted runs, each less than half as long as the one before: 16 bytes a hash.
type sortedRuns struct{ runs [][]grant.Hash }

func (s *sortedRuns) add(run []grant.Hash) {
	if len(run) == 0 {
		return
	}
	s.runs = append(s.runs, run)
	for n := len(s.runs); n > 1 && 2*len(s.runs[n-1]) > len(s.runs[n-2]); n = len(s.runs) {
		s.runs = append(s.runs[:n-2], merge(s.runs[n-2], s.runs[n-1]))
	}
}

func (s *sortedRuns) has(h grant.Hash) bool {
	for _, run := range s.runs {
		if _, found := slices.BinarySearchFunc(run, h, compareHashes); found {
			return true
		}
	}
	return false
}

// merge returns the hashes of both runs, sorted.
func merge(a, b []grant.Hash) []grant.Hash {
	out := make([]grant.Hash, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareHashes(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// taking holds the nonces of one attempt: those taken, and those of counted users. They end with the attempt.
type taking struct {
	taken   map[grant.Hash]struct{}
	counted []grant.Hash
}

// A token is one user's as it was opened: the hash of its nonce, if it verifies.
type token struct {
	hash  grant.Hash
	valid bool
}

// verify verifies the tokens that follow the reports of so many users. Workers call it.
func (t *tokens) verify(out []token, data []byte, users int) []token {
	out = out[:0]
	for i := range users {
		h, err := t.of.Verify(data[i*grant.Size : (i+1)*grant.Size])
		out = append(out, token{h, err == nil})
	}
	return out
}

// takes reports whether a user's token counts in this attempt, and takes its nonce if so.
func (a *attempt) takes(t token) bool {
	if !t.valid || a.tokens.isSpent(t.hash, a.round.step) {
		return false
	}
	if _, taken := a.taking.taken[t.hash]; taken {
		return false
	}
	if a.taking.taken == nil {
		a.taking.taken = make(map[grant.Hash]struct{})
	}
	a.taking.taken[t.hash] = struct{}{}
	return true
}

// admit adds the users of an opened message whose tokens count, and refuses only the others. It returns the message's
// outcome: accepted if at least one user was added.
func (a *attempt) admit(o *sealed) Reason {
	size, users := a.opener.part.Leader, len(o.ids)
	packed := o.plaintext[:users*size]
	var taken []grant.Hash
	kept := 0
	for i, t := range o.tokens {
		if !a.takes(t) {
			continue
		}
		taken = append(taken, t.hash)
		o.ids[kept] = o.ids[i]
		copy(packed[kept*size:(kept+1)*size], packed[i*size:(i+1)*size])
		kept++
	}
	if kept == 0 {
		if a.mixer.Has(shuffle.ReportID(o.report.Ids[0])) || a.mixer.Has(shuffle.ReportID(o.report.Ids[users-1])) {
			return Duplicate // it came before, and took its nonces then
		}
		a.refused(users - 1)
		return Grant
	}
	o.ids = o.ids[:kept]
	reason := reasonOf(a.mixer.Add(o.ids, packed[:kept*size]))
	if reason != Accepted { // nobody was added
		for _, h := range taken {
			delete(a.taking.taken, h)
		}
		return reason
	}
	a.taking.counted = append(a.taking.counted, taken...)
	a.refused(users - kept)
	return Accepted
}

// refused counts users of a message who are refused alone.
func (a *attempt) refused(users int) {
	for range users {
		a.counts[Grant]++
		if a.Observer.Report != nil {
			a.Observer.Report(Grant)
		}
	}
}

// erase forgets the nonces of the attempt.
func (t *taking) erase() { t.taken, t.counted = nil, nil }
