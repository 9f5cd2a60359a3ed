package split

// LeaderMarks holds a leader's marks of a task: the attempt with a stored Prepared, and the attempt with a stored Share
// of the helper. Every step on them must be atomic among processes: read, call a method, write, sync. The zero Attempt
// means none.
type LeaderMarks struct {
	Prepared Attempt
	Released Attempt
}

// before reports whether x is of an earlier round than y, or of an earlier attempt of the same.
func (x Attempt) before(y Attempt) bool {
	return x.Round < y.Round || x.Round == y.Round && x.Number < y.Number
}

// Prepare returns the marks with x prepared, and false where the step must fail: a later attempt is prepared, or this
// number with other hashes, or the round is released.
func (m LeaderMarks) Prepare(x Attempt) (LeaderMarks, bool) {
	if x.Round <= m.Released.Round || x != m.Prepared && !m.Prepared.before(x) {
		return m, false
	}
	m.Prepared = x
	return m, true
}

// Release returns the marks with the helper's Share of x stored, and false where the step must fail: x is not the
// attempt that is prepared, or another of its round or of a later one is released.
func (m LeaderMarks) Release(x Attempt) (LeaderMarks, bool) {
	if x != m.Prepared || x != m.Released && x.Round <= m.Released.Round {
		return m, false
	}
	m.Released = x
	return m, true
}

// Drop returns the marks without the prepared attempt x, so that its key is overwritten. It returns false if another
// attempt is prepared or x is released: then nothing is overwritten.
func (m LeaderMarks) Drop(x Attempt) (LeaderMarks, bool) {
	if x != m.Prepared || x == m.Released {
		return m, false
	}
	m.Prepared = Attempt{}
	return m, true
}

// A Finding names what a leader's process that starts does about a round without an outcome.
type Finding uint8

const (
	// Open: nothing of the round was released; open the next attempt.
	Open Finding = iota
	// Resume: the round's Prepared is in the folder; go on with ResumeEnding.
	Resume
	// Void: the helper released the round, or will not take part in it, and the folder has nothing to put together.
	Void
)

// Find returns what to do about a round that has no batch and no claim. share is the attempt of the round's Share, a
// release or a refusal, or the zero Attempt if there is none. marked is the highest round that the helper has reported
// as marked, 0 if it reported none.
func (m LeaderMarks) Find(round uint64, share Attempt, marked uint64) Finding {
	prepared := m.Prepared.Round == round
	switch {
	case prepared && (share == Attempt{} || share == m.Prepared):
		return Resume
	case share != Attempt{} || marked >= round:
		return Void
	}
	return Open
}

// A HelperMark holds a helper's mark of a task: the attempt that it released last, and the signed Share. The zero value
// means none.
type HelperMark struct {
	X      Attempt
	Signed []byte
}

// Release returns the mark of a release of x, and false where the step must fail: the mark is of a later round, or of
// this round and another attempt. Where x is marked already, the mark is as it was.
func (m HelperMark) Release(x Attempt, signed []byte) (HelperMark, bool) {
	switch {
	case x == m.X:
		return m, true
	case x.Round <= m.X.Round:
		return m, false
	}
	return HelperMark{X: x, Signed: signed}, true
}
