package consent

import (
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/wire"
)

// A person's mean gradient is clipped to the declared share of the clip norm, which the mechanism's norm has to be
// then.
func TestPeopleAreClippedToTheRadius(t *testing.T) {
	spec, err := task.Parse([]byte(`
version: 1
name: demo
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 2}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	loss, err := spec.Loss()
	if err != nil {
		t.Fatal(err)
	}
	for items, want := range map[int]float64{0: 2, 16: 0.5} {
		if items > 0 {
			spec.Privacy.Unit, spec.User = task.UnitUser, &task.User{Column: "who", Items: items}
		} else {
			spec.Privacy.Unit, spec.User = "", nil
		}
		a := Agreement{Spec: spec, Features: features, Loss: loss}
		c, norm, err := a.reports(&wire.Phase{})
		if err != nil || norm != want || c.ClipNorm != 2 || c.Norm() != want {
			t.Errorf("%d items: norm %v of %+v, %v; want %v", items, norm, c, err, want)
		}
	}
}
