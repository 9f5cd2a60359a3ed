package rehearse

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
)

// TestManyPassesAreOffered: a plan reports what many passes would give, with less noise a round, where the task may
// have them, and warns of few users; a task without end, under a pan trust, of a proved plan or in many passes does not
// mention them.
func TestManyPassesAreOffered(t *testing.T) {
	const file = `
version: 1
name: few
events: {format: csv, header: true}
features: {columns: [{column: x, kind: numeric, min: -1, max: 1}, {column: z, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 20000}
`
	for _, c := range []struct {
		sets    []string
		offered bool
		few     string
	}{
		{nil, true, ""},
		{[]string{"schedule.users=100", "privacy.epsilon=0.5"}, true,
			"a constant may be the better model; want about 120 users"},
		{[]string{"schedule.interactive=true"}, false, ""},
		{[]string{"schedule.continuous=adaptive"}, false, ""},
		{[]string{"privacy.trust=pan"}, false, ""},
		{[]string{"schedule.plan=proved", "model.radius=5", "model.clip_norm=1"}, false, ""},
	} {
		spec, err := task.Parse([]byte(file), c.sets)
		if err != nil {
			t.Fatal(err)
		}
		job, err := run.NewJob(spec)
		if err != nil {
			t.Fatal(err)
		}
		got := ManyPassesOf(job)
		if (got != nil) != c.offered || got != nil && !(got.Rounds > 1 && got.NoiseRatio < 1 && got.NoiseRatio > 0.1) {
			t.Errorf("%v: %+v, offered %v", c.sets, got, c.offered)
		}
		var out strings.Builder
		if err := got.Print(&out); err != nil || strings.Contains(out.String(), "schedule.interactive=true") != c.offered {
			t.Errorf("%v: prints %q, %v", c.sets, out.String(), err)
		}
		if few := FewUsers(job); (few != "") != (c.few != "") || !strings.Contains(few, c.few) {
			t.Errorf("%v: says of few users %q, want %q", c.sets, few, c.few)
		}
	}
}
