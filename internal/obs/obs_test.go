package obs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLearner(t *testing.T) (*prometheus.Registry, *Learner) {
	t.Helper()
	r := prometheus.NewRegistry()
	m, err := NewLearner(r, "churn")
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

func newStage(t *testing.T) (*prometheus.Registry, stage.Observer) {
	t.Helper()
	r := prometheus.NewRegistry()
	o, err := NewStage(r, "churn")
	if err != nil {
		t.Fatal(err)
	}
	return r, o
}

// script reports a round of each kind to a learner's metrics.
func script(m *Learner) {
	at := service.Progress{Rounds: 2, EpsilonSpent: 0.5, EpsilonBudget: 1, Delta: 1e-6}
	m.recordProgress(at)
	m.recordAnnouncement(1, 40)
	at.Round, at.Steps, at.Users, at.ModelNorm = 1, 1, 38, 0.25
	at.Validation = &method.Validation{Rounds: 1, Loss: method.Scores{Recent: method.Band{Value: 0.5, Low: 0.375,
		High: 0.625}},
		Accuracy: &method.Scores{Overall: method.Band{Value: 0.75, Low: 0.5, High: 1}}}
	m.recordRound(service.Applied{Progress: at, Attempt: 1, Cohort: 40, BatchUsers: 38, NoiseStd: 0.125,
		RoundingStd: 0.0625, GradientNorm: 0.75, Rejects: map[string]uint64{"duplicate": 2, "a user's own words": 1, "another": 4},
		Took: 3 * time.Second})
	m.recordAnnouncement(2, 47)
	at.Round = 2
	m.recordRound(service.Applied{Progress: at, Attempt: 2, Cohort: 47, Void: true, Rejects: map[string]uint64{},
		Took: time.Minute})
}

func TestLint(t *testing.T) {
	learner, m := newLearner(t)
	script(m)
	mixer, o := newStage(t)
	o.Failed("get")
	for role, r := range map[string]*prometheus.Registry{"learner": learner, "stage": mixer} {
		problems, err := testutil.GatherAndLint(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", role, p.Metric, p.Text)
		}
	}
}

func TestLearnerValues(t *testing.T) {
	r, m := newLearner(t)
	script(m)
	err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP panlearn_learner_validation_loss Progressive validation: mean loss of the announced points on the events of those who report, over the last round, recent rounds or all; value, or an end of its 95 % band.
# TYPE panlearn_learner_validation_loss gauge
panlearn_learner_validation_loss{bound="high",stretch="last",task="churn"} 0
panlearn_learner_validation_loss{bound="high",stretch="overall",task="churn"} 0
panlearn_learner_validation_loss{bound="high",stretch="recent",task="churn"} 0.625
panlearn_learner_validation_loss{bound="low",stretch="last",task="churn"} 0
panlearn_learner_validation_loss{bound="low",stretch="overall",task="churn"} 0
panlearn_learner_validation_loss{bound="low",stretch="recent",task="churn"} 0.375
panlearn_learner_validation_loss{bound="value",stretch="last",task="churn"} 0
panlearn_learner_validation_loss{bound="value",stretch="overall",task="churn"} 0
panlearn_learner_validation_loss{bound="value",stretch="recent",task="churn"} 0.5
# HELP panlearn_learner_validation_accuracy_ratio Progressive validation: share of correct predictions of the announced points on the events of those who report; as panlearn_learner_validation_loss.
# TYPE panlearn_learner_validation_accuracy_ratio gauge
panlearn_learner_validation_accuracy_ratio{bound="high",stretch="last",task="churn"} 0
panlearn_learner_validation_accuracy_ratio{bound="high",stretch="overall",task="churn"} 1
panlearn_learner_validation_accuracy_ratio{bound="high",stretch="recent",task="churn"} 0
panlearn_learner_validation_accuracy_ratio{bound="low",stretch="last",task="churn"} 0
panlearn_learner_validation_accuracy_ratio{bound="low",stretch="overall",task="churn"} 0.5
panlearn_learner_validation_accuracy_ratio{bound="low",stretch="recent",task="churn"} 0
panlearn_learner_validation_accuracy_ratio{bound="value",stretch="last",task="churn"} 0
panlearn_learner_validation_accuracy_ratio{bound="value",stretch="overall",task="churn"} 0.75
panlearn_learner_validation_accuracy_ratio{bound="value",stretch="recent",task="churn"} 0
# HELP panlearn_learner_rounds_total Rounds committed, by outcome: applied or void.
# TYPE panlearn_learner_rounds_total counter
panlearn_learner_rounds_total{outcome="applied",task="churn"} 1
panlearn_learner_rounds_total{outcome="void",task="churn"} 1
# HELP panlearn_learner_reports_total Reports counted in the batches committed by this process.
# TYPE panlearn_learner_reports_total counter
panlearn_learner_reports_total{task="churn"} 38
# HELP panlearn_learner_round Last committed round.
# TYPE panlearn_learner_round gauge
panlearn_learner_round{task="churn"} 2
# HELP panlearn_learner_round_announced Round that is announced.
# TYPE panlearn_learner_round_announced gauge
panlearn_learner_round_announced{task="churn"} 2
# HELP panlearn_learner_cohort_reports Reports asked for in the announced round.
# TYPE panlearn_learner_cohort_reports gauge
panlearn_learner_cohort_reports{task="churn"} 47
# HELP panlearn_learner_privacy_epsilon_spent Epsilon of the unit (event, user, record or person) that is charged most, reservations included, if in every cohort the plan's share of reports is honest; of pan and local however many are.
# TYPE panlearn_learner_privacy_epsilon_spent gauge
panlearn_learner_privacy_epsilon_spent{task="churn"} 0.5
# HELP panlearn_learner_noise_std Standard deviation of the privacy noise in one coordinate of the last mean gradient.
# TYPE panlearn_learner_noise_std gauge
panlearn_learner_noise_std{task="churn"} 0.125
`), "panlearn_learner_validation_loss", "panlearn_learner_validation_accuracy_ratio", "panlearn_learner_rounds_total", "panlearn_learner_reports_total", "panlearn_learner_round", "panlearn_learner_round_announced",
		"panlearn_learner_cohort_reports", "panlearn_learner_privacy_epsilon_spent", "panlearn_learner_noise_std")
	if err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(m.rejects.WithLabelValues("duplicate")); got != 2 {
		t.Errorf("duplicates: %v, want 2", got)
	}
	if got := testutil.ToFloat64(m.rejects.WithLabelValues(otherReason)); got != 5 {
		t.Errorf("other reasons: %v, want 5", got)
	}
}

func TestStageValues(t *testing.T) {
	r, o := newStage(t)
	o.Lease(true)
	o.Opened(3, 1)
	o.Dropped(3, 1)
	o.Opened(3, 2)
	o.Report(stage.Accepted)
	o.Report(stage.Duplicate)
	o.Fill(1, 40)
	o.Released(3, 2, 90*time.Second)
	o.Voided(4)
	o.Failed("put")
	err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP panlearn_stage_batches_total Batches put, by outcome: released or void.
# TYPE panlearn_stage_batches_total counter
panlearn_stage_batches_total{outcome="released",task="churn"} 1
panlearn_stage_batches_total{outcome="void",task="churn"} 1
# HELP panlearn_stage_attempts_total Attempts opened.
# TYPE panlearn_stage_attempts_total counter
panlearn_stage_attempts_total{task="churn"} 2
# HELP panlearn_stage_attempts_dropped_total Attempts that died before a claim; their totals and key are gone.
# TYPE panlearn_stage_attempts_dropped_total counter
panlearn_stage_attempts_dropped_total{task="churn"} 1
# HELP panlearn_stage_attempts_reopened_total Attempts opened at a round after an earlier one died; under pan and shuffle+pan those who reported to the earlier one drop out.
# TYPE panlearn_stage_attempts_reopened_total counter
panlearn_stage_attempts_reopened_total{task="churn"} 1
# HELP panlearn_stage_cohort_reports Reports in the totals of the open attempt.
# TYPE panlearn_stage_cohort_reports gauge
panlearn_stage_cohort_reports{task="churn"} 1
# HELP panlearn_stage_lease_held 1 if this process works, 0 if it is on standby.
# TYPE panlearn_stage_lease_held gauge
panlearn_stage_lease_held{task="churn"} 1
# HELP panlearn_stage_broker_failures_total Calls of the broker that failed and are repeated, by call.
# TYPE panlearn_stage_broker_failures_total counter
panlearn_stage_broker_failures_total{call="put",task="churn"} 1
`), "panlearn_stage_batches_total", "panlearn_stage_attempts_total", "panlearn_stage_attempts_dropped_total",
		"panlearn_stage_attempts_reopened_total", "panlearn_stage_cohort_reports", "panlearn_stage_lease_held",
		"panlearn_stage_broker_failures_total")
	if err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(r, "panlearn_stage_reports_total"); err != nil || n != len(stage.Reasons()) {
		t.Errorf("%d outcomes of reports, %v: want all %d from the start", n, err, len(stage.Reasons()))
	}
}

