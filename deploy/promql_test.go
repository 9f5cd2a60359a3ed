package deploy

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const operations = "../docs/operations.md"

// A metric is a row of the table of metrics in docs/operations.md, which internal/obs writes and checks.
type metric struct {
	kind   string
	labels []string
}

var row = regexp.MustCompile("(?m)^\\| `(panlearn_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]+) \\|")

// metrics are what a rule or a panel may name: ours, and those of the exporters that prometheus.yml scrapes.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(operations)
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
		one := metric{m[2], strings.Split(m[3], ", ")}
		if one.kind != "histogram" {
			all[m[1]] = one
			continue
		}
		all[m[1]+"_sum"], all[m[1]+"_count"] = metric{"counter", one.labels}, metric{"counter", one.labels}
		all[m[1]+"_bucket"] = metric{"counter", append([]string{"le"}, one.labels...)}
	}
	if len(all) < 30 {
		t.Fatalf("%s has a table of %d metrics only: the pattern is broken", operations, len(all))
	}
	return all
}

// everywhere are the labels that Prometheus adds to what it scrapes.
var everywhere = []string{"job", "instance"}

var (
	token     = regexp.MustCompile(`"[^"]*"|'[^']*'|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-zA-Z.]*|[^\s]`)
	span      = regexp.MustCompile(`\[[^]"]*\]`) // [5m], [$__rate_interval], [1d:5m]
	name      = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	grouping  = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators = []string{"and", "or", "unless", "bool", "offset"}
	functions = []string{"sum", "max", "min", "avg", "count", "rate", "increase", "histogram_quantile", "time", "changes", "deriv",
		"avg_over_time", "min_over_time", "max_over_time", "predict_linear", "clamp_min", "clamp_max", "label_values"}
	// counters are read through one of these, never bare.
	overTime = []string{"rate", "increase"}
)

// checkPromQL checks the names in an expression: every metric is known, has the labels that it is selected by, and is a
// counter exactly where a rate is taken. It does not parse: promtool does.
func checkPromQL(expr string, known map[string]metric) (problems []string) {
	tokens := token.FindAllString(span.ReplaceAllString(expr, ""), -1)
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	at := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return tokens[i]
	}
	labelled := slices.Clone(everywhere)
	for _, m := range known {
		labelled = append(labelled, m.labels...)
	}
	used := 0
	for i := 0; i < len(tokens); i++ {
		switch word := tokens[i]; {
		case !name.MatchString(word), slices.Contains(operators, word):
		case slices.Contains(grouping, word):
			for i++; at(i) != ")" && at(i) != ""; i++ {
				if name.MatchString(at(i)) && !slices.Contains(labelled, at(i)) {
					complain("no metric has the label %s", at(i))
				}
			}
		case at(i+1) == "(":
			if !slices.Contains(functions, word) {
				complain("function %s: add it to the test, if it is one", word)
			}
		case at(i+1) == "by":
		default:
			m, found := known[word]
			if !found {
				complain("no metric %s", word)
			}
			used++
			rated := at(i-1) == "(" && slices.Contains(overTime, at(i-2))
			if found && strings.HasPrefix(word, "panlearn_") && (m.kind == "counter") != rated {
				complain("%s is a %s: rate and increase are for counters, and counters for them", word, m.kind)
			}
			if at(i+1) != "{" {
				continue
			}
			for i += 2; at(i) != "}" && at(i) != ""; i++ {
				if name.MatchString(at(i)) && found && !slices.Contains(append(everywhere, m.labels...), at(i)) {
					complain("%s has no label %s", word, at(i))
				}
			}
		}
	}
	if used == 0 {
		complain("names no metric")
	}
	return problems
}

// TestCheckPromQL: the check sees what it is there for.
func TestCheckPromQL(t *testing.T) {
	known := metrics(t)
	for expr, want := range map[string]string{
		`sum by (task) (rate(panlearn_stage_reports_total{outcome="accepted"}[5m])) > 0.5`:                               "",
		`panlearn_learner_round offset 1h + on (task) group_left (instance) time()`:                                      "",
		`histogram_quantile(0.9, sum by (le) (rate(panlearn_learner_commit_duration_seconds_bucket[$__rate_interval])))`: "",
		`panlearn_learner_rounds{task="$task"}`:                                                                          "no metric panlearn_learner_rounds",
		`rate(panlearn_learner_commit_duration_seconds[5m])`:                                                             "no metric panlearn_learner_commit_duration_seconds",
		`sum by (user) (panlearn_learner_round)`:                                                                         "no metric has the label user",
		`panlearn_learner_round{outcome="void"}`:                                                                         "panlearn_learner_round has no label outcome",
		`panlearn_stage_reports_total{outcome="range", reason=~"x|y"}`:                                                   "has no label reason",
		`panlearn_stage_attempts_total > 2`:                                                                              "is a counter",
		`rate(panlearn_learner_round[5m])`:                                                                               "is a gauge",
		`quantile_over_tim(0.5, panlearn_learner_round[5m])`:                                                             "function quantile_over_tim",
		`vector_1 > 0`: "no metric vector_1",
		`1 > 0`:        "names no metric",
	} {
		got := strings.Join(checkPromQL(expr, known), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}
