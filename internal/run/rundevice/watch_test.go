package rundevice

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// open returns the progress in an open round that joined users joined from here.
func open(joined uint64, deadline time.Time) device.Progress {
	return device.Progress{Round: 3, Joined: joined, Cohort: 1000, Standing: device.Standing{Agreed: true, Open: true,
		Minimum:  500,
		Deadline: deadline, Charged: int(joined)}}
}

// ofSilo returns the progress in an open round that has the silo's report.
func ofSilo(deadline time.Time) device.Progress {
	p := open(1, deadline)
	p.Silo = true
	return p
}

// working returns the progress in an open round while the silo's report is being computed.
func working(deadline time.Time) device.Progress {
	p := ofSilo(deadline)
	p.Joined, p.Charged, p.Waiting, p.Leaves = 0, 0, 1, 102400*time.Millisecond
	return p
}

// TestWaits: each thing that a publisher can wait for has its words.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon, past := time.Now().Add(40*time.Second), time.Now().Add(-time.Second)
		agreed := device.Standing{Agreed: true}
		ended := open(5, soon)
		ended.Over = true
		yes := func() bool { return true }
		for want, w := range map[string]*Watch{
			"the task to be announced": {},
			"nothing: this run is over": {done: true,
				connected: func() bool { return false }},
			"the broker, to which there is no connection": {now: open(5, soon),
				connected: func() bool { return false }},
			"the clock: nobody is charged: this machine's clock is 24h0m0s ahead": {connected: yes,
				now: device.Progress{Standing: agreed, Ahead: 24 * time.Hour}},
			"the learner to announce round 1": {
				now: device.Progress{Standing: agreed}},
			"the stage to open round 3": {now: device.Progress{Round: 3,
				Standing: agreed}},
			"the helper to join round 3": {now: device.Progress{Round: 3,
				Standing: device.Standing{Agreed: true, Unjoined: true}}},
			"the learner to announce round 4": {now: device.Progress{Round: 3,
				Standing: device.Standing{Agreed: true, Closed: true}}},
			"a place in round 3": {now: open(0, soon)},
			"this silo's own report of round 3, which is worked out and leaves within 1m42s": {now: working(soon)},
			"rows on standard input": {now: open(0, soon), stream: true,
				pulling: true},
			"events that are posted":                         {now: open(0, soon), posts: true},
			"the outcome of the last rounds":                 {now: ended},
			"round 3, which has 1000 of 1000 users from her": {now: open(1000, soon)},
			"the outcome of round 3, which has 412 of 1000 users from here; it closes when 588 more come from any publisher, " +
				"or with at least 500 in all at its deadline in 40s": {now: open(412, soon), stream: true, pulling: true},
			"round 3, which has 1 of 1000 reports from here; it closes when 999 more come from other silos, or as soon as it has": {now: ofSilo(past), ended: true},
			"588 more come from any publisher, or as soon as it has at least 500 in all":                                          {now: open(412, past)},
		} {
			if w.connected == nil {
				w.connected = yes
			}
			if _, got, kind := w.Look(); !strings.Contains(got, want) || !strings.HasPrefix(got, kind) || kind == "" {
				t.Errorf("waits for %q (%q), want %q", got, kind, want)
			}
		}
		if told := (&Watch{now: ofSilo(past), ended: true}).tooFew(); told != "" {
			t.Errorf("a silo, which has one report in any round, is told %q", told)
		}
		if _, got, _ := new(Watch).Look(); !strings.HasPrefix(got, "the broker") {
			t.Errorf("before there is a connection it waits for %q", got)
		}
		counts, _, _ := (&Watch{read: 9, now: device.Progress{Round: 2, Standing: device.Standing{Charged: 4},
			Summary: device.Summary{Events: 4, Counted: 2, Uncounted: 1, Unused: 1, Refused: 1}}}).Look()
		if len(counts) != 8 || counts[3] != uint64(9) || counts[5] != uint64(6) || counts[7] != uint64(2) {
			t.Errorf("counts %v", counts)
		}
	})
}

