package stage

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// play has an attempt filled from a crowd that waits: the announced share of it sends at once, and where these are too
// few the share grows until the cohort is full. garbage comes beside each report; the broker shows a part of what is
// left over behind a report, and the rest with the first report of the next attempt. It returns how many sent, and
// when the last one came.
func (b *backlog) play(waiting, garbage, cohort, seen float64, slow time.Duration, sequence *uint64,
	now time.Time) (sent float64, end time.Time) {
	end = now
	if sent = math.Round(b.ramp.Share(0) * waiting); sent < cohort {
		for sent = min(cohort, waiting); b.ramp.Share(end.Sub(now))*waiting < sent; {
			end = end.Add(time.Second)
		}
	}
	b.users = uint64(min(sent, cohort))
	messages := uint64(math.Ceil(float64(b.users) * (1 + garbage)))
	arrived := uint64(sent * (1 + garbage))
	for i := range messages {
		*sequence++
		over := uint64(0)
		if arrived > i+1 {
			over = uint64(seen * float64(arrived-i-1))
		}
		came := now
		if i > 0 {
			came = end
		}
		b.saw(*sequence, over, came, end.Add(time.Duration(i)*slow)) // long after it came
	}
	if arrived > messages {
		*sequence += arrived - messages
	}
	return sent, end
}

// A crowd of which nobody is asked twice fills round after round. As long as the plan knows how many wait, hardly
// anybody sends in vain; where there are many times as many, the first two rounds show it, the second where the broker
// shows late who was left over.
func TestFewSendInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cohort := float64(rapid.IntRange(20, 5000).Draw(t, "cohort"))
		waiting := cohort * rapid.Float64Range(1, 100).Draw(t, "rounds")
		times := math.Exp2(rapid.Float64Range(-3, 5).Draw(t, "waiting over planned"))
		garbage := rapid.Float64Range(0, 3).Draw(t, "garbage")
		seen := rapid.Float64Range(0, 1).Draw(t, "seen")
		slow := time.Duration(rapid.IntRange(0, 1e6).Draw(t, "stage, ns a message"))
		planned := max(cohort, waiting/times)
		over := waiting / planned
		var b backlog
		now, sequence := time.Unix(1, 0), uint64(1)
		for round := 1; waiting >= cohort; round++ {
			b.open(cohort, planned, false, false, time.Hour, now)
			began := now
			sent, end := b.play(waiting, garbage, cohort, seen, slow, &sequence, now)
			waiting, now = waiting-sent, end
			limit := 1.05*cohort + 6
			if round <= 2 {
				limit = max(1, over) * (cohort*1.05 + 6)
			}
			if end.Sub(began) > 10*time.Minute {
				t.Fatalf("round %d took %v of an hour", round, end.Sub(began))
			}
			if sent > limit {
				t.Fatalf(
					"round %d: %.0f sent for %.0f places, want at most %.0f: %.0f go on waiting, %.2f times as many as planned, garbage %.2f, seen %.2f",
					round, sent, cohort, limit, waiting, over, garbage, seen)
			}
		}
	})
}

// An attempt without reports does not keep its share: the next begins where the wait had come to.
func TestAnEmptyAttemptOpensTheNext(t *testing.T) {
	b := backlog{opened: time.Unix(1, 0), ramp: stream.NewRamp(0.001, 0, time.Hour)}
	if got := b.next(1, 1, b.opened.Add(time.Hour)); got != 1 {
		t.Errorf("after an hour: %v, want everybody", got)
	}
	if got := b.next(1, 1, b.opened); got != b.ramp.Share(0) {
		t.Errorf("at once: %v, want %v as before", got, b.ramp.Share(0))
	}
}

// An attempt at a round that was opened before asks few others than those who send again.
func TestAnotherAttemptAsksFew(t *testing.T) {
	var b backlog
	first := b.open(100, 1000, false, false, time.Hour, time.Unix(1, 0)).Share(0)
	if got := b.open(100, 1000, false, true, time.Hour, time.Unix(2, 0)).Share(0); got > first/10 {
		t.Errorf("a share of %v, and of %v at first", got, first)
	}
}

// Numbers between two attempts that are not all of the first one's reports, as of a flood for others or of a stream
// that was made again, do not keep the users of the next rounds away: a broker holds so many of an attempt.
func TestNumbersThatNobodySent(t *testing.T) {
	w := newWorld(t, plan{cohort: 100, rounds: 10})
	e := w.new(w.config()).environment
	if err := e.enlist(&stream.Message{Subject: w.name.Task(), Data: w.sign(w.learner, w.task)}); err != nil {
		t.Fatal(err)
	}
	b := e.backlog
	now, sequence := time.Unix(1, 0), uint64(1)
	for _, gap := range []uint64{0, 1 << 50, 1 << 20, 0} {
		b.open(100, 1000, false, false, time.Hour, now)
		sequence += gap
		_, now = b.play(1000, 0, 100, 1, 0, &sequence, now)
		if share := b.next(100, 1000, now); share < 100.0/1000/12 { // 1,024 messages beside the cohort's 100
			t.Errorf("after a gap of %d the share is %v", gap, share)
		}
	}
}
