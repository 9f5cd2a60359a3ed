package rehearse

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSortedRows checks that rows sorted by their label make a bad model in their order, and a model within the
// spread of mixed rows where all of them are shuffled; a simulation that mixes them itself warns that they have an
// order.
func TestSortedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var rows []string
	for range 4000 {
		x := [2]float64{2*r.Float64() - 1, 2*r.Float64() - 1}
		y := "-1"
		if 1/(1+math.Exp(-4*(x[0]-x[1]))) > r.Float64() {
			y = "1"
		}
		rows = append(rows, fmt.Sprintf("%s 1:%v 2:%v\n", y, x[0], x[1]))
	}
	job := jobOf(t, "schedule.plan=practical", "schedule.users=3000", "model={loss: logistic}", "privacy.epsilon=8")
	losses := func(order Order, rows []string) (mean, sd float64, said string) {
		file := filepath.Join(t.TempDir(), "events.libsvm")
		if err := os.WriteFile(file, []byte(strings.Join(rows, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		var told strings.Builder
		s, err := Load(Config{Job: job, Order: order}, Data{Path: file, Holdout: 4}, &told)
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.Run(t.Context(), io.Discard, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		return *report.Mean.TestLoss, *report.SD.TestLoss, told.String()
	}
	if _, _, said := losses(Order{}, rows); said != "" {
		t.Errorf("of rows in random order it says %q", said)
	}
	sorted := slices.Sorted(slices.Values(rows))
	mixed, spread, said := losses(Order{}, sorted) // by the seed
	if !strings.Contains(said, "come in an order") {
		t.Errorf("of sorted rows it says %q", said)
	}
	bad, _, _ := losses(Order{InOrder: true}, sorted)
	again, other, _ := losses(Order{InOrder: true, Shuffle: len(rows)}, sorted)
	t.Logf("loss %.4f (sd %.4f), sorted %.4f, shuffled %.4f (sd %.4f)", mixed, spread, bad, again, other)
	// Means of four, six of their standard deviations apart.
	if most := 6 * math.Hypot(spread, other) / 2; math.Abs(again-mixed) > most || bad-mixed < 2*most {
		t.Errorf("loss %v, sorted %v, shuffled %v: want the last within %v of the first", mixed, bad, again, most)
	}
}