// TestLabels: no label has a name that we did not think about, and no value that a user or stage chose.
func TestLabels(t *testing.T) {
	learner, m := newLearner(t)
	script(m)
	mixer, _ := newStage(t)
	known := map[string]bool{otherReason: true, "applied": true, "void": true, "released": true, "churn": true,
		"last": true, "recent": true, "overall": true, "value": true, "low": true, "high": true}
	for _, r := range stage.Reasons() {
		known[r.String()] = true
	}
	for _, r := range []*prometheus.Registry{learner, mixer} {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				for _, l := range one.GetLabel() {
					if !known[l.GetValue()] {
						t.Errorf("%s{%s=%q}", f.GetName(), l.GetName(), l.GetValue())
					}
				}
			}
		}
	}
}

// TestRegisteredTwice: a second registration is an error that leaves the registry as it was, with the first
// metrics in it.
func TestRegisteredTwice(t *testing.T) {
	r, _ := newLearner(t)
	before, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if m, err := NewLearner(r, "churn"); err == nil || m != nil {
		t.Errorf("a second learner of one task: %v", err)
	}
	if _, err := NewLearner(r, "other"); err != nil {
		t.Errorf("a learner of another task: %v", err)
	}
	if after, err := r.Gather(); err != nil || len(after) != len(before) {
		t.Errorf("%d families, then %d: %v", len(before), len(after), err)
	}
	r = prometheus.NewRegistry()
	r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "panlearn_stage_round", Help: "In the way."}))
	if _, err := NewStage(r, "churn"); err == nil {
		t.Error("a stage registers over a foreign metric")
	}
	if all, err := r.Gather(); err != nil || len(all) != 1 {
		t.Errorf("%d families are left of a registration that failed, %v: want the foreign one", len(all), err)
	}
}

