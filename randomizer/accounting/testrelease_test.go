package accounting

import (
	"math"
	"testing"
)

// concentrated returns the request of a filter of c points at radius 1 of scores in parts of 1/fine, and S_U for equal
// radii, or for a filter of twice the score's.
func concentrated(c, fine int64, eps float64, rounds int, twice bool) ScoreRequest {
	n, unit := float64(c), float64(c*fine) // steps of 1/(c fine), so that the sensitivity 2(c-1)/c is whole
	return ScoreRequest{
		Budget: Budget{Epsilon: eps, Delta: 1e-6}, Rounds: rounds, Failure: 1e-3,
		Sensitivity: 2 * (c - 1) * fine, Most: c * c * fine, Least: (c/2+2)*c*fine + 1,
		Apart: func(full int64) float64 {
			u := float64(full) / unit
			if twice {
				return 2 * 2 * ((n-1)/(u-n/2) + 1) / u
			}
			return 2 * ((n-1)/(u-n/2) + 1) / (2*u - n)
		},
	}
}

// TestCalibrateTest checks that on a fine grid of scores the calibration agrees with that of a continuous Laplace law.
func TestCalibrateTest(t *testing.T) {
	for _, c := range []struct {
		eps   float64
		c     int64
		twice bool
		e1    float64 // and U, Theta, S_U: not given, 0
		full  float64
		theta float64
		apart float64
		sigma float64

		digits float64 // to which sigma is known
	}{
		{1, 200, true, 0.64, 139.874104, 180.676453, 0.171317, 1.876714, 1e-6}, {1, 200, false, 0.70, 0, 0, 0, 1.563751,
			1e-6},
		{4, 64, true, 0, 0, 0, 0, 1.108037, 1e-6}, {4, 64, false, 0, 0, 0, 0, 0.823131, 1e-6},
		{8, 40, true, 0, 0, 0, 0, 0.730731, 1e-6}, {8, 40, false, 0, 0, 0, 0, 0.503190, 1e-6},
		{1, 164, true, 0, 0, 0, 0, 3.343, 5e-4}, {1, 164, false, 0, 0, 0, 0, 3.152, 5e-4}, {1, 3210, true, 0, 0, 0, 0, 0.0224,
			5e-3}, {1, 3210, false, 0, 0, 0, 0, 0.0121, 5e-3},
		{4, 48, true, 0, 0, 0, 0, 2.214, 5e-4}, {4, 48, false, 0, 0, 0, 0, 1.866, 5e-4},
		{8, 28, true, 0, 0, 0, 0, 1.536, 5e-4}, {8, 28, false, 0, 0, 0, 0, 1.189, 5e-4},
	} {
		fine := int64(1<<21) / c.c
		q := concentrated(c.c, fine, c.eps, 1, c.twice)
		got, sigma, err := CalibrateTest(q)
		if err != nil {
			t.Fatal(err)
		}
		unit := float64(c.c * fine)
		near := func(name string, got, want, tolerance float64) {
			if want != 0 && math.Abs(got/want-1) > tolerance {
				t.Errorf("%+v: %s %v, want %v", c, name, got, want)
			}
		}
		near("e1", got.Epsilon(), c.e1, 1e-6)
		near("U", float64(got.Full)/unit, c.full, 1e-6)
		near("Theta", float64(got.Threshold)/unit, c.theta, 1e-6)
		near("S_U", q.Apart(got.Full), c.apart, 5e-6)
		near("sigma", sigma, c.sigma, c.digits)
		near("what slips", got.Slip(), 1e-6, 2e-5)
		near("halts", got.halt(q.Most), 1e-3, 2e-5)
		release, err := GaussianCurve(q.Apart(got.Full) / sigma)
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Delta(c.eps, release); d > 1e-6*(1+1e-12) || d < 1e-6*(1-1e-6) {
			t.Errorf("%+v: delta %v", c, d)
		}
		release, err = GaussianCurve(q.Apart(got.Full) / sigma * 1.02)
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Profile(c.eps, release); d > 1e-6*(1+1e-12) {
			t.Errorf("%+v: with two percent less noise the profile is %v", c, d)
		}
	}
}

// smallest returns the smallest even number of points for which a calibration finds room.
func smallest(c int64, fails func(c int64) error) int64 {
	for ; fails(c) != nil; c += 2 {
	}
	return c
}

// TestCalibrationEnds: a request that no tail can meet is refused, and the search for it ends.
func TestCalibrationEnds(t *testing.T) {
	for _, c := range []struct {
		failure float64
		rounds  int
		delta   float64
	}{{1e-305, 1, 1e-6}, {1e-289, 1 << 20, 1e-6}, {1e-3, 1, 1e-295}} {
		q := ScoreRequest{Budget: Budget{Epsilon: 1, Delta: c.delta}, Rounds: c.rounds, Failure: c.failure, Sensitivity: 2,
			Most: 1 << 40, Least: 1, Apart: func(int64) float64 { return 1 }}
		if _, _, err := CalibrateTest(q); err == nil {
			t.Errorf("%+v: a test", c)
		}
		if _, _, err := CalibrateSharedTest(q); err == nil {
			t.Errorf("%+v: a test of rounds", c)
		}
	}
}

// TestLeastPoints: from how many points on a test can be made, in one round and in many.
func TestLeastPoints(t *testing.T) {
	const fine = 64
	for _, c := range []struct {
		eps    float64
		one    int64
		shared [3]int64 // in 1, 20 and 100 rounds
		noise  float64  // K sigma/sqrt(T) at ten times the minimum of 20 rounds
	}{{1, 82, [3]int64{314, 354, 376}, 65.9}, {4, 24, [3]int64{82, 92, 96}, 17.9}, {8, 14, [3]int64{42, 48, 50}, 9.4}} {
		if got := smallest(c.one-10, func(n int64) error {
			_, _, err := CalibrateTest(concentrated(n, fine, c.eps, 1, true))
			return err
		}); got != c.one {
			t.Errorf("epsilon %v: %d points, want %d", c.eps, got, c.one)
		}
		for i, rounds := range []int{1, 20, 100} {
			if got := smallest(c.shared[i]-10, func(n int64) error {
				_, _, err := CalibrateSharedTest(concentrated(n, fine, c.eps, rounds, false))
				return err
			}); got != c.shared[i] {
				t.Errorf("epsilon %v, %d rounds: %d points, want %d", c.eps, rounds, got, c.shared[i])
			}
		}
		k := 10 * c.shared[1]
		q := concentrated(k, fine, c.eps, 20, false)
		got, sigma, err := CalibrateSharedTest(q)
		if err != nil || math.Abs(sigma*float64(k)/math.Sqrt(20)/c.noise-1) > 5e-3 {
			t.Errorf("epsilon %v: %v, want %v: %v", c.eps, sigma*float64(k)/math.Sqrt(20), c.noise, err)
		}
		release, err := GaussianCurve(q.Apart(got.Full) / sigma * math.Sqrt(20))
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Delta(c.eps, release); d > 1e-6*(1+1e-12) || d < 1e-6*(1-1e-5) {
			t.Errorf("epsilon %v: delta %v", c.eps, d)
		}
	}
}

// halt returns the probability that a score does not pass.
func (t ScoreTest) halt(score int64) float64 { return t.Noise.Tail(score - t.Threshold + 1) }
