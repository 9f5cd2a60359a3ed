package runadmin

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/stream"
)

// TestProvisionSaysHowManyFit: where the stream of reports does not hold four cohorts, the administrator reads how many
// messages of one attempt it does.
func TestProvisionSaysHowManyFit(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int64
		want  string
	}{"enough": {0, ""}, "little": {1 << 20, "fits="}} {
		task := stream.Task(name)
		at, _ := listening(t, task+"-other")
		var log bytes.Buffer
		spec := runtest.Spec(t, "quickstart", "schedule.users=20000")
		list, err := Provision(t.Context(), Config{Task: task, Spec: spec, ReportBytes: test.bytes, Replicas: 1,
			Broker: run.Broker{ConnectConfig: at, Wait: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(log.String(), "four_cohorts"); said != (test.want != "") ||
			!strings.Contains(log.String(), test.want) {
			t.Errorf("%s: %s", name, log.String())
		}
		if last := list[len(list)-1]; last.PerAttempt == 0 || list[0].PerAttempt != 0 {
			t.Errorf("%s: %+v", name, list)
		}
	}
}
