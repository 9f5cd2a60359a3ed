package typescript

import (
	"strconv"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream"
)

// patient is a deadline with which a place is kept for 3 s: a sixteenth of a shorter one is no time for devices 300 ms
// away on a machine that does much else, and what they do not use looks like a flood.
const patient = "60s"

// TestFleetWithPlaces: more devices than a task has room for take part through a relay, 300 ms away, and one answer in
// twenty is lost. Each gets its outcome, the batches counted every device with the outcome counted, and at most 1 % of
// the charged were not counted.
func TestFleetWithPlaces(t *testing.T) {
	var d *deployment
	n := 150
	if longtest.Run(t, "a practical plan and 300 devices instead of 150") {
		d, n = deploy(t, 200, 45, 20, 4, patient, schedule.Practical), 300
	} else {
		d = deploy(t, 100, 50, 30, 2, patient, schedule.Proved)
	}
	fleet := d.fleet(n, 300, 0.05)
	d.start(fleet)
	lost := d.audit()
	if _, ended := d.look(name.End()); !ended {
		t.Error("the task has not ended")
	}
	users := uint64(0)
	for _, of := range d.batches() {
		users += of
	}
	if users == 0 || lost > int(users)/100 {
		t.Errorf("%d of %d were charged and not counted: want at most 1 %%", lost, users)
	}
	// Pages that are opened again after the end get the same outcome, and send nothing.
	_, before := d.said(fleet)
	d.start(fleet)
	if again := d.audit(); again != lost {
		t.Errorf("%d were charged and not counted, and %d after another start", lost, again)
	}
	_, after := d.said(fleet)
	for i, o := range before {
		if after[i].State != o.State || after[i].Round != o.Round {
			t.Errorf("device %d was told %+v, and later %+v", i, o, after[i])
		}
	}
}

// TestInteractive: the members of an interactive phase answer each of its rounds once, with a draw for each, and those who
// were too late wait for places that nobody leaves.
func TestInteractive(t *testing.T) {
	const rounds, cohort, n = 3, 30, 36
	d := deploy(t, cohort, 0, 20, rounds, patient, schedule.Proved, ", interactive: true, algorithm: pgd")
	fleet := d.fleet(n, 100, 0.05)
	d.start(fleet)
	if exit, err := fleet.Wait(d.ctx); err != nil || exit.Code != 0 {
		t.Fatalf("the devices: %v, %v", exit, err)
	}
	sent := map[uint64]uint64{} // devices by round
	for i := range n {
		ids, own := map[string]string{}, map[uint64]bool{}
		for _, b := range d.sent(i) {
			text, id := split(b)
			if was := ids[text+id]; was != "" && was != b {
				t.Errorf("device %d sent two reports of one message id", i)
			}
			ids[text+id] = b
			round, err := strconv.ParseUint(text, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			if !own[round] {
				own[round] = true
				sent[round]++
			}
		}
		if len(ids) > rounds { // no attempt was opened again
			t.Errorf("device %d sent %d reports in %d rounds", i, len(ids), rounds)
		}
	}
	batches := d.batches()
	for r := uint64(1); r <= rounds; r++ {
		if batches[r] != cohort || sent[r] < cohort || sent[r] > cohort+1 {
			t.Errorf("round %d: %d users, %d devices sent: want %d", r, batches[r], sent[r], cohort)
		}
	}
	_, outcomes := d.said(fleet)
	states := map[string]int{}
	for _, o := range outcomes {
		states[o.State]++
	}
	if len(outcomes) != n || states["counted"]+states["unknown"] < cohort || states["unknown"] > 3 {
		t.Errorf("%d devices were told %v", len(outcomes), states)
	}
	t.Logf("%v; %v users, %v devices sent", states, batches, sent)
}

// TestFleetKilled: devices that are killed while they join, send and wait, and are started again with their stores, draw
// once and are counted once; of the others at most one is charged and not counted.
func TestFleetKilled(t *testing.T) {
	d := deploy(t, 100, 50, 30, 2, patient, schedule.Proved)
	steady, killed := d.fleet(120, 200, 0.05), d.fleet(12, 300, 0.05)
	d.start(steady)
	lives := 0
	for _, most := range []int{1, 3, 6} {
		d.start(killed)
		d.until("devices are charged", func() bool {
			accepted, outcomes := d.said(killed)
			return len(accepted)+len(outcomes) >= most || !killed.Running()
		})
		if killed.Kill() {
			lives++
		}
	}
	if lives == 0 {
		t.Error("nobody was killed")
	}
	d.start(killed)
	if lost := d.audit(); lost > 12+1 {
		t.Errorf("%d were charged and not counted", lost)
	}
}

// TestLostOpen: the broker loses the Open of an attempt while its stage is gone. The next stage opens another attempt under
// the same number. Devices that were charged send the same draw to it, and know by the hash of the Open which attempt
// took their reports.
func TestLostOpen(t *testing.T) {
	d := deploy(t, 60, 60, 30, 1, "30s", schedule.Proved)
	first := d.await(name.Open(1, 1))
	fleet := d.fleet(60, 100, 0)
	d.start(fleet)
	d.until("devices are charged", func() bool {
		accepted, _ := d.said(fleet)
		return len(accepted) >= 10
	})
	d.stage.Kill()
	d.lose(name.Open(1, 1))
	d.start(d.stage)
	second := d.await(name.Open(1, 1))
	if stream.HashOf(first.Data) == stream.HashOf(second.Data) {
		t.Fatal("the same Open was put again")
	}
	if lost := d.audit(); lost > 0 {
		t.Errorf("%d were charged and not counted", lost)
	}
}
