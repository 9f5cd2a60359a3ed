package obs

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
)

// Learner are the metrics of `learner run`. Observer feeds them.
type Learner struct {
	rounds    *prometheus.CounterVec
	users     prometheus.Counter
	rejects   *prometheus.CounterVec
	round     prometheus.Gauge
	announced prometheus.Gauge
	planned   prometheus.Gauge
	cohort    prometheus.Gauge
	duration  prometheus.Histogram
	commit    prometheus.Histogram
	committed prometheus.Gauge
	privacyGauges
	failing  prometheus.Gauge
	voids    prometheus.Gauge
	lost     prometheus.Counter
	gradient prometheus.Gauge
	model    prometheus.Gauge
	loss     *prometheus.GaugeVec
	accuracy *prometheus.GaugeVec
	worse    prometheus.Gauge
	diverges prometheus.Gauge
	streamGauges
	kept       prometheus.Gauge
	rolledBack prometheus.Gauge
}

// privacyGauges hold what a unit is charged, and the noise of the last mean gradient.
type privacyGauges struct{ epsilonSpent, epsilonBudget, delta, noise, rounding prometheus.Gauge }

// streamGauges hold how a model follows a task without an end.
type streamGauges struct{ surprise, memory, trackingError prometheus.Gauge }

// roundBuckets returns durations of a round in seconds, to a day.
func roundBuckets() []float64 {
	return []float64{1, 2.5, 5, 10, 30, 60, 150, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600}
}

// NewLearner registers the metrics of a learner of one task. It registers all of them or, on error, none.
func NewLearner(r prometheus.Registerer, task string) (*Learner, error) {
	f := factory{labels: prometheus.Labels{"task": task}}
	m := &Learner{
		rounds: f.counterVec("panlearn_learner_rounds_total", "Rounds committed, by outcome: applied or void.", "outcome"),
		users:  f.counter("panlearn_learner_reports_total", "Reports counted in the batches committed by this process."),
		rejects: f.counterVec("panlearn_learner_batch_rejects_total",
			"Report messages that the stage refused in committed batches, by reason.", "reason"),
		round:     f.gauge("panlearn_learner_round", "Last committed round."),
		announced: f.gauge("panlearn_learner_round_announced", "Round that is announced."),
		planned: f.gauge("panlearn_learner_rounds_planned",
			"Rounds of the plan, not counting void ones; 0: the task has no end."),
		cohort: f.gauge("panlearn_learner_cohort_reports", "Reports asked for in the announced round."),
		duration: f.histogram("panlearn_learner_round_duration_seconds", "Time from announcing a round to committing it.",
			roundBuckets()),
		commit: f.histogram("panlearn_learner_commit_duration_seconds",
			"Time of one durable commit of model, cursor and ledger; failed ones too.",
			prometheus.ExponentialBuckets(0.0005, 2, 16)), // half a millisecond to 16 s
		committed: f.gauge("panlearn_learner_last_commit_timestamp_seconds",
			"Unix time of the last committed round; before the first one of this process, of loading the state; 0: the task has not begun."),
		failing: f.gauge("panlearn_learner_broker_failing",
			"1 while calls of the broker fail and are repeated, else 0."),
		voids: f.gauge("panlearn_learner_void_rounds_in_a_row",
			"Void rounds since the last one that was applied. From the third on the learner waits before it announces the next."),
		lost: f.counter("panlearn_learner_lost_records_total",
			"Records that stood at the broker and were gone when the learner looked again."),
		gradient: f.gauge("panlearn_learner_gradient_norm", "Euclidean norm of the last noisy mean gradient."),
		model:    f.gauge("panlearn_learner_model_norm", "Euclidean norm of the current model."),
		loss: f.gaugeVec("panlearn_learner_validation_loss",
			"Progressive validation: mean loss of the announced points on the events of those who report, "+
				"over the last round, recent rounds or all; value, or an end of its 95 % band.", "stretch", "bound"),
		accuracy: f.gaugeVec("panlearn_learner_validation_accuracy_ratio",
			"Progressive validation: share of correct predictions of the announced points "+
				"on the events of those who report; as panlearn_learner_validation_loss.", "stretch", "bound"),
		worse: f.gauge("panlearn_learner_validation_worse",
			"Progressive validation: 1 while the last round or recent ones are predicted worse than all, by bands that lie apart; else 0."),
		diverges: f.gauge("panlearn_learner_validation_diverges",
			"Progressive validation: 1 while the recent scores are surely worse than the best constant, else 0."),
	}
	m.epsilonSpent = f.gauge("panlearn_learner_privacy_epsilon_spent",
		"Epsilon of the unit (event, user, record or person) that is charged most, reservations included, if in every cohort the plan's share of reports is honest; of pan and local however many are.")
	m.epsilonBudget = f.gauge("panlearn_learner_privacy_epsilon_budget", "Epsilon that the task may spend on one unit.")
	m.delta = f.gauge("panlearn_learner_privacy_delta", "Delta at which epsilon is stated.")
	m.noise = f.gauge("panlearn_learner_noise_std",
		"Standard deviation of the privacy noise in one coordinate of the last mean gradient.")
	m.rounding = f.gauge("panlearn_learner_rounding_std",
		"Bound on the standard deviation of stochastic rounding in one coordinate of the last mean gradient.")
	m.surprise = f.gauge("panlearn_learner_stream_surprise",
		"Of a task without end: by how many deviations the last round was farther from the model than expected. Above 4 the stream has changed.")
	m.memory = f.gauge("panlearn_learner_stream_memory_users",
		"Of a task without end: users whose events the model remembers, about.")
	m.trackingError = f.gauge("panlearn_learner_stream_expected_error",
		"Of a task without end: expected excess of the loss over that of the optimum, about.")
	m.kept = f.gauge("panlearn_learner_kept_model_round",
		"Round of the newest model that is kept beside the current one; 0: none is.")
	m.rolledBack = f.gauge("panlearn_learner_rollback_round",
		"Round after which an earlier model was last released again; 0: none was.")
	for _, outcome := range []string{"applied", "void"} {
		m.rounds.WithLabelValues(outcome)
	}
	for _, reason := range stage.Reasons() {
		if reason != stage.Accepted {
			m.rejects.WithLabelValues(reason.String())
		}
	}
	m.rejects.WithLabelValues(otherReason)
	if err := f.register(r); err != nil {
		return nil, err
	}
	return m, nil
}

