package isrl

import "testing"

// strong returns a federation in which the logarithms of strongly convex objectives decide, and no two
// numbers are alike: kappa = 400, epsilon^2 n^2 M = 2e5, ln(1/delta) = 11.5129255.
func strong() Federation {
	return Federation{Silos: 30, Available: 20, Records: 100, Dim: 50, Lipschitz: 2, Smoothness: 4, Convexity: 0.01,
		Diameter:  10,
		Deviation: 0.1, Gap: 10, Epsilon: 1, Delta: 1e-5}
}

// TestStronglyConvexRounds checks the rounds of strongly convex objectives, by the formulas that the paper
// prints.
func TestStronglyConvexRounds(t *testing.T) {
	f := strong()
	// Theorem D.1.2: (2 beta/mu) ln(beta D^2 mu M eps^2 n^2/(d L^2)) = 800 ln(4 * 100 * 0.01 * 2e5/(50 * 4)) = 800
	// ln 4000, above min{M n, M eps^2 n^2/d} = min{2000, 4000}.
	near(t, "D.1.2", minibatch{f}.rounds(), 6635.239712, tight)
	// Theorem H.1 at Q = 1e-3: 2 kappa ln(beta mu D^2/(L^2 d Q)) + M n = 800 ln(4/0.2) + 2000.
	near(t, "H.1", f.unbalancedRounds(1e-3), 4396.585819, tight)
	// Theorem F.1: sqrt(beta/mu) ln(Delta mu M eps^2 n^2/(L^2 d)) = 20 ln(10 * 0.01 * 2e5/(4 * 50)) = 20 ln 100;
	// and eps^2 n^2/(K d ln(1/delta)) = 10^4/(10 * 50 * 11.5129255).
	steps, batches := empirical{f}.rounds(10)
	near(t, "F.1", steps, 92.10340372, tight)
	near(t, "F.1's batches", batches, 1.737177928, tight)
	// Theorem G.1 at eps = 0.1, eps^2 n^2 N^2 = 9e4: (8 beta/mu) ln(beta D^2 mu eps^2 n^2 N^2/(d L^2)) = 3200 ln(4 *
	// 9e4/200) = 3200 ln 1800, above eps^2 n^2 N^2/M = 4500.
	f.Epsilon = 0.1
	near(t, "G.1", shuffling{f}.rounds(), 23985.73422, tight)
	// Convex, at the same: 4500; and (beta D/L) eps n N/sqrt(d) = 1000 * 300/sqrt(50) for beta = 200, below sqrt(n
	// M) = 44.7.
	f.Convexity = 0
	near(t, "G.1, convex", shuffling{f}.rounds(), 4500, tight)
	f.Smoothness = 200
	near(t, "G.1, convex and steep", shuffling{f}.rounds(), 42426.40687, tight)
}

// TestStronglyConvexBatches checks the batches of one pass, by Theorems E.1.2 and G.2: n/(sqrt(kappa) ln(mu
// Delta x)) with kappa = 4, mu Delta = 0.1 and n M/phi^2 = 2e5 the larger one of two.
func TestStronglyConvexBatches(t *testing.T) {
	f := strong()
	f.Smoothness = 0.04
	// x = eps^2 n^2 M/(L^2 d ln(1/delta)) = 2e5/2302.5851 = 86.858896
	near(t, "E.1.2", onePass{f}.batch(), 23.12994586, tight)
	near(t, "G.2", summed{f}.batch(), 9.694747117, tight) // x = eps^2 n^2 M^2/(L^2 d ln(1/delta)) = 1737.17793
}

// TestStronglyConvexEnvelopes checks beta of losses that are not smooth: Theorem D.2.2, mu M/(1/n + d
// ln(1/delta)/(eps^2 n^2)) = 0.2/(0.01 + 0.0575646273), and F.2, mu M eps^2 n^2/d = 2000/50.
func TestStronglyConvexEnvelopes(t *testing.T) {
	f := strong()
	near(t, "D.2.2", minibatch{f}.enveloped().Smoothness, 2.960128812, tight)
	near(t, "F.2", empirical{f}.enveloped().Smoothness, 40, tight)
}

// TestSteps checks the numbers of accelerated and of plain steps.
func TestSteps(t *testing.T) {
	f := strong()
	// max{2 beta, sqrt(2 V^2 R (R+1) (R+2)/(3 D^2))} = sqrt(2 * 30 * 1320/300) = sqrt 264 at V^2 = 30, R = 10; 2
	// beta at V^2 = 3.
	near(t, "v", accelerated{f, 30}.steepness(10), 16.24807681, tight)
	near(t, "v of little noise", accelerated{f, 3}.steepness(10), 8, 1e-12)
	// lambda = V/(D sqrt(R)) = 6/(10 * 3).
	near(t, "lambda", accelerated{f, 36}.regularization(9), 0.2, 1e-12)
	// min{1/(2 beta), ln(...)/(mu R)} (Theorem D.1.2): in few rounds the first.
	near(t, "eta", f.step(10, 0), 1./8, 1e-12)
	// V_X^2 = 4 L^2/(M K) + d sigma^2/M = 16/200 + 50 * 9/20 at K = 10, sigma = 3; the second alone if everybody
	// answers with everything.
	near(t, "variance", empirical{f}.variance(10, 3), 22.58, 1e-12)
	f.Silos = f.Available
	near(t, "variance of everything", empirical{f}.variance(100, 3), 22.5, 1e-12)
}
