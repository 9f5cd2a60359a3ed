package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// A panel holds the parts of a panel that tests need.
type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	Targets     []struct {
		RefID      string     `json:"refId"`
		Datasource datasource `json:"datasource"`
		Expr       string     `json:"expr"`
	} `json:"targets"`
}

type dashboard struct {
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string          `json:"name"`
			Type       string          `json:"type"`
			Datasource datasource      `json:"datasource"`
			Query      json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("grafana/panlearn.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 20 {
		t.Fatalf("%d panels", len(d.Panels))
	}
	return d
}

// TestDashboardNamesWhatExists: every panel queries metrics and labels that a role serves.
func TestDashboardNamesWhatExists(t *testing.T) {
	d, known := readDashboard(t), withRecordings(t, metrics(t))
	shown := ""
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			shown += target.Expr + "\n"
			for _, problem := range checkNames(target.Expr, known) {
				t.Errorf("%s, %s: %s", p.Title, target.RefID, problem)
			}
			// Relays have all tasks of a broker, requests to scorers may name none, and programs have one version.
			named := strings.Count(target.Expr, "panlearn_") - strings.Count(target.Expr, "panlearn_relay_") -
				strings.Count(target.Expr, "panlearn_scorer_request") - strings.Count(target.Expr, "panlearn_build_info")
			if named != strings.Count(target.Expr, `task=~"$task"`) {
				t.Errorf("%s, %s: does not select the task everywhere: %s", p.Title, target.RefID, target.Expr)
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		for _, problem := range checkNames(string(v.Query), known) {
			if !strings.Contains(problem, "no metric task") { // label_values' second argument is a label
				t.Errorf("variable %s: %s", v.Name, problem)
			}
		}
	}
	// What nobody sees is not worth serving.
	for name := range known {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
		if strings.HasPrefix(name, "panlearn_") && base == name && !strings.Contains(shown, name) &&
			name != "panlearn_stage_deadline_timestamp_seconds" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// chosen is the data source that the reader of a dashboard selects: each Grafana gives its data sources
// identities of its own.
var chosen = datasource{Type: "prometheus", UID: "${datasource}"}

// TestPanelsExplainThemselves, and all ask the source that is chosen. Where they lie shows in Grafana.
func TestPanelsExplainThemselves(t *testing.T) {
	d := readDashboard(t)
	if v := d.Templating.List[0]; v.Name != "datasource" || v.Type != "datasource" || string(v.Query) != `"prometheus"` {
		t.Errorf("the first variable is %+v, want one that chooses a Prometheus, on which the others rest", v)
	}
	for _, v := range d.Templating.List[1:] {
		if v.Datasource != chosen {
			t.Errorf("variable %s asks %v", v.Name, v.Datasource)
		}
	}
	for _, p := range d.Panels {
		if p.Type != "row" && (p.Title == "" || p.Description == "" || len(p.Targets) == 0 || p.Datasource != chosen) {
			t.Errorf("%q: want a title, a description, a query, and the source %v", p.Title, chosen)
		}
		for _, target := range p.Targets {
			if target.Datasource != chosen {
				t.Errorf("%s: query %s asks %v", p.Title, target.RefID, target.Datasource)
			}
		}
	}
	var provisioned struct{ Datasources []map[string]any }
	text, err := os.ReadFile("grafana/provisioning/datasources/prometheus.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &provisioned)
	}
	if err != nil || len(provisioned.Datasources) != 1 || provisioned.Datasources[0]["isDefault"] != true ||
		provisioned.Datasources[0]["type"] != "prometheus" {
		t.Errorf("%+v, %v: want one Prometheus, the default", provisioned, err)
	}
}

// TestDashboardQueriesRun, by promtool, as rules with Grafana's variables filled in, over every metric of two
// tasks, each with two processes: where vectors do not match, evaluation fails. The alert rules run over them too.
func TestDashboardQueriesRun(t *testing.T) {
	filled := strings.NewReplacer("$__rate_interval", "1m", "$__range", "3h", "$task", ".*")
	var panels strings.Builder
	panels.WriteString("groups:\n- name: panels\n  rules:\n")
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			fmt.Fprintf(&panels, "  - {record: \"panel:p%d_%s\", expr: %q}\n", p.ID, target.RefID, filled.Replace(target.Expr))
		}
	}
	alerts, err := filepath.Abs("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var test strings.Builder
	fmt.Fprintf(&test, "rule_files: [%q, %q]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n",
		write("panels.yml", panels.String()), alerts)
	known := metrics(t)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		for _, series := range combinations(append([]string{"instance"}, known[name].labels...)) {
			fmt.Fprintf(&test, "  - {series: '%s{job=\"panlearn-learner\", %s}', values: '1+1x30'}\n", name, series)
		}
	}
	// Two panels as a sign that they were evaluated: 4 processes, and rounds of 2 tasks.
	test.WriteString("  promql_expr_test:\n  - {expr: count(panel:p2_A), eval_time: 20m, exp_samples: [{value: 4}]}\n")
	test.WriteString("  - {expr: count(panel:p4_A), eval_time: 20m, exp_samples: [{value: 2}]}\n")
	promtool(t, "test", "rules", write("test.yml", test.String()))
}

// combinations returns all ways to give each label one of two values.
func combinations(labels []string) []string {
	if len(labels) == 0 {
		return []string{""}
	}
	values := []string{"a", "b"}
	if labels[0] == "le" {
		values = []string{"1", "+Inf"}
	}
	var all []string
	for _, rest := range combinations(labels[1:]) {
		for _, v := range values {
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%s=%q, %s", labels[0], v, rest), ", "))
		}
	}
	return all
}
