package obs

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/scorer"
)

// NewScorer registers the metrics of a scorer and returns what feeds them. It registers all of them or, on error, none.
// No metric says anything of an event.
func NewScorer(r prometheus.Registerer) (scorer.Observer, error) {
	f := factory{}
	var (
		requests = f.counterVec("panlearn_scorer_requests_total", "Requests that were answered, by outcome, an HTTP status.", "outcome")
		seconds  = f.histogram("panlearn_scorer_request_seconds", "Time from the head of a request to the end of its answer.",
			prometheus.ExponentialBuckets(0.001, 4, 8))
		events = f.counterVec("panlearn_scorer_events_total", "Events that were scored.", "task")
		unfit  = f.counterVec("panlearn_scorer_invalid_events_total",
			"Events without a score, because they do not fit the declaration.", "task")
		failures = f.counterVec("panlearn_scorer_read_failures_total",
			"Readings of a model that failed; the model before is served. Where there was none yet, the task is empty.", "task")
		version = f.gaugeVec("panlearn_scorer_model_version", "The model_version of the model that is served.", "task")
		loaded  = f.gaugeVec("panlearn_scorer_model_loaded_timestamp_seconds",
			"When the model that is served was read, in Unix time.", "task")
	)
	if err := f.register(r); err != nil {
		return scorer.Observer{}, err
	}
	return scorer.Observer{
		Request: func(status int, took time.Duration) {
			requests.WithLabelValues(strconv.Itoa(status)).Inc()
			seconds.Observe(took.Seconds())
		},
		Events: func(task string, scored, invalid int) {
			events.WithLabelValues(task).Add(float64(scored))
			unfit.WithLabelValues(task).Add(float64(invalid))
		},
		Model: func(s model.Snapshot, read time.Time) {
			version.WithLabelValues(s.Task).Set(float64(s.ModelVersion))
			loaded.WithLabelValues(s.Task).Set(float64(read.Unix()))
		},
		Failed: func(task string) { failures.WithLabelValues(task).Inc() },
	}, nil
}
