package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/panlearn/panlearn/internal/test/golden"
)

// A rule of deploy/prometheus/alerts.yml.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	text, err := os.ReadFile("prometheus/alerts.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &file) // promtool knows every key
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 15 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

// withRecordings adds the rules' own series, which keep the labels that they sum by.
func withRecordings(t *testing.T, known map[string]metric) map[string]metric {
	t.Helper()
	for _, r := range rules(t) {
		if r.Record != "" {
			level, _, _ := strings.Cut(r.Record, ":")
			known[r.Record] = metric{"gauge", strings.Split(level, "_")}
		}
	}
	return known
}

// TestRulesNameWhatExists: every metric and label that a rule names is one that a role serves.
func TestRulesNameWhatExists(t *testing.T) {
	known := withRecordings(t, metrics(t))
	for _, r := range rules(t) {
		for _, p := range checkNames(r.Expr, known) {
			t.Errorf("%s%s: %s", r.Alert, r.Record, p)
		}
	}
}

// TestAlertsLeadToAPage: the runbook_url of each alert is a page of this repository, and its anchor a heading there.
func TestAlertsLeadToAPage(t *testing.T) {
	const pages = "https://github.com/panlearn/panlearn/blob/main/"
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	unanchored := regexp.MustCompile(`[^a-z0-9 -]`)
	for _, r := range rules(t) {
		if r.Record != "" {
			continue
		}
		path, ours := strings.CutPrefix(r.Annotations["runbook_url"], pages)
		page, anchor, _ := strings.Cut(path, "#")
		text, err := os.ReadFile(filepath.Join("..", page))
		if !ours || err != nil {
			t.Errorf("%s: runbook_url %q: want a page below %s (%v)", r.Alert, r.Annotations["runbook_url"], pages, err)
			continue
		}
		there := anchor == ""
		for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
			there = there || strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor
		}
		if !there {
			t.Errorf("%s: no heading of %s is #%s", r.Alert, page, anchor)
		}
	}
}

// alertTests are the files that test the alerts. Those of the second last hours or days, so it evaluates them less often.
var alertTests = []string{"alerts_test.yml", "alerts_days_test.yml"}

// TestAlertsAreComplete: each alert has a severity, a summary, advice and a test.
func TestAlertsAreComplete(t *testing.T) {
	var tests []byte
	for _, name := range alertTests {
		text, err := os.ReadFile(filepath.Join("prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	seen := map[string]bool{}
	for _, r := range rules(t) {
		if r.Record != "" {
			continue
		}
		if seen[r.Alert] {
			t.Errorf("%s: twice", r.Alert)
		}
		seen[r.Alert] = true
		if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q: want warning or critical", r.Alert, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
			t.Errorf("%s: want a summary and an action", r.Alert)
		}
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n +exp_alerts:\n +- exp_labels: \{severity: ` +
			r.Labels["severity"])
		if !fires.Match(tests) {
			t.Errorf("%s: no test in which it fires", r.Alert)
		}
	}
}

// TestInhibitions: each rule of alertmanager.yml names alerts that there are, keeps to one task, and nothing
// inhibits itself.
func TestInhibitions(t *testing.T) {
	text, err := os.ReadFile("prometheus/alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rules []struct {
			Sources []string `yaml:"source_matchers"`
			Targets []string `yaml:"target_matchers"`
			Equal   []string `yaml:"equal"`
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Rules) == 0 {
		t.Fatal(err, len(file.Rules))
	}
	var known []string
	for _, r := range rules(t) {
		known = append(known, r.Alert)
	}
	names := regexp.MustCompile(`Panlearn\w+`)
	for i, r := range file.Rules {
		sources, targets := names.FindAllString(strings.Join(r.Sources, " "), -1),
			names.FindAllString(strings.Join(r.Targets, " "), -1)
		for _, name := range append(slices.Clone(sources), targets...) {
			if !slices.Contains(known, name) {
				t.Errorf("rule %d: no alert is called %s", i+1, name)
			}
			if slices.Contains(sources, name) && slices.Contains(targets, name) {
				t.Errorf("rule %d: %s inhibits itself", i+1, name)
			}
		}
		if len(sources) == 0 || len(targets) == 0 || !slices.Equal(r.Equal, []string{"task"}) {
			t.Errorf("rule %d: want sources, targets, and the same task: %+v", i+1, r)
		}
	}
}

const (
	alertsBegin = "<!-- alerts: written by `go test ./deploy -run TestAlertsTable -update` -->\n"
	alertsEnd   = "<!-- end of alerts -->\n"
)

var template = regexp.MustCompile(`\{\{[^}]*\}\}`)

// TestAlertsTable: docs/reference/metrics.md has every alert as the rules have it.
func TestAlertsTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| alert | severity | it says | what to do |\n| --- | --- | --- | --- |\n")
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		_, says, _ := strings.Cut(r.Annotations["summary"], ": ")
		says = template.ReplaceAllString(says, "…")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Alert, r.Labels["severity"], says, r.Annotations["action"])
	}
	golden.Section(t, metricsPage, alertsBegin, b.String()+"\n", alertsEnd)
}

// promtool runs it in deploy/prometheus, where it is installed.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Logf("NOT RUN: promtool %s: not installed (Debian's package prometheus has it)", strings.Join(args, " "))
		return
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = "prometheus"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestPromtool: the rules parse, pass their tests, and the configuration finds them.
func TestPromtool(t *testing.T) {
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "check", "config", "prometheus.yml")
	promtool(t, append([]string{"test", "rules"}, alertTests...)...)
	// Where promtool fails for another reason than the rules, the test above would be vacuous.
	if _, err := exec.LookPath("promtool"); err == nil {
		broken := filepath.Join(t.TempDir(), "broken.yml")
		if err := os.WriteFile(broken, []byte("groups: [{name: a, rules: [{alert: A, expr: 'rate(x)'}]}]\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", broken).CombinedOutput(); err == nil {
			t.Errorf("promtool finds nothing wrong with rate(x): %s", out)
		}
	}
}
