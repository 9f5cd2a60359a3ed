package manifest_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzPlan: whatever plan a well-formed task has, it is refused, or all that is derived from it makes sense.
func FuzzPlan(f *testing.F) {
	good, err := stream.Marshal(goodTask())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(1))
	pan := goodTask()
	pan.Plan.Trust, pan.Plan.Mechanism.FloorTrials = wire.Trust_TRUST_SHUFFLE_PAN, 1000
	if good, err = stream.Marshal(pan); err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, step uint64) {
		var task wire.Task
		if stream.Unmarshal(data, &task) != nil || manifest.CheckTask(&task) != nil {
			return
		}
		p := task.Plan
		if p.Mechanism.Dim > 1<<12 {
			return // sizes are measured on messages of the whole dimension
		}
		step = 1 + step%p.Rounds
		cohort := manifest.Cohort(p, step)
		if cohort < p.Minimum || cohort < p.Cohort {
			t.Errorf("step %d of %d: a cohort of %d, planned %d with minimum %d", step, p.Rounds, cohort, p.Cohort, p.Minimum)
		}
		sizes, err := manifest.SizesOf(&task, []string{"duplicate", "range"})
		if err == nil && (sizes.Task <= 0 || sizes.Round <= 0 || sizes.Batch <= 0 || sizes.Report <= 0) {
			t.Errorf("sizes %+v", sizes)
		}
		hash := stream.HashOf(data)
		round := &wire.Round{Version: stream.Version, TaskHash: hash[:], Round: step, Step: step,
			Point: make([]float64, p.Mechanism.Dim), Mechanism: proto.CloneOf(p.Mechanism), Cohort: cohort, Minimum: p.Minimum,
			DeadlineMs: p.DeadlineMs, Trust: p.Trust, Loss: p.Loss}
		if err := manifest.Follows(&task, hash, round); err != nil {
			t.Errorf("the round that follows from the plan does not follow: %v", err)
		}
		config, err := manifest.MixerConfig(round)
		if err != nil {
			t.Errorf("a plan that passed has no mixer: %v", err)
		} else if mixer, err := shuffle.NewMixer(config); err != nil {
			t.Errorf("a plan that passed does not mix: %v", err)
		} else {
			mixer.Erase()
		}
		if _, err := manifest.Release(round, accounting.One, max(1, p.RoundsPerUser)); err != nil {
			t.Errorf("a plan that passed cannot be accounted for: %v", err)
		}
		if manifest.Deadline(round) < 0 {
			t.Errorf("a deadline of %v", manifest.Deadline(round))
		}
	})
}
