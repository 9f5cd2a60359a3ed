package obs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// metricsPage holds the table that operators read, and that the alert rules and the dashboard are checked against.
const metricsPage = "../../docs/reference/metrics.md"

// A role is a command that serves /metrics.
type role struct {
	name     string
	registry *prometheus.Registry
}

// roles registers what each command registers (internal/run), and lets everything happen once, so that every vector
// has a child. The other commands serve no metrics.
func roles(t *testing.T) []role {
	t.Helper()
	learner, shuffle, publish := NewRegistry(), NewRegistry(), NewRegistry()
	m, err := NewLearner(learner, "churn")
	if err != nil {
		t.Fatal(err)
	}
	script(m)
	o, err := NewStage(shuffle, "churn")
	if err != nil {
		t.Fatal(err)
	}
	if err := StatusMetrics(shuffle, "churn", func() stage.Status { return stage.Status{} }); err != nil {
		t.Fatal(err)
	}
	o.Opened(1, 1)
	o.Released(1, 1, time.Second)
	o.Failed("put")
	if _, err := NewPublisher(publish, "churn"); err != nil {
		t.Fatal(err)
	}
	help := NewRegistry()
	h, err := NewHelper(help, "churn", func() helper.Status { return helper.Status{} })
	if err != nil {
		t.Fatal(err)
	}
	h.Failed("put")
	relay := NewRegistry()
	if _, err := NewRelay(relay, func() int { return 1 }); err != nil {
		t.Fatal(err)
	}
	issued := NewRegistry()
	if _, err := NewIssuer(issued, "churn", func() int { return 1 }); err != nil {
		t.Fatal(err)
	}
	scored := NewRegistry()
	s, err := NewScorer(scored)
	if err != nil {
		t.Fatal(err)
	}
	s.Request(200, time.Second)
	s.Events("churn", 1, 1)
	s.Model(model.Snapshot{Task: "churn"}, time.Unix(2e9, 0))
	s.Failed("churn")
	for _, r := range []*prometheus.Registry{learner, shuffle} {
		if err := NewFleet(r, func() map[string]bool { return map[string]bool{"churn": true} }); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*prometheus.Registry{learner, shuffle, help, publish, relay} {
		end := func() (time.Time, map[string]time.Time) {
			return time.Unix(2e9, 0), map[string]time.Time{"nats1:4222": time.Unix(2e9, 0)}
		}
		if err := NewBroker(r, "churn", Broker{Connected: func() bool { return true }, Certificates: end,
			Clock: func() (time.Duration, bool) { return time.Second, true }}); err != nil {
			t.Fatal(err)
		}
	}
	return []role{{"learner run", learner}, {"ingest shuffle", shuffle}, {"ingest shuffle --role helper", help}, {"ingest publish", publish}, {"ingest relay", relay}, {"ingest issuer", issued},
		{"learner serve", scored}}
}

// foreign are the metrics of the Go runtime, of the process, and of the endpoint itself.
var foreign = regexp.MustCompile(`^(go|process)_`)

// A family is one metric as it is scraped.
type family struct {
	name, help, kind string
	labels           []string // names, which all its series share
}

// ours returns a role's families but foreign ones, by name. It fails where one that is registered is not
// among them.
func ours(t *testing.T, r role) (families []family) {
	t.Helper()
	all, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range all {
		if foreign.MatchString(f.GetName()) {
			continue
		}
		one := family{name: f.GetName(), help: f.GetHelp(), kind: strings.ToLower(f.GetType().String())}
		for _, l := range f.GetMetric()[0].GetLabel() {
			one.labels = append(one.labels, l.GetName())
		}
		families, seen[one.name] = append(families, one), true
	}
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		r.registry.Describe(described)
	}()
	for d := range described {
		name := descName.FindStringSubmatch(d.String())[1]
		if !foreign.MatchString(name) && !seen[name] {
			t.Errorf("%s: %s is registered and has no value: let it happen in roles", r.name, name)
		}
	}
	return families
}

var descName = regexp.MustCompile(`fqName: "([^"]*)"`)

