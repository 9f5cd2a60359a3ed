package dashboard

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/learner/service"
)

const (
	// paced is the number of newest rounds that the pace is estimated from.
	paced = 32
	// fewest is the number of rounds needed before the page estimates the time left.
	fewest = 3
)

// A lap holds the duration of a round and the void rounds before it, and the number of users counted in it.
type lap struct {
	Took  time.Duration `json:"took"`
	Users uint64        `json:"users"`
}

// A pace holds the newest rounds.
type pace []lap

// slow returns a duration that hardly any recent round exceeded: three times their 90 % quantile, plus quiet; 0 if
// too few rounds are known.
func (p pace) slow() time.Duration {
	if len(p) < fewest {
		return 0
	}
	took := make([]time.Duration, 0, paced)
	for _, l := range p {
		took = append(took, l.Took)
	}
	slices.Sort(took)
	return 3*took[len(took)-1-len(took)/10] + quiet
}

// left returns the quartiles of the time until the plan ends, if the rounds to come take as long as the recent ones,
// user by user.
func (p pace) left(task Task, done service.Progress) (low, high time.Duration) {
	steps := float64(done.Rounds - min(done.Rounds, done.Steps))
	took := make([]float64, 0, paced)
	users := 0.0
	for _, l := range p {
		took, users = append(took, l.Took.Seconds()), users+float64(l.Users)
	}
	slices.Sort(took)
	scale := 1.0
	if !task.Interactive && users > 0 && steps > 0 && task.Needs != nil { // cohorts may grow
		scale = float64(task.Needs(done.Steps)) / steps / (users / float64(len(took)))
	}
	quarter := func(q float64) time.Duration {
		seconds := took[int(q*float64(len(took)-1))] * steps * scale
		return time.Duration(min(seconds, 1e9) * float64(time.Second))
	}
	return quarter(0.25), quarter(0.75)
}

// span prints a range of durations in one unit, with two digits at most.
func span(low, high time.Duration) string {
	unit, name := time.Second, "s"
	switch {
	case high >= 48*time.Hour:
		unit, name = 24*time.Hour, "days"
	case high >= 90*time.Minute:
		unit, name = time.Hour, "h"
	case high >= 90*time.Second:
		unit, name = time.Minute, "min"
	}
	rough := func(d time.Duration) float64 {
		x := d.Seconds() / unit.Seconds()
		if x < 10 {
			return max(1, math.Round(x))
		}
		power := math.Pow(10, math.Floor(math.Log10(x))-1)
		return math.Round(x/power) * power
	}
	a, b := count(uint64(rough(low))), count(uint64(rough(high)))
	if a == b {
		return fmt.Sprintf("%s %s", b, name)
	}
	return fmt.Sprintf("%s to %s %s", a, b, name)
}

// timeLeft returns the tile of the time left; false for a task without end, and after the end.
func (st *state) timeLeft(level Level, now time.Time) (tile, bool) {
	p, t := st.progress, tile{Name: "Time left", Value: "not known yet"}
	switch {
	case p.Rounds == 0 || st.stopped != nil || p.Steps >= p.Rounds:
		return t, false
	case level == Wrong:
		t.Value, t.Note = "not known", "nothing goes on"
	case len(st.laps) < fewest:
		t.Note = fmt.Sprintf("the pace of %d rounds tells", fewest)
	case now.Sub(st.announced.at) > st.laps.slow():
		t.Value, t.Note = "not known", "the open round takes longer than those before it"
	default:
		t.Value = "about " + span(st.laps.left(st.task, p))
		t.Note = fmt.Sprintf("at the pace of the last %d rounds, while reports keep coming", len(st.laps))
	}
	return t, true
}

// needed returns the tile of the users that the remaining rounds need; false for a task without end, and after the
// end.
func (st *state) needed() (tile, bool) {
	p := st.progress
	if p.Rounds == 0 || st.stopped != nil || st.task.Needs == nil {
		return tile{}, false
	}
	t := tile{capital(st.task.Counted().Many) + " still needed", count(st.task.Needs(p.Steps)),
		fmt.Sprintf("%s counted, of %s planned", count(p.Users), count(st.task.Users))}
	if st.task.Interactive {
		t.Note += fmt.Sprintf("; in some phases the same %s answer each round", st.task.Reporter().Many)
	}
	return t, true
}
