package obs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/shuffle/stage"
)

// A StageStatus holds the answer of a stage's /status: public numbers of the round that is collected, and
// nothing of one user.
type StageStatus struct {
	Task  string `json:"task"`
	Doing string `json:"doing"` // in words
	// "waiting: 812 of 1000", with the minimum and the time from which it is enough; empty: no round is open
	Waiting  string     `json:"waiting"`
	Works    bool       `json:"works"` // false: on standby
	Round    uint64     `json:"round"` // 0: none is open
	Attempt  uint64     `json:"attempt"`
	Users    uint64     `json:"users"`
	Cohort   uint64     `json:"cohort"`
	Minimum  uint64     `json:"minimum"`
	Deadline *time.Time `json:"deadline"` // when the minimum becomes enough; null: never
	Failures int        `json:"failures"` // calls of the broker that failed in a row
	Trouble  string     `json:"trouble"`  // why the last of them failed; empty: none did

	Lost        uint64 `json:"lost_rounds"` // that the broker is behind what this process and its marks know
	Redelivered uint64 `json:"redelivered"` // reports that this process was sent again
	Strange     uint64 `json:"strange"`     // reports that came for no open attempt
	Queue       Queue  `json:"queue"`
	Places      Places `json:"places"`

	HelperAway *time.Time `json:"helper_away"` // since when the helper of trust split does not answer; null: it does, or there is none

	// by which our clock is ahead of the broker's at least; negative: behind; 0: it may agree, or is not known
	ClockAhead float64 `json:"clock_ahead_seconds"`

	Reports map[string]uint64 `json:"reports"` // messages examined by this process, by outcome
}

// Ahead returns ClockAhead.
func (s StageStatus) Ahead() time.Duration { return time.Duration(s.ClockAhead * float64(time.Second)) }

// A Queue describes the stream of reports: what waits in it, and how many bytes it may hold: 0 where that is
// not known.
type Queue struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	MaxBytes uint64 `json:"max_bytes"`
}

// Places describes the places of a stage process, in users, since it started.
type Places struct {
	Lease   float64 `json:"lease_seconds"` // for which the open attempt keeps places; 0: it has none
	Live    uint64  `json:"live"`          // given, and neither used nor ended
	Granted uint64  `json:"granted"`
	Unused  uint64  `json:"unused"`  // of these, those that ended without a report
	Without uint64  `json:"without"` // counted users for whom no place was left
	Off     string  `json:"off"`     // why attempts open without places though the plan has them; empty: they do not
}

func placesOf(p stage.Places) Places {
	out := Places{Lease: p.Lease.Seconds(), Live: p.Live, Granted: p.Granted, Unused: p.Unused, Without: p.Without}
	switch {
	case p.Refused:
		out.Off = "the broker hands out no requests for places"
	case p.Flooded:
		out.Off = "most places were not used"
	}
	return out
}

// StatusOf turns a stage's status and the count of its reports into the answer.
func StatusOf(s stage.Status, reports *Reports) StageStatus {
	out := StageStatus{Task: string(s.Task), Doing: s.Phase, Waiting: Waiting(s), Works: s.Lease, Round: uint64(s.Round),
		Attempt: uint64(s.Attempt),
		Users:   s.Users, Cohort: s.Cohort, Minimum: s.Minimum, Failures: s.Failures,
		Trouble: s.Trouble, Lost: s.Lost, Redelivered: s.Redelivered, Strange: s.Strange, Queue: Queue(s.Queue),
		Places: placesOf(s.Places), Reports: reports.byOutcome()}
	if !s.Deadline.IsZero() {
		deadline := s.Deadline.UTC()
		out.Deadline = &deadline
	}
	if !s.HelperAway.IsZero() {
		since := s.HelperAway.UTC()
		out.HelperAway = &since
	}
	return out
}

// Waiting describes how full the round is that a stage collects: "waiting: 812 of 1000", and what would be
// enough when. Empty where it collects none.
func Waiting(s stage.Status) string {
	if s.Round == 0 {
		return ""
	}
	if s.Unjoined {
		return fmt.Sprintf("waiting for the helper to join: nobody of %d is asked before", s.Cohort)
	}
	line := fmt.Sprintf("waiting: %d of %d", s.Users, s.Cohort)
	switch {
	case s.Deadline.IsZero() || s.Minimum == 0:
		return line
	case s.Users < s.Minimum:
		return fmt.Sprintf("%s; nothing is released below %d; from %s on %d are enough", line, s.Minimum,
			s.Deadline.UTC().Format(time.RFC3339), s.Minimum)
	}
	return fmt.Sprintf("%s; enough for %s", line, s.Deadline.UTC().Format(time.RFC3339))
}

