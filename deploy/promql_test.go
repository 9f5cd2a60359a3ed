package deploy

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const metricsPage = "../docs/reference/metrics.md"

// A metric is a row of the table of metrics in docs/reference/metrics.md, which internal/obs writes and checks.
type metric struct {
	kind   string
	labels []string
}

var row = regexp.MustCompile("(?m)^\\| `(panlearn_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]*) \\|")

// metrics returns the metrics that a rule or a panel may name: ours, and those of the exporters that
// prometheus.yml scrapes.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{
		"up": {"gauge", nil},
		// Debian's prometheus-node-exporter, 1.5.
		"node_filesystem_avail_bytes": {"gauge", []string{"device", "fstype", "mountpoint"}},
		"node_filesystem_size_bytes":  {"gauge", []string{"device", "fstype", "mountpoint"}},
		// prometheus-nats-exporter -jsz=all.
		"jetstream_server_total_message_bytes": {"gauge", []string{"cluster", "server_name"}},
		"jetstream_server_max_storage":         {"gauge", []string{"cluster", "server_name"}},
		// client_golang's collector of the process.
		"process_resident_memory_bytes": {"gauge", nil},
		"process_cpu_seconds_total":     {"counter", nil},
	}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		one := metric{m[2], strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' })}
		if one.kind != "histogram" {
			all[m[1]] = one
			continue
		}
		all[m[1]+"_sum"], all[m[1]+"_count"] = metric{"counter", one.labels}, metric{"counter", one.labels}
		all[m[1]+"_bucket"] = metric{"counter", append([]string{"le"}, one.labels...)}
	}
	if len(all) < 30 {
		t.Fatalf("%s has a table of %d metrics only: the pattern is broken", metricsPage, len(all))
	}
	return all
}

var (
	ours = regexp.MustCompile(
		`((?:rate|increase)\()?\b((?:[a-z_]+:)?panlearn_[a-z_]+(?::[a-z0-9]+)?)\b(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`([a-z_]+) *(?:=|!=)~?`)
	grouped = regexp.MustCompile(`\b(?:by|on|ignoring|without) *\(([^)]*)\)`)
)

// checkNames checks what promtool cannot know: every metric of ours in an expression is served, has the labels by
// which it is selected or summed, and is a counter exactly where a rate is taken.
func checkNames(expr string, known map[string]metric) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	labels := []string{"job", "instance"} // which Prometheus adds to what it scrapes
	used := 0
	for _, m := range ours.FindAllStringSubmatch(expr, -1) {
		one, found := known[m[2]]
		if used++; !found {
			complain("no metric %s", m[2])
			continue
		}
		labels = append(labels, one.labels...)
		if (one.kind == "counter") != (m[1] != "") {
			complain("%s is a %s: rate and increase are for counters, and counters for them", m[2], one.kind)
		}
		for _, l := range matcher.FindAllStringSubmatch(m[3], -1) {
			if !slices.Contains(append([]string{"job", "instance"}, one.labels...), l[1]) {
				complain("%s has no label %s", m[2], l[1])
			}
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if used > 0 && !slices.Contains(labels, l) {
				complain("no metric here has the label %s", l)
			}
		}
	}
	return problems
}

// TestCheckNames: the check sees what it is there for.
func TestCheckNames(t *testing.T) {
	known := metrics(t)
	for expr, want := range map[string]string{
		`sum by (task) (rate(panlearn_stage_reports_total{outcome="accepted"}[5m])) > 0.5`:                               "",
		`panlearn_learner_round offset 1h + on (task) group_left (instance) time()`:                                      "",
		`histogram_quantile(0.9, sum by (le) (rate(panlearn_learner_commit_duration_seconds_bucket[$__rate_interval])))`: "",
		`panlearn_learner_rounds{task="$task"}`:                                                                          "no metric panlearn_learner_rounds",
		`rate(panlearn_learner_commit_duration_seconds[5m])`:                                                             "no metric panlearn_learner_commit_duration_seconds",
		`sum by (user) (panlearn_learner_round)`:                                                                         "no metric here has the label user",
		`panlearn_learner_round{outcome="void"}`:                                                                         "panlearn_learner_round has no label outcome",
		`panlearn_stage_reports_total{outcome="range", reason=~"x|y"}`:                                                   "has no label reason",
		`panlearn_stage_attempts_total > 2`:                                                                              "is a counter",
		`rate(panlearn_learner_round[5m])`:                                                                               "is a gauge",
	} {
		got := strings.Join(checkNames(expr, known), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}
