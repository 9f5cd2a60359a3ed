package source

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// TestPublicData: the shipped tasks read the public data sets whole: every row is valid, and the counts are
// those that are published.
func TestPublicData(t *testing.T) {
	folder := dataFolder(t)
	if folder == "" {
		return
	}
	for _, c := range []struct {
		task, data     string
		rows, positive int
	}{
		{"a9a", "a9a/a9a.gz", 32561, 7841},
		{"a9a", "a9a/a9a.t.gz", 16281, 3846},
		{"adult", "adult/adult.data.gz", 32561, 7841},
		{"adult", "adult/adult.test.gz", 16281, 3846}, // and a first line that is none
		{"bike", "bike_sharing/hour.csv.gz", 17379, -1},
		{"mnist", "mnist/train-images-idx3-ubyte.gz,mnist/train-labels-idx1-ubyte.gz", 60000, 6742 + 6131 + 5421 + 6265 +
			5949},
		{"mnist", "mnist/t10k-images-idx3-ubyte.gz,mnist/t10k-labels-idx1-ubyte.gz", 10000, 1135 + 1010 + 892 + 1028 + 1009},
	} {
		t.Run(c.task+"/"+filepath.Base(c.data), func(t *testing.T) {
			if c.rows > 50000 && !longtest.Run(t, "all images of MNIST") {
				return
			}
			m := shipped(t, c.task)
			var paths []string
			for _, p := range strings.Split(c.data, ",") {
				paths = append(paths, filepath.Join(folder, p))
			}
			r, err := Open(strings.Join(paths, ","), m)
			if err != nil {
				t.Fatal(err)
			}
			var e convex.Example
			var rows, positive int
			var longest float64
			for row, err := range r.All() {
				if err == nil {
					err = m.Map(row, &e)
				}
				if strings.HasSuffix(c.data, "adult.test.gz") && row.Line == 1 {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				rows++
				if e.Label > 0 {
					positive++
				}
				longest = max(longest, e.Norm())
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if rows != c.rows || (c.positive >= 0 && positive != c.positive) {
				t.Errorf("%d rows, %d positive; want %d, %d", rows, positive, c.rows, c.positive)
			}
			if longest > m.Bound() || (longest > m.Bound()*(1-1e-9)) != (c.task == "a9a") {
				t.Errorf("longest vector %v, bound %v", longest, m.Bound())
			}
		})
	}
}

// TestTargetUnits: the mean of the bike counts comes back in the units of the data.
func TestTargetUnits(t *testing.T) {
	folder := dataFolder(t)
	if folder == "" {
		return
	}
	m := shipped(t, "bike")
	r, err := Open(filepath.Join(folder, "bike_sharing", "hour.csv.gz"), m)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var e convex.Example
	var sum, n float64
	for row, err := range r.All() {
		if err != nil || m.Map(row, &e) != nil {
			t.Fatalf("row %d is invalid", row.Number)
		}
		sum, n = sum+m.Target(e.Label), n+1
	}
	if mean := sum / n; mean < 189.46 || mean > 189.47 {
		t.Errorf("mean count %v, want 189.463", mean)
	}
}

func shipped(t testing.TB, name string) *task.FeatureMap {
	t.Helper()
	s, err := task.Load(filepath.Join("..", "..", "..", "deploy", "tasks", name+".yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// BenchmarkRead reads and maps a9a.
func BenchmarkRead(b *testing.B) {
	folder := dataFolder(b)
	if folder == "" {
		return
	}
	m := shipped(b, "a9a")
	b.ReportAllocs()
	var e convex.Example
	var rows int
	for b.Loop() {
		r, err := Open(filepath.Join(folder, "a9a", "a9a.gz"), m)
		if err != nil {
			b.Fatal(err)
		}
		for row, err := range r.All() {
			if err != nil || m.Map(row, &e) != nil {
				b.Fatal("invalid row")
			}
			rows++
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
