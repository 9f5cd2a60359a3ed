package obs

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
)

// NewHelper registers the metrics of a helper of one task and returns the observer that feeds them; get returns its
// status. It registers all of them or, on error, none.
func NewHelper(r prometheus.Registerer, task string, get func() helper.Status) (helper.Observer, error) {
	f := factory{labels: prometheus.Labels{"task": task}}
	var (
		messages = f.counterVec("panlearn_helper_messages_total", "Messages of the leader, by what became of them.", "outcome")
		reports  = f.counterVec("panlearn_helper_reports_total", "Reports that the leader showed, by outcome.", "outcome")
		attempts = f.counterVec("panlearn_helper_attempts_total",
			"Attempts, by what became of them: joined, and of those released or dropped; refused, of a round that is over here.",
			"outcome")
		round    = f.gauge("panlearn_helper_round", "Round of the newest attempt that was joined.")
		failures = f.counterVec("panlearn_helper_failures_total",
			"Calls of the broker or of the helper's own folder that failed and are repeated, by call.", "call")
	)
	f.gaugeFunc("panlearn_helper_released_round", "Highest round whose release is marked in the helper's folder; 0: none.",
		func() float64 { return float64(get().Released) })
	f.gaugeFunc("panlearn_helper_leader_timestamp_seconds", "Unix time of the leader's last message; 0: none came yet.",
		func() float64 { return unixSeconds(get().Leader) })
	for _, reason := range helper.Reasons() {
		messages.WithLabelValues(reason.String())
	}
	for o := split.Accepted; o <= split.BadProof; o++ {
		reports.WithLabelValues(o.String())
	}
	count := map[string]prometheus.Counter{}
	for _, outcome := range []string{"joined", "released", "dropped", "refused"} {
		count[outcome] = attempts.WithLabelValues(outcome)
	}
	observer := helper.Observer{
		Message: func(reason helper.Reason) { messages.WithLabelValues(reason.String()).Inc() },
		Decided: func(o split.Outcome, n uint64) { reports.WithLabelValues(o.String()).Add(float64(n)) },
		Joined: func(r stream.Round, _ stream.Attempt) {
			count["joined"].Inc()
			round.Set(float64(r))
		},
		Dropped:  func(stream.Round, stream.Attempt) { count["dropped"].Inc() },
		Released: func(stream.Round, uint64, time.Duration) { count["released"].Inc() },
		Refused:  func(stream.Round) { count["refused"].Inc() },
		Failed:   func(call string) { failures.WithLabelValues(call).Inc() },
	}
	if err := f.register(r); err != nil {
		return helper.Observer{}, err
	}
	return observer, nil
}

// A helperAnswer is the answer of a helper's /status: public numbers, and nothing of one user.
type helperAnswer struct {
	Task     string     `json:"task"`
	Doing    string     `json:"doing"` // in words
	Round    uint64     `json:"round"` // of the attempt that it holds; 0: none
	Attempt  uint64     `json:"attempt"`
	Users    uint64     `json:"users"`
	Cohort   uint64     `json:"cohort"`
	Released uint64     `json:"released_round"` // the highest round that is marked in the folder
	Leader   *time.Time `json:"leader"`         // when the leader's last message came; null: none yet
	Trouble  string     `json:"trouble"`        // why the last call failed; empty: none did

	// by which our clock is ahead of the broker's at least; negative: behind; 0: it may agree, or is not known
	ClockAhead float64 `json:"clock_ahead_seconds"`
}

// HelperStatus serves GET /status of a helper. ahead is as in Status.
func HelperStatus(get func() helper.Status, ahead func() (time.Duration, bool)) http.Handler {
	return serveStatus(func() any {
		s := get()
		out := helperAnswer{Task: string(s.Task), Doing: s.Phase, Round: uint64(s.Round), Attempt: uint64(s.Attempt),
			Users: s.Users, Cohort: s.Cohort, Released: uint64(s.Released), Trouble: s.Trouble}
		if !s.Leader.IsZero() {
			at := s.Leader.UTC()
			out.Leader = &at
		}
		out.ClockAhead = secondsAhead(ahead)
		return out
	})
}