func TestEndpoints(t *testing.T) {
	registry := NewRegistry()
	if _, err := NewLearner(registry, "churn"); err != nil {
		t.Fatal(err)
	}
	var healthy, ready error
	more := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "more "+r.URL.Path) })
	h := Endpoints(registry, func() error { return healthy }, func() error { return ready }, more)
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	check := func(method, path string, code int, body string) {
		t.Helper()
		if c, b := get(method, path); c != code || !strings.Contains(b, body) {
			t.Errorf("%s %s: %d %q, want %d with %q", method, path, c, b, code, body)
		}
	}
	check("GET", "/healthz", 200, "ok")
	check("GET", "/readyz", 200, "ok")
	check("GET", "/metrics", 200, `panlearn_learner_round{task="churn"} 0`)
	check("GET", "/metrics", 200, "go_goroutines")
	check("GET", "/v1/status", 200, "more /v1/status")
	ready = errors.New("no connection to the broker")
	check("GET", "/readyz", 503, "no connection to the broker")
	check("GET", "/healthz", 200, "ok")
	healthy = errors.New("disk full")
	check("GET", "/healthz", 503, "disk full")
	h = Endpoints(registry, nil, nil, nil)
	check("GET", "/healthz", 200, "ok")
	check("GET", "/v1/status", 404, "")
	check("POST", "/metrics", 405, "")
}

func TestServeStopsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	under, done := make(chan struct{}), make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(under)
		<-ctx.Done() // a request that is under way when the end comes
		io.WriteString(w, "finished")
	})
	go func() { done <- Serve(ctx, listener, handler) }()
	answer := make(chan string, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + listener.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-under
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := <-answer; got != "finished" {
		t.Errorf("the request under way got %q", got)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("somebody still listens")
	}
}

// TestServeEnds also where the context had ended before, and where the listener breaks.
func TestServeEnds(t *testing.T) {
	for _, how := range []string{"before", "broken"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if how == "before" {
			stop()
		} else {
			listener.Close()
		}
		if err := Serve(ctx, listener, http.NotFoundHandler()); (err != nil) != (how == "broken") {
			t.Errorf("%s: %v", how, err)
		}
		stop()
		if _, err := listener.Accept(); err == nil {
			t.Errorf("%s: the listener is open", how)
		}
	}
}

// A model that is recently worse than the best constant is a 1, and one that is no more a 0 again.
func TestDivergenceIsExposed(t *testing.T) {
	r, m := newLearner(t)
	for _, diverges := range []bool{false, true, false} {
		m.recordRound(service.Applied{Progress: service.Progress{Validation: &method.Validation{Rounds: 3,
			Diverges: diverges}}})
		want := fmt.Sprintf("panlearn_learner_validation_diverges{task=\"churn\"} %.0f\n", oneIf(diverges))
		if err := testutil.GatherAndCompare(r,
			strings.NewReader("# HELP panlearn_learner_validation_diverges Progressive validation: 1 while the recent scores are "+
				"surely worse than the best constant, else 0.\n# TYPE panlearn_learner_validation_diverges gauge\n"+want),
			"panlearn_learner_validation_diverges"); err != nil {
			t.Error(err)
		}
	}
}

// TestSlowRoundNamesItself: the histograms of rounds carry the number of a round as exemplar, if a scraper requests the
// format that has them, and no other label.
func TestSlowRoundNamesItself(t *testing.T) {
	r := prometheus.NewRegistry()
	o, err := NewStage(r, "churn")
	if err != nil {
		t.Fatal(err)
	}
	o.Released(17, 100, 90*time.Second)
	scrape := func(accept string) string {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		q.Header.Set("Accept", accept)
		Endpoints(r, nil, nil, nil).ServeHTTP(w, q)
		return w.Body.String()
	}
	if text := scrape("application/openmetrics-text; version=1.0.0"); !regexp.MustCompile(
		`panlearn_stage_round_duration_seconds_bucket\{task="churn",le="[0-9.]+"\} 1 # \{round="17"\} 90\.0`).MatchString(text) {
		t.Errorf("no exemplar: %s", text)
	}
	if text := scrape("text/plain"); strings.Contains(text, "round=") {
		t.Errorf("an exemplar in the plain format: %s", text)
	}
}
