package quickstart

import (
	"context"
	"encoding/json"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// guests runs a quickstart that keeps a place until its deadline, has come come to it, and returns its report.
func guests(t *testing.T, deadline string, come func(context.Context, net.Listener)) Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, reports, ended := runtest.Loopback(t), make(chan Report, 1), make(chan error, 1)
	job := runtest.Job(t, runtest.Small(t, "schedule.deadline="+deadline))
	go func() {
		_, err := Run(ctx, Config{Job: job, Dir: t.TempDir(), Logger: runtest.Discard(), HTTP: at, Relay: true, Guests: 1,
			Done: func(r Report) error { reports <- r; return nil }})
		ended <- err
	}()
	come(ctx, at)
	select {
	case r := <-reports:
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return r
	case err := <-ended:
		t.Fatalf("the quickstart ended: %v", err)
	}
	return Report{}
}

// TestGuest: the last round of a quickstart keeps a place, and waits for it. A device that pins what the page says takes
// it, over the relay beside the page: it is counted, and so is everybody else.
func TestGuest(t *testing.T) {
	r := guests(t, "10m", func(ctx context.Context, at net.Listener) {
		var now struct{ Round, Users, Cohort, Minimum uint64 }
		for tick := time.Tick(20 * time.Millisecond); now.Round < 3 || now.Users < now.Cohort-1; <-tick {
			if err := json.Unmarshal([]byte(runtest.Fetch(t, at, "/status")), &now); err != nil {
				t.Fatal(err)
			}
		}
		if page := runtest.Fetch(t, at, "/"); !strings.Contains(page, `<a href="/device">Take part from this browser</a>`) {
			t.Error("the live page does not invite")
		}
		pin := regexp.MustCompile(`data-pin="([0-9a-f]{64})"`).FindStringSubmatch(runtest.Fetch(t, at, "/device"))
		if pin == nil {
			t.Fatal("the page pins no task")
		}
		client, err := relayclient.New(relayclient.Config{URL: "http://" + at.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		d, err := device.Open(ctx, device.Config{Task: "quickstart", Transport: client, Folder: t.TempDir(), Pin: pin[1]})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ticket, err := d.Submit(ctx, "a guest", device.EventOf(`{"x0": 0.5, "y": 1}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := ticket.Accepted(ctx); err != nil {
			t.Fatal(err)
		}
		outcome, err := ticket.Outcome(ctx)
		if err != nil || outcome.String() != "counted in round 3" {
			t.Errorf("the guest was told %v, %v", outcome, err)
		}
	})
	if r.Guests != 1 || r.Accepted != 607-7 || r.Spare != 0 || len(r.Rejected) != 0 {
		t.Errorf("%d guests, %d accepted, %d to spare, rejected %v", r.Guests, r.Accepted, r.Spare, r.Rejected)
	}
}

// TestNoGuest: where nobody comes the round ends at its deadline, without the place that was kept.
func TestNoGuest(t *testing.T) {
	r := guests(t, "1s", func(context.Context, net.Listener) {})
	if r.Guests != 0 || r.Rounds != 3 || len(r.Rejected) != 0 {
		t.Errorf("%d guests, %d rounds, rejected %v", r.Guests, r.Rounds, r.Rejected)
	}
}

// TestWhoIsInvited: a plan that asks everybody again has no place for somebody who looks in.
func TestWhoIsInvited(t *testing.T) {
	if !Invites(runtest.Job(t, runtest.Small(t))) || Invites(runtest.Job(t, runtest.Small(t, "model.radius=5",
		"schedule.algorithm=pgd", "schedule.interactive=true"))) {
		t.Error("want guests in plans of one answer each, and in no others")
	}
}
