package consent

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The shipped sample is a policy, and says what its comments say.
func TestShippedPolicy(t *testing.T) {
	data, err := os.ReadFile("../../../deploy/policy.yaml")
	must(t, err)
	p, err := ParsePolicy(data)
	must(t, err)
	if len(p.Tasks) != 2 || p.MaxEpsilon != 1 || p.MaxDelta != 1e-6 || p.MaxTotalEpsilon != 3 || p.MaxTotalDelta != 3e-6 ||
		p.Period != 720*time.Hour || p.HonestFraction.String() != "0.9" || p.MinCohort != 500 || *p.MaxRefunds != 8 ||
		*p.MaxReports != 64 || p.AllowPlaintext || p.ForbidFirstUse {
		t.Errorf("parsed %+v", p)
	}
	// The keys in comments are tested too, with a value of the kind that is named.
	key := strings.Repeat("0f", 32)
	text := strings.NewReplacer("# task_hashes:\n#   - ", "task_hashes:\n  - ", "# learner_key: ", "learner_key: ",
		"# stage_key: ", "stage_key: ", "# task_hash: ", "task_hash: ", "64 hexadecimal digits", key).Replace(string(data))
	if p, err = ParsePolicy([]byte(text)); err != nil || len(p.TaskHashes) != 1 || p.TaskHash.String() != key ||
		p.LearnerKey.String() != key || p.StageKey.String() != key {
		t.Errorf("with the pins: %+v, %v", p, err)
	}
}

// A policy that cannot be meant is refused, by the name of the key.
func TestPolicyIsStrict(t *testing.T) {
	key := strings.Repeat("0f", 32)
	for _, c := range []struct{ text, named string }{
		{"max_epsilom: 1", "max_epsilom"}, {"Max_epsilon: 1", "Max_epsilon"}, {"max_epsilon: 1\nmax_epsilon: 2",
			"max_epsilon"},
		{"max_epsilon: .nan", "max_epsilon"}, {"max_epsilon: nan", "max_epsilon"}, {"max_epsilon: .inf", "max_epsilon"},
		{"max_epsilon: -1", "max_epsilon"}, {"max_epsilon: one", "max_epsilon"}, {"max_epsilon:", "max_epsilon"},
		{"max_epsilon: [1]", "max_epsilon"}, {"max_epsilon: 1000", "max_epsilon"},
		{"max_delta: .nan", "max_delta"}, {"max_delta: 1", "max_delta"}, {"max_delta: -1e-9", "max_delta"},
		{"max_total_epsilon: .nan", "max_total_epsilon"}, {"max_total_epsilon: -2", "max_total_epsilon"},
		{"max_total_epsilon: .inf", "max_total_epsilon"},
		{"max_total_delta: 1", "max_total_delta"}, {"max_total_delta: NaN", "max_total_delta"}, {"max_total_delta: -1",
			"max_total_delta"},
		{"max_total_epsilon: 1\nperiod: -1h", "period"}, {"max_total_epsilon: 1\nperiod: 720", "period"},
		{"max_total_epsilon: 1\nperiod: 1ms", "period"},
		{"max_total_epsilon: 1\nperiod: month", "period"}, {"period: 720h", "period"},
		{"min_cohort: 1.5", "min_cohort"}, {"min_cohort: -1", "min_cohort"}, {"min_cohort: many", "min_cohort"},
		{"min_cohort: .nan", "min_cohort"},
		{"honest_fraction: 0", "honest_fraction"}, {"honest_fraction: -0.5", "honest_fraction"}, {"honest_fraction: 1.1",
			"honest_fraction"},
		{"honest_fraction: .nan", "honest_fraction"}, {"honest_fraction: [1]", "honest_fraction"},
		{"tasks: a9a", "tasks"}, {"tasks: [1]", "tasks"}, {"tasks: [UPPER]", "tasks"},
		{"task_hashes: [abc]", "task_hashes"}, {"task_hashes: " + key, "task_hashes"}, {"task_hashes: [\"\"]", "task_hashes"},
		{"task_hash: \"\"", "task_hash"}, {"task_hash: abc", "task_hash"}, {"task_hash: " + key + "00", "task_hash"},
		{"learner_key: 12", "learner_key"}, {"stage_key: " + key + "00", "stage_key"},
		{"forbid_first_use: 1", "forbid_first_use"}, {"forbid_first_use: \"no\"", "forbid_first_use"},
		{"forbid_one_operator: 1", "forbid_one_operator"}, {"allow_plaintext: yes please", "allow_plaintext"},
		{"max_refunds: -1", "max_refunds"}, {"max_refunds: 5000000000", "max_refunds"}, {"max_refunds: 0.5", "max_refunds"},
		{"max_reports: 0", "max_reports"}, {"max_reports: -3", "max_reports"},
		{"max_epsilon: 1\n---\nmax_epsilon: 100", "document"}, {"- max_epsilon: 1", ""}, {"max_epsilon", ""},
	} {
		p, err := ParsePolicy([]byte(c.text))
		if err == nil {
			t.Errorf("%q passed as %+v", c.text, p)
		} else if !strings.Contains(err.Error(), c.named) {
			t.Errorf("%q: %v, want the name %s", c.text, err, c.named)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	key := strings.Repeat("0f", 32)
	p, err := ParsePolicy([]byte("max_epsilon: 1.5\nmax_delta: 1e-6\nhonest_fraction: 9/10\nmin_cohort: 100\n" +
		"tasks: [a9a, churn]\ntask_hash: " + key + "\nforbid_first_use: true\nforbid_one_operator: true\nallow_plaintext: true\nmax_refunds: 0\n"))
	must(t, err)
	if p.MaxEpsilon != 1.5 || p.MaxDelta != 1e-6 || p.HonestFraction.String() != "0.9" || p.MinCohort != 100 ||
		len(p.Tasks) != 2 ||
		p.TaskHash.String() != key || !p.ForbidFirstUse || !p.ForbidOneOperator || !p.AllowPlaintext || p.MaxRefunds == nil || *p.MaxRefunds != 0 {
		t.Errorf("parsed %+v", p)
	}
	if p, err = ParsePolicy([]byte("honest_fraction: 0.9\n")); err != nil || p.HonestFraction.String() != "0.9" {
		t.Errorf("a decimal fraction: %v, %v", p.HonestFraction, err)
	}
	if _, err = ParsePolicy(nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// FuzzParsePolicy: a policy that is read is valid and always the same; an error fits in a terminal.
func FuzzParsePolicy(f *testing.F) {
	f.Add(
		[]byte(
			"tasks: [churn]\nmax_epsilon: 1.5\nmin_cohort: 100\nhonest_fraction: 0.9\nforbid_first_use: true\nmax_refunds: 0\n"))
	shipped, err := os.ReadFile("../../../deploy/policy.yaml")
	must(f, err)
	f.Add(shipped)
	f.Add([]byte("learner_key: 00000000000000000000000000000000000000000000000000000000000000ff\n"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Add([]byte("max_epsilon: .nan\n---\nmax_delta: 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy(data)
		if err != nil {
			if n := len(err.Error()); n > 4096+8*len(data) {
				t.Errorf("an error of %d bytes about %d", n, len(data))
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Errorf("read, and not valid: %v", err)
		}
		if again, err := ParsePolicy(data); err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("read again: %v", err)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