// unit returns the unit of a metric. Prometheus requires base units, which the name ends with; the units of other names
// are listed here.
func unit(name string) string {
	suffix := func(s string) bool { return strings.HasSuffix(name, s) }
	switch {
	case suffix("_timestamp_seconds"):
		return "Unix time, s"
	case suffix("_seconds"):
		return "s"
	case suffix("_total"):
		words := strings.Split(strings.TrimSuffix(name, "_total"), "_")
		switch last := words[len(words)-1]; last {
		case "dropped", "reopened":
			return words[len(words)-2]
		case "rejects":
			return "reports"
		default:
			return last
		}
	case suffix("_cohort_reports"), suffix("_cohort_size"), suffix("_cohort_minimum"):
		return "reports"
	case suffix("_round"), suffix("_round_announced"), suffix("_rollback_round"):
		return "round number"
	case suffix("_places_off"):
		return "0 or 1"
	case suffix("_queue_messages"):
		return "messages"
	case suffix("_bytes"):
		return "bytes"
	case suffix("_requests"):
		return "requests"
	case suffix("_rounds_planned"), suffix("_rounds_in_a_row"), suffix("_lost_rounds"):
		return "rounds"
	case strings.Contains(name, "_epsilon_"):
		return "epsilon"
	case suffix("_delta"):
		return "probability"
	case suffix("_events"):
		return "events"
	case suffix("_lease_held"), suffix("_task_ended"), suffix("_task_failing"), suffix("_validation_worse"), suffix("_validation_diverges"),
		suffix("_broker_failing"), suffix("_connected"):
		return "0 or 1"
	case suffix("_noise_std"), suffix("_rounding_std"), suffix("_gradient_norm"):
		return "loss per parameter"
	case suffix("_stream_surprise"):
		return "deviations"
	case suffix("_stream_memory_users"):
		return "users"
	case suffix("_people"):
		return "people"
	case suffix("_validation_loss"), suffix("_stream_expected_error"):
		return "loss"
	case suffix("_ratio"):
		return "share"
	case suffix("_build_info"):
		return "1"
	case suffix("_model_version"):
		return "version"
	case suffix("_model_norm"):
		return "parameters"
	}
	return ""
}

const (
	tableBegin = "<!-- metrics: written by `go test ./internal/obs -run TestMetricsTable -update` -->\n"
	tableEnd   = "<!-- end of metrics -->\n"
)

// TestMetricsTable: docs/reference/metrics.md has every metric of every role, as the code registers it.
func TestMetricsTable(t *testing.T) {
	var b strings.Builder
	for _, r := range roles(t) {
		fmt.Fprintf(&b, "\n`%s`:\n\n| metric | type | labels | unit | meaning |\n| --- | --- | --- | --- | --- |\n", r.name)
		for _, f := range ours(t, r) {
			u := unit(f.name)
			if u == "" {
				t.Errorf("%s: unit says nothing about it", f.name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.name, f.kind, strings.Join(f.labels, ", "), u,
				strings.ReplaceAll(f.help, "|", `\|`))
		}
	}
	golden.Section(t, metricsPage, tableBegin, b.String()+"\n", tableEnd)
}

// TestMetricsAreWellNamed: the rules of Prometheus's linter (help, base units, _total for counters and for nothing
// else), and our own.
func TestMetricsAreWellNamed(t *testing.T) {
	// A label outside of this list has to be thought about: its values must be few, and none may be a user's choice.
	known := []string{"task", "outcome", "reason", "call", "stretch", "bound", "which", "server"}
	prefixes := map[string]string{"learner run": "panlearn_learner_", "ingest shuffle": "panlearn_stage_",
		"ingest publish": "panlearn_publisher_", "ingest relay": "panlearn_relay_", "ingest issuer": "panlearn_issuer_",
		"learner serve": "panlearn_scorer_"}
	for _, r := range roles(t) {
		problems, err := testutil.GatherAndLint(r.registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", r.name, p.Metric, p.Text)
		}
		for _, f := range ours(t, r) {
			name, help := f.name, f.help
			everyRole := strings.HasPrefix(name, "panlearn_broker_") || strings.HasPrefix(name, "panlearn_certificate_") ||
				strings.HasPrefix(name, "panlearn_clock_") || name == "panlearn_build_info" || name == "panlearn_fleet_task_failing"
			if !everyRole && !strings.HasPrefix(name, prefixes[r.name]) {
				t.Errorf("%s: %s: want the prefix %s", r.name, name, prefixes[r.name])
			}
			if (f.kind == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s: counters and nothing else end with _total", name, f.kind)
			}
			if f.kind == "histogram" && !strings.HasSuffix(name, "_seconds") {
				t.Errorf("%s: want durations in seconds", name)
			}
			if len(help) < 15 || !strings.HasSuffix(help, ".") || strings.ToUpper(help[:1]) != help[:1] && help[0] != '1' {
				t.Errorf("%s: help %q: want a sentence", name, help)
			}
			// A relay has all tasks of a broker, and says of none how much it is asked for; requests to a scorer may name no
			// task; a program has one version.
			if !slices.Contains(f.labels, "task") && r.name != "ingest relay" && name != "panlearn_build_info" &&
				!strings.HasPrefix(name, "panlearn_scorer_request") {
				t.Errorf("%s has no label task: several tasks share one Prometheus", name)
			}
			for _, l := range f.labels {
				if !slices.Contains(known, l) && name != "panlearn_build_info" {
					t.Errorf("%s: label %q is not in %v", name, l, known)
				}
			}
			if slices.Contains(f.labels, "reason") && !strings.Contains(help, "by reason") {
				t.Errorf("%s: help %q does not say that it is by reason", name, help)
			}
		}
	}
}