// TestPatience ends what does not come on, and nothing else: no stream before its end, and no round before its deadline
// that has its minimum from here.
func TestPatience(t *testing.T) {
	rows := func(yield func(task.Row, error) bool) { yield(task.Row{}, nil) }
	for name, test := range map[string]struct {
		data  string
		read  bool // to the end
		at    func() device.Progress
		after time.Duration // 0: never
	}{
		"no task":                 {"file", false, func() device.Progress { return device.Progress{} }, time.Minute},
		"a stream that is silent": {"-", false, func() device.Progress { return device.Progress{} }, 0},
		"too few, no deadline":    {"-", true, func() device.Progress { return open(412, time.Time{}) }, time.Minute},
		"too few": {"file", true, func() device.Progress { return open(412, time.Now().Add(time.Hour)) },
			time.Minute},
		"enough at the deadline": {"file", true, func() device.Progress { return open(500, time.Now().Add(time.Hour)) },
			time.Hour + time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			c := Config{Data: test.data, Watch: new(Watch), Patience: time.Minute, StateDir: "devices"}
			c.Logger = slog.New(slog.NewTextHandler(&said, nil))
			ctx, stop := c.guard(t.Context())
			defer stop()
			if test.read {
				for range c.Watch.rows(rows) {
				}
			}
			now := test.at()
			c.Watch.progress(now)
			began := time.Now()
			time.Sleep(30 * time.Second)
			now.InFlight++ // a publish that is tried again
			c.Watch.progress(now)
			select {
			case <-ctx.Done():
			case <-time.After(24 * time.Hour):
			}
			var impatient *ImpatientError
			if ended := errors.As(context.Cause(ctx), &impatient); ended != (test.after > 0) {
				t.Fatalf("%s: %v", name, context.Cause(ctx))
			}
			if test.after == 0 {
				return
			}
			if got := time.Since(began); got < test.after || got > test.after+time.Second {
				t.Errorf("%s: ended after %v, want %v", name, got, test.after)
			}
			few := test.read && c.Watch.now.Joined < 500
			if strings.Count(said.String(), "the other 88 have to come from any publisher") != map[bool]int{true: 1}[few] {
				t.Errorf("%s: told of missing users: %s", name, said.String())
			}
			if text := impatient.Error(); strings.Contains(text, "learner finish") != few ||
				strings.Contains(text, "stay charged in --state") != (test.read) {
				t.Errorf("%s: %s", name, text)
			}
		})
	}
}

// TestOtherInput: the error about another file names what the folder belongs to, why, and the ways out.
func TestOtherInput(t *testing.T) {
	err := consent.Refuse("source", `"b.csv"`, "%q, as before", "a.csv")
	got := Config{StateDir: "devices"}.explained(err).Error()
	for _, want := range []string{`"b.csv"`, `"a.csv"`, "--state devices", "'day-*.csv'", "another --state folder",
		"events.key"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if other := consent.Refuse("seal", "none", "hpke"); (Config{StateDir: "devices"}).explained(other) != other {
		t.Error("another refusal is changed")
	}
}

// TestUnready checks that a gateway that stops for its clock is not ready, and gives the reason; so does one whose
// broker is older.
func TestUnready(t *testing.T) {
	since := time.Now().Add(-time.Hour)
	for want, p := range map[string]device.Progress{
		"": {}, "the disk is full": {Trouble: "the disk is full", Troubled: since, Ahead: time.Hour, AheadSince: since},
		"nobody is charged: this machine's clock is 24h0m0s ahead of the broker's": {Ahead: 24 * time.Hour,
			AheadSince: since},
		"the broker is older than round 7": {Older: 7, OlderSince: since},
	} {
		if cause, at := unready(&p); !strings.HasPrefix(cause, want) || (cause == "") != (want == "") || want != "" &&
			!at.Equal(since) {
			t.Errorf("%q since %v, want %q", cause, at, want)
		}
	}
}

// TestOverLacksNobody: a round that was given up when the task ended is not said to wait for more users.
func TestOverLacksNobody(t *testing.T) {
	var now device.Progress
	now.Open, now.Joined, now.Minimum, now.Charged = true, 13, 169, 13
	if told := (&Watch{now: now, ended: true}).tooFew(); told == "" {
		t.Error("a round that lacks users is not told of")
	}
	now.Over = true
	if told := (&Watch{now: now, ended: true}).tooFew(); told != "" {
		t.Errorf("of a task that has ended: %s", told)
	}
}

// TestEndedTaskHasTimeForOutcomes: a publisher of little patience waits after the task's end until the device has
// decided on a round that never closes.
func TestEndedTaskHasTimeForOutcomes(t *testing.T) {
	var now device.Progress
	now.Over, now.Charged = true, 13
	for ago, impatient := range map[time.Duration]bool{device.DefaultCloseWait + 5*time.Second: false, time.Hour: true} {
		w := &Watch{now: now, ended: true, moved: time.Now().Add(-ago)}
		if err := w.impatient(time.Second); (err != nil) != impatient {
			t.Errorf("%v after the end: %v", ago, err)
		}
	}
}
