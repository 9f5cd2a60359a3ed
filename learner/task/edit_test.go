package task_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// TestEditKeepsComments: every shipped task takes keys that it has, and keys that it has not, and keeps its
// comments.
func TestEditKeepsComments(t *testing.T) {
	files, err := filepath.Glob("../../deploy/tasks/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rounds := 3
		if strings.Contains(string(data), "continuous: adaptive") {
			rounds = 0 // which never end
		}
		sets := []string{"privacy.epsilon=0.25", "model.clip_norm=0.5", fmt.Sprintf("schedule.rounds.max=%d", rounds),
			"norm_bound=0.125"}
		if filepath.Base(file) == "adult.yaml" { // a path through a list
			sets = append(sets, "features.columns.0.max=100",
				`features.columns.2={"column":"education-num","kind":"hats","knots":[1,9,16]}`)
		}
		if !strings.Contains(string(data), "crosses:") {
			sets = append(sets, "features.crosses=[]")
		}
		out, err := task.Edit(data, sets, "one line\nanother")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if !strings.HasPrefix(string(out), "# one line\n# another\n") {
			t.Errorf("%s begins with %.40q", file, out)
		}
		for line := range strings.Lines(string(data)) {
			_, comment, found := strings.Cut(line, "# ")
			if found && !strings.Contains(string(out), strings.TrimSpace(comment)) {
				t.Errorf("%s lost the comment %q", file, strings.TrimSpace(comment))
			}
		}
		s, err := task.Parse(out, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if s.Privacy.Epsilon != 0.25 || s.Model.ClipNorm != 0.5 || s.Schedule.Rounds.Max != rounds || s.NormBound != 0.125 {
			t.Errorf("%s: not all overrides are in the file:\n%s", file, out)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	data, err := os.ReadFile("../../deploy/tasks/adult.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"privacy.epsilon=-1", "features.columns.99.max=99", "features.columns.0=9",
		"nonsense=1"} {
		if out, err := task.Edit(data, []string{set}, ""); err == nil {
			t.Errorf("%s: written as\n%s", set, out)
		}
	}
}
