package stage

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// killing runs two processes that share the rounds. The first one owns the attempts, because it is there first. The one
// that is chosen dies at a call, and another one takes its place a little later.
func killing(t *testing.T, p plan, owner bool, at string, after bool) (w *world, sent *wires, trace []string) {
	w, sent = newWorld(t, p), new(wires)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Minute)
	defer stop()
	process := func(victim bool, begin time.Duration) func(context.Context) {
		return func(ctx context.Context) {
			time.Sleep(begin)
			here := ""
			if victim {
				here = at
			}
			calls, lived := w.life(ctx, here, after, sent, w.shared(2, nil))
			if victim {
				trace = calls
			}
			if !lived && ctx.Err() == nil {
				time.Sleep(time.Second)
				w.life(ctx, "", false, sent, w.shared(2, nil))
			}
		}
	}
	w.run(ctx, process(owner, 0), process(!owner, time.Second))
	return w, sent, trace
}

// TestKillAtEveryCallOfShards kills the owner of the attempts, and the worker beside it, at each call of a healthy life,
// the call done or not. A round is burnt where the claim may stand and the batch does not, and nowhere else: a worker's
// death never burns one.
func TestKillAtEveryCallOfShards(t *testing.T) {
	p, all := plan{rounds: 1, cohort: 6, spares: 2}, false
	if longtest.Run(t, "the second round, and each call for the second and further time") {
		p.rounds, all = 2, true
	}
	for _, owner := range []bool{true, false} {
		var healthy []string
		synctest.Test(t, func(t *testing.T) { _, _, healthy = killing(t, p, owner, "never", false) })
		if !slices.ContainsFunc(healthy, func(c string) bool { return strings.HasPrefix(c, "swap part.") }) != owner {
			t.Fatalf("owner %t: %v", owner, healthy)
		}
		died := 0
		for _, at := range healthy {
			if !all && !strings.HasSuffix(at, "#1") {
				continue
			}
			read := strings.HasPrefix(at, "get") || strings.HasPrefix(at, "latest")
			for _, after := range []bool{false, true} {
				if after && read && !all {
					continue // a read that was done is as good as none
				}
				burnt := (strings.HasPrefix(at, "put claim.") && after) || (strings.HasPrefix(at, "put batch.") && !after)
				synctest.Test(t, func(t *testing.T) {
					w, sent, trace := killing(t, p, owner, at, after)
					sent.audit(t, w)
					if slices.Contains(trace, at) {
						died++
					}
					if real, void := w.audit(); real != int(p.rounds) || (void == 1) != burnt || void > 1 {
						t.Errorf("owner %t, crash at %s (done: %t): %d real, %d void batches", owner, at, after, real, void)
					}
				})
			}
		}
		t.Logf("owner %t: killed %d times; a healthy life makes %d calls", owner, died, len(healthy))
		if died < 20 {
			t.Errorf("owner %t: killed only %d times", owner, died)
		}
	}
}
