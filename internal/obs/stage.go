package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

// NewStage registers the metrics of a stage of one task and returns the observer that feeds them. It registers all
// of them or, on error, none.
func NewStage(r prometheus.Registerer, task string) (stage.Observer, error) {
	f := factory{labels: prometheus.Labels{"task": task}}
	var (
		reports  = f.counterVec("panlearn_stage_reports_total", "Report messages examined, by outcome.", "outcome")
		users    = f.gauge("panlearn_stage_cohort_reports", "Reports in the totals of the open attempt.")
		cohort   = f.gauge("panlearn_stage_cohort_size", "Reports that the round wants.")
		lease    = f.gauge("panlearn_stage_lease_held", "1 if this process works, 0 if it is on standby.")
		attempts = f.counter("panlearn_stage_attempts_total", "Attempts opened.")
		again    = f.counter("panlearn_stage_attempts_reopened_total",
			"Attempts opened at a round after an earlier one died; under pan and shuffle+pan those who reported to the earlier one drop out.")
		dropped = f.counter("panlearn_stage_attempts_dropped_total",
			"Attempts that died before a claim; their totals and key are gone.")
		batches  = f.counterVec("panlearn_stage_batches_total", "Batches put, by outcome: released or void.", "outcome")
		round    = f.gauge("panlearn_stage_round", "Round of the newest attempt.")
		duration = f.histogram("panlearn_stage_round_duration_seconds",
			"Time from opening an attempt to releasing its batch.", roundBuckets())
		failures = f.counterVec("panlearn_stage_broker_failures_total",
			"Calls of the broker that failed and are repeated, by call.", "call")
	)
	for _, outcome := range stage.Reasons() {
		reports.WithLabelValues(outcome.String())
	}
	for _, outcome := range []string{"released", "void"} {
		batches.WithLabelValues(outcome)
	}
	observer := stage.Observer{
		Report: func(reason stage.Reason) { reports.WithLabelValues(reason.String()).Inc() },
		Fill: func(n, of uint64) {
			users.Set(float64(n))
			cohort.Set(float64(of))
		},
		Lease: func(held bool) { lease.Set(oneIf(held)) },
		Opened: func(r stream.Round, attempt stream.Attempt) {
			attempts.Inc()
			users.Set(0)
			if attempt > 1 {
				again.Inc()
			}
			round.Set(float64(r))
		},
		Dropped: func(stream.Round, stream.Attempt) { dropped.Inc() },
		Released: func(r stream.Round, _ uint64, took time.Duration) {
			batches.WithLabelValues("released").Inc()
			observeRound(duration, took, uint64(r))
		},
		Voided: func(stream.Round) { batches.WithLabelValues("void").Inc() },
		Failed: func(call string) { failures.WithLabelValues(call).Inc() },
	}
	if err := f.register(r); err != nil {
		return stage.Observer{}, err
	}
	return observer, nil
}
