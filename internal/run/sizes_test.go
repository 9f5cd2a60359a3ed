package run

import (
	"testing"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestLargeReportsMakeSmallBundles instead of being refused.
func TestLargeReportsMakeSmallBundles(t *testing.T) {
	params := randomizer.Params{Dim: 8, ClipNorm: 1, Levels: 20, Trials: 40, Coin: randomizer.Fair}
	if got := bundleOf(wire.Suite_SUITE_X25519, manifest.Part{Leader: params.ReportBytes()}, 600); got != maxBundle {
		t.Errorf("small reports: %d a bundle, want %d", got, maxBundle)
	}
	if got := bundleOf(wire.Suite_SUITE_X25519, manifest.Part{Leader: params.ReportBytes()}, 5); got != 5 {
		t.Errorf("small cohort: %d a bundle, want 5", got)
	}
	params.Dim = 100000
	large := bundleOf(wire.Suite_SUITE_X25519, manifest.Part{Leader: params.ReportBytes()}, 600)
	if size := int(large) * params.ReportBytes(); large < 1 || large >= maxBundle || size > natsjs.DefaultMaxPayload ||
		2*size < natsjs.DefaultMaxPayload {
		t.Errorf("large reports: %d a bundle, %d bytes", large, size)
	}
	params.Dim = 10_000_000
	if got := bundleOf(wire.Suite_SUITE_X25519, manifest.Part{Leader: params.ReportBytes()}, 600); got != 1 {
		t.Errorf("huge reports: %d a bundle, want 1", got)
	}
}

// TestSuiteIsThatOfTheTask: privacy.suite reaches the announced task, and its longer reports make smaller bundles.
func TestSuiteIsThatOfTheTask(t *testing.T) {
	file, err := deploy.Tasks.ReadFile("tasks/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]wire.Suite{"2": wire.Suite_SUITE_X25519, "3": wire.Suite_SUITE_MLKEM768_X25519} {
		spec, err := task.Parse(file, []string{"privacy.suite=" + set})
		if err != nil {
			t.Fatal(err)
		}
		job, err := NewJob(spec)
		if err != nil {
			t.Fatal(err)
		}
		body, err := job.Wire()
		if err != nil {
			t.Fatal(err)
		}
		sizes, err := manifest.SizesOf(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		bytes := uint64(1)
		for _, f := range body.Plan.Phases {
			params, err := manifest.Params(f.Mechanism)
			if err != nil {
				t.Fatal(err)
			}
			bytes = max(bytes, uint64(params.ReportBytes()))
		}
		if one := seal.ReportSize(want, 1, int(bytes)); body.Suite != want || sizes.Single != one {
			t.Errorf("suite %s: %v with reports of %d bytes, want %v and %d", set, body.Suite, sizes.Single, want, one)
		}
	}
}
