package resque

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// oracleFunc is an oracle in a test.
type oracleFunc func(ctx context.Context, dst, points []float64, random *rand.Rand) error

func (f oracleFunc) Query(ctx context.Context, dst, points []float64, random *rand.Rand) error {
	return f(ctx, dst, points, random)
}

// noisy answers a point with itself plus noise.
func noisy(_ context.Context, dst, points []float64, random *rand.Rand) error {
	for i, v := range points {
		dst[i] = v + random.NormFloat64()
	}
	return nil
}

// read returns all that a call hands out.
func read(t testing.TB, p *pool, centre []float64, rho float64, n int64) (out []float64) {
	t.Helper()
	c, err := p.open(context.Background(), centre, rho, n)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range n {
		xi, g, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, xi...), g...)
	}
	return out
}

// What a call hands out is the same for any number of workers, wherever it ends, and another call's is other.
func TestCallsDoNotDependOnWorkers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dim, n := rapid.IntRange(1, 4).Draw(rt, "dim"), rapid.Int64Range(1, 9*chunk).Draw(rt, "n")
		centre := make([]float64, dim)
		seed := [32]byte{byte(rapid.IntRange(0, 255).Draw(rt, "seed"))}
		var want [2][]float64
		for _, workers := range []int{0, 1, 2, 8} {
			p := &pool{oracle: oracleFunc(noisy), dim: dim, workers: workers, seed: seed}
			for i := range want {
				p.round()
				got := read(t, p, centre, .5, n)
				if want[i] == nil {
					want[i] = got
				}
				if !slices.Equal(got, want[i]) {
					rt.Errorf("%d workers read something else", workers)
				}
			}
			if p.depth != 2 || p.queries != 2*n || p.mostInRound != n {
				rt.Errorf("%d rounds, %d queries, at most %d: want 2, %d and %d", p.depth, p.queries, p.mostInRound, 2*n, n)
			}
		}
		if slices.Equal(want[0], want[1]) {
			rt.Error("two calls read the same")
		}
	})
}

// A call of fewer chunks reads the beginning of a longer one, and chunks have nothing in common.
func TestSlotsAreKeyed(t *testing.T) {
	ask := func(n int64) []float64 {
		return read(t, &pool{oracle: oracleFunc(noisy), dim: 1, workers: 3, seed: [32]byte{1}}, []float64{0}, 1, n)
	}
	long, short := ask(5*chunk), ask(3*chunk)
	if !slices.Equal(long[:len(short)], short) {
		t.Error("a shorter call reads something else")
	}
	seen := map[float64]bool{}
	for _, v := range long {
		if seen[v] {
			t.Errorf("%v is drawn twice", v)
		}
		seen[v] = true
	}
}

// Answers that arrive out of order are handed out in order: of two that are asked, the first always waits for the
// second.
func TestOutOfOrder(t *testing.T) {
	const n = 12 * chunk
	want := read(t, &pool{oracle: oracleFunc(noisy), dim: 2}, []float64{0, 1}, 1, n)
	for _, workers := range []int{2, 8} {
		var arrived, turned atomic.Int64
		finished := make([]chan struct{}, 12)
		for i := range finished {
			finished[i] = make(chan struct{})
		}
		late := func(ctx context.Context, dst, points []float64, random *rand.Rand) error {
			i := arrived.Add(1) - 1
			defer close(finished[i])
			if i%2 == 0 {
				<-finished[i+1]
				turned.Add(1)
			}
			return noisy(ctx, dst, points, random)
		}
		if got := read(t, &pool{oracle: oracleFunc(late), dim: 2, workers: workers}, []float64{0, 1}, 1,
			n); !slices.Equal(got, want) || turned.Load() != 6 {
			t.Errorf("%d workers: other answers, or %d turned around, want 6", workers, turned.Load())
		}
	}
}

// More than four chunks a worker are never asked ahead of the reader.
func TestMemoryIsBounded(t *testing.T) {
	var asked atomic.Int64
	count := func(ctx context.Context, dst, points []float64, random *rand.Rand) error {
		asked.Add(1)
		return noisy(ctx, dst, points, random)
	}
	p := &pool{oracle: oracleFunc(count), dim: 1, workers: 2}
	c, err := p.open(context.Background(), []float64{0}, 1, 100*chunk)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for i := range int64(100 * chunk) {
		if _, _, err := c.next(); err != nil {
			t.Fatal(err)
		}
		if ahead := asked.Load() - i/chunk; ahead > 8 {
			t.Fatalf("%d chunks ahead of slot %d", ahead, i)
		}
	}
}