// Reports counts the messages that a stage examines, by outcome. Its zero value has counted none.
type Reports struct{ counts [64]atomic.Uint64 }

// Add counts one message. It is a stage.Observer's Report.
func (r *Reports) Add(reason stage.Reason) { r.counts[int(reason)%len(r.counts)].Add(1) }

// byOutcome returns the counts of all outcomes.
func (r *Reports) byOutcome() map[string]uint64 {
	out := map[string]uint64{}
	for _, reason := range stage.Reasons() {
		out[reason.String()] = r.counts[reason].Load()
	}
	return out
}

// Status serves GET /status. ahead returns by how much our clock is ahead of the broker's, where that is known;
// nil: it is not.
func Status(get func() stage.Status, reports *Reports, ahead func() (time.Duration, bool)) http.Handler {
	return serveStatus(func() any {
		s := StatusOf(get(), reports)
		s.ClockAhead = secondsAhead(ahead)
		return s
	})
}

// serveStatus serves GET /status as JSON.
func serveStatus(get func() any) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(get()) // the client may have gone
	})
	return mux
}

// secondsAhead returns by how much our clock is ahead of the broker's, and 0 where ahead is nil or does not know.
func secondsAhead(ahead func() (time.Duration, bool)) float64 {
	if ahead == nil {
		return 0
	}
	by, _ := ahead()
	return by.Seconds()
}

// StatusMetrics registers the part of a stage's status that its Observer does not see: all of it or, on error, none.
func StatusMetrics(r prometheus.Registerer, task string, get func() stage.Status) error {
	f := factory{labels: prometheus.Labels{"task": task}}
	gauge := func(name, help string, of func(stage.Status) float64) {
		f.gaugeFunc(name, help, func() float64 { return of(get()) })
	}
	places := func(outcome string, of func(stage.Places) uint64) {
		with := prometheus.Labels{"task": task, "outcome": outcome}
		f.keep(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "panlearn_stage_places_total", ConstLabels: with,
			Help: "Places, in users: granted, ended unused, and missing for a report that was accepted."},
			func() float64 { return float64(of(get().Places)) }))
	}
	places("granted", func(p stage.Places) uint64 { return p.Granted })
	places("unused", func(p stage.Places) uint64 { return p.Unused })
	places("missing", func(p stage.Places) uint64 { return p.Without })
	gauge("panlearn_stage_place_lease_seconds", "Time for which places of the open attempt are kept; 0: it has none.",
		func(s stage.Status) float64 { return s.Places.Lease.Seconds() })
	gauge("panlearn_stage_places_off",
		"1 while attempts open without places though the plan has them: requests do not come, or are a flood.",
		func(s stage.Status) float64 { return oneIf(s.Places.Refused || s.Places.Flooded) })
	gauge("panlearn_stage_cohort_minimum", "Reports below which the open round is not released; 0: no round is open.",
		func(s stage.Status) float64 { return float64(s.Minimum) })
	gauge("panlearn_stage_deadline_timestamp_seconds",
		"Unix time at which the minimum becomes enough for the open round; 0: never, or no round is open.",
		func(s stage.Status) float64 { return unixSeconds(s.Deadline) })
	gauge("panlearn_stage_helper_away_timestamp_seconds",
		"Unix time since which the helper of trust split does not answer, nor join what this stage opened; 0: it does, or there is none.",
		func(s stage.Status) float64 { return unixSeconds(s.HelperAway) })
	gauge("panlearn_stage_lost_rounds",
		"Rounds that the broker is behind what this process and its marks know: it was restored, or lost records.",
		func(s stage.Status) float64 { return float64(s.Lost) })
	gauge("panlearn_stage_queue_messages", "Report messages in the broker's stream; 0 on standby.",
		func(s stage.Status) float64 { return float64(s.Queue.Messages) })
	gauge("panlearn_stage_queue_bytes",
		"Bytes of the report messages in the broker's stream; 0 on standby.",
		func(s stage.Status) float64 { return float64(s.Queue.Bytes) })
	gauge("panlearn_stage_queue_limit_bytes",
		"Bytes that the stream may hold, beyond which publishes are refused; 0: not known, or no limit.",
		func(s stage.Status) float64 { return float64(s.Queue.MaxBytes) })
	f.keep(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "panlearn_stage_redeliveries_total", ConstLabels: f.labels,
		Help: "Reports that this process was sent again, because nobody had acknowledged them within the broker's AckWait."},
		func() float64 { return float64(get().Redelivered) }))
	return f.register(r)
}
