package procs

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcessEnds(t *testing.T) {
	p := programs.Process(t, "version", programs.Learner, "version")
	if _, err := p.Wait(t.Context()); err == nil || p.Kill() || p.Interrupt() == nil || p.Terminate() == nil {
		t.Error("a process that was never started ends")
	}
	for life := 1; life <= 2; life++ {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit != (Exit{}) || p.Running() || p.Lives() != life || p.Kill() {
			t.Errorf("life %d: %v, %v, running %v", p.Lives(), exit, err, p.Running())
		}
		out, err := p.Stdout()
		if err != nil || !strings.HasPrefix(string(out), "panlearn ") {
			t.Errorf("standard output %q, %v", out, err)
		}
	}
	q := programs.Process(t, "usage", programs.Ingest, "nonsense")
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	exit, err := q.Wait(t.Context())
	log, readErr := os.ReadFile(q.Log())
	if err != nil || exit.Code != 2 || readErr != nil || !strings.Contains(string(log), "unknown command") {
		t.Errorf("%v, %v; log %q, %v", exit, err, log, readErr)
	}
}

// TestKilledAndFrozen: a server that is killed is gone when Kill returns, also when it is frozen, and leaves its ports
// for the next life.
func TestKilledAndFrozen(t *testing.T) {
	s := StartServer(t, programs, ServerOptions{Name: "frozen"})
	if err := s.Start(); err == nil {
		t.Error("a process that runs is started again")
	}
	for range 3 {
		if err := s.Freeze(); err != nil {
			t.Error(err)
		}
		if !s.Running() || !s.Kill() || s.Running() {
			t.Error("not killed")
		}
		if exit, err := s.Wait(t.Context()); err != nil || exit.Signal != syscall.SIGKILL {
			t.Errorf("%v, %v", exit, err)
		}
		if err := s.WaitHealthy(t.Context()); err == nil {
			t.Error("healthy after its end")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitHealthy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Freeze(); err != nil {
		t.Error(err)
	}
	if err := s.Thaw(); err != nil {
		t.Error(err)
	}
	if err := s.WaitHealthy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Interrupt(); err != nil {
		t.Error(err)
	}
	if exit, err := s.Wait(t.Context()); err != nil || exit.Signal == syscall.SIGKILL {
		t.Errorf("interrupted: %v, %v", exit, err)
	}
}

func TestNothingIsInherited(t *testing.T) {
	t.Setenv("PANLEARN_NATS", "nats://nowhere:1")
	for _, v := range environment("a home") {
		if strings.HasPrefix(v, "PANLEARN_") || (strings.HasPrefix(v, "HOME=") && v != "HOME=a home") {
			t.Errorf("inherited: %s", v)
		}
	}
}

func TestPortsLieBelowOutgoingConnections(t *testing.T) {
	ports, err := FreePorts(9)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if first := ephemerals(); first > lowestPort && (p < lowestPort || p >= first) {
			t.Errorf("port %d, outgoing connections begin at %d", p, first)
		}
		seen[p] = true
	}
	if len(seen) != 9 {
		t.Errorf("ports %v: want 9 different ones", ports)
	}
}

// TestWithin: a test gives up at its limit, before go test does, and its error names what it waited for.
func TestWithin(t *testing.T) {
	end, timed := t.Deadline()
	for _, limit := range []time.Duration{0, time.Second, 1000 * time.Hour} {
		at, ok := Within(t, limit).Deadline()
		if !ok || time.Until(at) > limit || timed && end.Sub(at) < grace {
			t.Errorf("limit %v: it ends at %v, go test at %v", limit, at, end)
		}
	}
	p := programs.Process(t, "waiting", programs.Ingest, "publish", "--nats", "nats://127.0.0.1:1", "--task", "x",
		"--nats-wait", "1h", "--data", os.DevNull)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(Within(t, 0)); err == nil || !strings.Contains(err.Error(), "the test gives up") {
		t.Errorf("waiting ended: %v", err)
	}
}