// The goroutine that reads is one of the workers: beside it there are one fewer.
func TestReaderIsAWorker(t *testing.T) {
	before, same := runtime.NumGoroutine(), 0
	for tick := time.NewTicker(time.Millisecond); same < 50; <-tick.C { // those of other tests that end are gone then
		if n := runtime.NumGoroutine(); n == before {
			same++
		} else {
			before, same = n, 0
		}
	}
	for _, workers := range []int{0, 1, 2, 5} {
		var most atomic.Int64
		count := func(ctx context.Context, dst, points []float64, random *rand.Rand) error {
			for now, n := most.Load(), int64(runtime.NumGoroutine()-before); n > now && !most.CompareAndSwap(now, n); now = most.Load() {
			}
			return noisy(ctx, dst, points, random)
		}
		read(t, &pool{oracle: oracleFunc(count), dim: 1, workers: workers}, []float64{0}, 1, 100*chunk)
		if want := int64(max(workers, 1) - 1); most.Load() != want {
			t.Errorf("%d workers: %d goroutines beside the reader, want %d", workers, most.Load(), want)
		}
	}
}

// Errors of the oracle, answers that are not finite, and an end of the context stop a run; nothing goes on (TestMain).
func TestErrorsStop(t *testing.T) {
	broken := errors.New("no answer")
	for _, workers := range []int{1, 2, 8} {
		var asked atomic.Int64
		for name, c := range map[string]struct {
			oracle oracleFunc
			want   string
		}{
			"error": {func(ctx context.Context, dst, points []float64, random *rand.Rand) error {
				if asked.Add(1) > 20 {
					return broken
				}
				return noisy(ctx, dst, points, random)
			}, "no answer"},
			"not finite": {func(ctx context.Context, dst, points []float64, random *rand.Rand) error {
				dst[len(dst)/2] = math.Inf(1)
				return nil
			}, "not finite"},
		} {
			if _, err := Minimize(t.Context(), Problem{c.oracle, 2, 1, 1}, Config{Gap: .1, Workers: workers}); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %d workers: %v", name, workers, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var once sync.Once
		stuck := func(ctx context.Context, _, _ []float64, _ *rand.Rand) error {
			once.Do(cancel)
			<-ctx.Done()
			return ctx.Err()
		}
		if _, err := Minimize(ctx, Problem{oracleFunc(stuck), 2, 1, 1}, Config{Gap: .1, Workers: workers}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("cancelled, %d workers: %v", workers, err)
		}
	}
	if _, err := (&pool{dim: 1}).open(t.Context(), nil, 1, maxCall+1); err == nil {
		t.Error("a call without end is not refused")
	}
}

// The bytes of a model do not depend on the number of workers, also where answers take long and come as they like.
func TestModelDoesNotDependOnWorkers(t *testing.T) {
	rows := deviations(t, 100, 5)
	quick, err := NewRows(convex.Absolute{}, rows, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	var arrived atomic.Int64
	slow := oracleFunc(func(ctx context.Context, dst, points []float64, random *rand.Rand) error {
		for range arrived.Add(7919) % 64 {
			runtime.Gosched()
		}
		return quick.Query(ctx, dst, points, random)
	})
	for algorithm, slack := range map[string]float64{FixedLambda: 8, BallAccel: 2000} {
		for _, solver := range []string{EpochSGD, ACSA} {
			var want Result
			for _, workers := range []int{1, 2, 8} {
				for _, oracle := range []Oracle{quick, slow} {
					got, err := Minimize(t.Context(), Problem{oracle, 5, 1, 1}, Config{Algorithm: algorithm, Solver: solver, Gap: .2,
						Workers: workers, Slack: slack, Seed: [32]byte{2}})
					if err != nil {
						t.Fatal(err)
					}
					if want.Model == nil {
						want = got
						t.Logf("%s, %s: %d rounds, %d queries", algorithm, solver, got.Depth, got.Queries)
					}
					if !slices.Equal(got.Model, want.Model) || got.Depth != want.Depth || got.Queries != want.Queries {
						t.Errorf("%s, %s: %d workers have another result", algorithm, solver, workers)
					}
				}
			}
		}
	}
}
