package runlearner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
)

// A pair is a list of two tasks.
type pair []many.Entry

func (p pair) Tasks() ([]many.Entry, []many.Fault, error) { return p, nil, nil }

// TestPanicOfOne: of two tasks of a process the learner of one panics while it begins. It is shown with the sentence,
// and goes on from its state folder, which the panic has not left open; the other one never notices.
func TestPanicOfOne(t *testing.T) {
	list := pair{{Name: "ads", Spec: runtest.Small(t, "name=ads")}, {Name: "churn", Spec: runtest.Small(t, "name=churn")}}
	var resumed atomic.Int64
	var none []int
	config := Config{Config: service.Config{Identity: runtest.Identity(t), StageKey: runtest.Identity(t).Public(),
		Logger: runtest.Discard(), Observer: service.Observer{Resumed: func(service.Progress) {
			if resumed.Add(1) == 2 { // the second task to begin
				none[len(none)+2]++
			}
		}}}, StateDir: t.TempDir(), Embedded: true, ReportBytes: 4 << 20, HTTP: runtest.Loopback(t)}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- RunMany(ctx, config, list, func(many.Entry) (bool, error) { return true, nil })
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	patience := time.After(2 * time.Minute)
	fell, well := false, false
	var last []many.Row
	for !well {
		select {
		case err := <-over:
			t.Fatalf("the process ended: %v", err)
		case <-patience:
			t.Fatalf("fell %t, both well %t: %+v", fell, well, last)
		case <-tick.C:
		}
		var now struct{ Tasks []many.Row }
		resp, err := http.Get("http://" + config.HTTP.Addr().String() + "/v1/tasks")
		if err != nil {
			continue
		}
		err = json.NewDecoder(resp.Body).Decode(&now)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		last = now.Tasks
		well = len(now.Tasks) == 2
		for _, row := range now.Tasks {
			fell = fell || row.State == many.Waiting && row.Wrong && strings.Contains(row.Line,
				"index out of range [#] with length #")
			well = well && row.State == many.Running && row.Doing == nil && row.Line == "Learning."
		}
		well = well && fell
	}
	if n := resumed.Load(); n != 3 {
		t.Errorf("%d starts, want one of the task that went on and two of the other", n)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
