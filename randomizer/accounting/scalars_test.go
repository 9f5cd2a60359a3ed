package accounting

import (
	"math"
	"testing"
)

// TestTheoremA_ReferenceScalars compares the five scalars and the tail mass with
// values of an independent implementation, margins included.
func TestTheoremA_ReferenceScalars(t *testing.T) {
	for _, want := range []struct {
		n      uint64
		p      float64
		lo, hi uint64
		tau    float64
		scalars
	}{
		{400, 0.5, 151, 250, 6.531819e-07, scalars{0.105908817, 0.0518742189, 0.101535084, 0.0606216838, 0.00218686624}},
		{5184, 0.5, 2416, 2769, 9.361961e-07, scalars{0.0278970493, 0.0037883666, 0.0278094362, 0.00396359288,
			4.38065722e-05}},
		{5184, 0.5, 2336, 2849, 9.984516e-13, scalars{0.0280298899, 0.00553659102, 0.0278454659, 0.00590543889,
			9.22119678e-05}},
		{26000, 0.5, 12606, 13395, 9.904310e-07, scalars{0.012414046, 0.000752477353, 0.0124062836, 0.000768002188,
			3.88121076e-06}},
		{26000, 0.5, 12425, 13576, 9.377829e-13, scalars{0.0124258789, 0.00109920532, 0.0124095072, 0.00113194874,
			8.18585512e-06}},
		{26000, 0.25, 6160, 6844, 9.649236e-07, scalars{0.0145082993, 0.00102955626, 0.0144958656, 0.00105442359,
			6.21683325e-06}},
		{26000, 0.25, 6006, 7003, 9.258687e-13, scalars{0.0146060638, 0.00151828321, 0.0145794874, 0.001571436,
			1.32882004e-05}},
		{220000, 0.4375, 95112, 97390, 9.823133e-07, scalars{0.00430193246, 9.05409867e-05, 0.00430160823, 9.11894596e-05,
			1.62120213e-07}},
		{220000, 0.4375, 94592, 97911, 9.877232e-13, scalars{0.00430414917, 0.000132061075, 0.00430346717, 0.000133425066,
			3.40999798e-07}},
		{4096, 0.75, 2935, 3207, 9.096449e-07, scalars{0.0374645179, 0.00683033556, 0.0372523206, 0.00725473013,
			0.000106098645}},
		{4096, 0.75, 2870, 3266, 8.501829e-13, scalars{0.0383198823, 0.0102705021, 0.0378549226, 0.0112004214,
			0.000232479825}},
	} {
		p := profileOf(t, want.n, want.p)
		found := false
		for _, l := range p.levels {
			if l.lo != want.lo || l.hi != want.hi {
				continue
			}
			found = true
			for _, f := range []struct {
				name      string
				got, want float64
			}{
				{"tau", l.tau, want.tau}, {"M1", l.M1, want.M1}, {"Theta1", l.Theta1, want.Theta1},
				{"mu1", l.Mu1, want.Mu1}, {"Theta2", l.Theta2, want.Theta2}, {"K", l.K, want.K},
			} {
				// Printed to nine digits; K also carries the margin's 2e-12 absolute.
				if math.Abs(f.got-f.want) > 2e-7*f.want+1e-12 {
					t.Errorf("N=%d p=%v window %d..%d: %s = %.10g, want %.10g", want.n, want.p, l.lo, l.hi, f.name, f.got, f.want)
				}
			}
		}
		if !found {
			t.Errorf("N=%d p=%v: no level with window %d..%d", want.n, want.p, want.lo, want.hi)
		}
	}
}

func profileOf(t *testing.T, trials uint64, p float64) *profile {
	t.Helper()
	k, err := checkNoise(trials, p)
	if err != nil {
		t.Fatal(err)
	}
	return newProfile(depth{binomial{n: int64(trials), k: k}, rungs})
}