// otherReason replaces every reason that this version does not know, so that no stage can make labels at will.
const otherReason = "other"

func label(reason string) string {
	for _, known := range stage.Reasons() {
		if known.String() == reason {
			return reason
		}
	}
	return otherReason
}

// Observer returns the observer that feeds the metrics.
func (m *Learner) Observer() service.Observer {
	return service.Observer{Resumed: m.recordProgress, Announced: m.recordAnnouncement, Applied: m.recordRound,
		Trouble: m.recordTrouble, Lost: func(string) { m.lost.Inc() }}
}

// recordProgress records what is committed.
func (m *Learner) recordProgress(p service.Progress) {
	m.progress(p)
	m.committed.SetToCurrentTime()
}

// recordAnnouncement records a round whose announcement is on the broker.
func (m *Learner) recordAnnouncement(round, cohort uint64) {
	m.announced.Set(float64(round))
	m.cohort.Set(float64(cohort))
}

// recordTrouble records whether calls to the broker fail.
func (m *Learner) recordTrouble(cause string) {
	m.failing.Set(oneIf(cause != ""))
}

// recordRound records a committed round.
func (m *Learner) recordRound(a service.Applied) {
	m.progress(a.Progress)
	m.committed.SetToCurrentTime()
	observeRound(m.duration, a.Took, a.Progress.Round)
	for reason, n := range a.Rejects {
		m.rejects.WithLabelValues(label(reason)).Add(float64(n))
	}
	if a.Void {
		m.rounds.WithLabelValues("void").Inc()
		return
	}
	m.rounds.WithLabelValues("applied").Inc()
	m.users.Add(float64(a.BatchUsers))
	m.noise.Set(a.NoiseStd)
	m.rounding.Set(a.RoundingStd)
	m.gradient.Set(a.GradientNorm)
}

func (m *Learner) progress(p service.Progress) {
	m.round.Set(float64(p.Round))
	m.planned.Set(float64(p.Rounds))
	m.voids.Set(float64(p.VoidsInARow))
	m.epsilonSpent.Set(p.EpsilonSpent)
	m.epsilonBudget.Set(p.EpsilonBudget)
	m.delta.Set(p.Delta)
	m.model.Set(p.ModelNorm)
	if k := p.Kept; k != nil {
		m.kept.Set(float64(k.Round))
	}
	if b := p.Rollback; b != nil {
		m.rolledBack.Set(float64(b.After))
	}
	if t := p.Tracking; t != nil {
		m.surprise.Set(t.Surprise)
		m.memory.Set(t.Memory)
		m.trackingError.Set(t.Error)
	}
	if v := p.Validation; v != nil {
		m.worse.Set(oneIf(v.Worse))
		m.diverges.Set(oneIf(v.Diverges))
		scores(m.loss, v.Loss)
		if v.Accuracy != nil {
			scores(m.accuracy, *v.Accuracy)
		}
	}
}

func scores(to *prometheus.GaugeVec, s method.Scores) {
	for stretch, band := range map[string]method.Band{"last": s.Last, "recent": s.Recent, "overall": s.Overall} {
		for bound, x := range map[string]float64{"value": band.Value, "low": band.Low, "high": band.High} {
			to.WithLabelValues(stretch, bound).Set(x)
		}
	}
}

// Timed returns the store with its commits measured.
func (m *Learner) Timed(s state.Store) state.Store { return timedStore{s, m} }

type timedStore struct {
	state.Store
	metrics *Learner
}

func (s timedStore) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry,
	kept ...state.Kept) error {
	begun := time.Now()
	err := s.Store.Commit(ctx, next, entries, kept...)
	s.metrics.commit.Observe(time.Since(begun).Seconds())
	return err
}
