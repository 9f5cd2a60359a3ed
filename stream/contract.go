package stream

import (
	"errors"
	"fmt"
)

// ErrRefused says that a broker or adapter will never take a write as it is: too large, or a subject that the port
// does not write. The same call again fails again.
var ErrRefused = errors.New("refused")

// CheckPut says whether PutOnce takes a subject: concrete, of Rounds, Attempts or Batches.
func CheckPut(subject string) (Task, Stream, error) {
	return checkPort("put once", subject, Rounds, Attempts, Batches)
}

// CheckSwap says whether Swap takes a subject: one of Leases.
func CheckSwap(subject string) (Task, Stream, error) { return checkPort("swap", subject, Leases) }

// CheckPublish says whether Publish takes a subject: that of the reports of one attempt.
func CheckPublish(subject string) (Task, Stream, error) {
	return checkPort("publish", subject, Reports)
}

// CheckPurge says whether Purge takes a subject: that of an attempt's reports.
func CheckPurge(subject string) (Task, Stream, error) {
	return checkPort("purge", subject, Reports)
}

// CheckGet says whether Get takes a subject: any but that of reports, which only the work queue hands out.
func CheckGet(subject string) (Task, Stream, error) {
	return checkPort("get", subject, Rounds, Attempts, Leases, Batches)
}

// CheckLatest says whether Latest takes a pattern: what [Task.Rounds] or [Task.Opens] answer.
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
