package isrl

import "math"

// onePass is Theorem 3.1 for a federation: accelerated steps in which each record is in one round.
type onePass struct{ Federation }

// noise returns sigma of Theorem 3.1 (E.1), in which no record is in two batches: 32 L^2
// ln(1.25/delta)/(epsilon^2 K^2), by zero-concentrated privacy.
func (f onePass) noise(batch float64) float64 {
	return f.Lipschitz * math.Sqrt(32*math.Log(1.25/f.Delta)) / (f.Epsilon * batch)
}

// conditions returns the premises of its privacy.
func (f onePass) conditions(batch float64) []condition {
	return []condition{
		atMost("epsilon <= 8 ln(1/delta)", f.Epsilon, 8*f.logDelta()),
		atMost("K <= n", batch, f.Records),
	}
}

// batch returns K of Theorem 3.1, within [1, n] and not rounded; R = floor(n/K).
//
//	convex          (L/(beta D))^(2/5) n^(3/5) (d ln(1/delta))^(1/5) / (epsilon^(2/5) M^(1/5))
//	strongly convex n / (sqrt(kappa) ln(mu Delta min{epsilon^2 n^2 M/(L^2 d ln(1/delta)), n M/phi^2}))
//
// Doubt: the logarithm can be negative, where a rate is vacuous; all records are one batch then.
func (f onePass) batch() float64 {
	if f.Convexity > 0 {
		return f.strongBatch(f.signal() / (f.Lipschitz * f.Lipschitz * f.Dim * f.logDelta()))
	}
	k := math.Pow(f.Lipschitz/(f.Smoothness*f.Diameter), 0.4) * math.Pow(f.Records, 0.6) *
		math.Pow(f.Dim*f.logDelta(), 0.2) / (math.Pow(f.Epsilon, 0.4) * math.Pow(f.Available, 0.2))
	return f.withinRecords(k)
}

func (f Federation) strongBatch(signal float64) float64 {
	log := math.Log(f.Convexity * f.Gap * math.Min(signal, f.Records*f.Available/(f.Deviation*f.Deviation)))
	if !(log > 0) {
		return f.Records
	}
	return f.withinRecords(f.Records / (math.Sqrt(f.condition()) * log))
}

func (f Federation) withinRecords(k float64) float64 { return math.Min(math.Max(k, 1), f.Records) }

// variance returns V^2, which bounds the mean squared error of a round's gradient on the population (Lemma
// E.3): phi^2/(M K) + ((N-M)/(N-1)) upsilon^2/M + d sigma^2/M.
func (f Federation) variance(batch, noise float64) float64 {
	return f.sampling(batch) + f.Dim*noise*noise/f.Available
}

// sampling returns the part of variance that is not noise.
func (f Federation) sampling(batch float64) float64 {
	return (f.Deviation*f.Deviation/batch + f.heterogeneous()*f.Spread*f.Spread) / f.Available
}

// empirical is Theorem 4.1 for a federation: accelerated steps in which records are in many rounds.
type empirical struct{ Federation }

// variance returns V^2 on the silos' own records (Theorem 4.1): 4 L^2/(M K) unless all of them are
// in every round, and d sigma^2/M. Doubt: batches drawn with replacement never are all of them; M = N and K =
// n have to mean the whole of it.
func (f empirical) variance(batch, noise float64) float64 {
	v := f.Dim * noise * noise / f.Available
	if !f.everything(batch) {
		v += 4 * f.Lipschitz * f.Lipschitz / (f.Available * batch)
	}
	return v
}

// everything reports whether each round has every record.
func (f empirical) everything(batch float64) bool { return f.Available*batch >= f.Silos*f.Records }

// accelerated is the accelerated algorithm for a federation, with gradients of mean squared error V^2.
type accelerated struct {
	Federation
	variance float64
}

// regularization returns lambda of the term (lambda/2)||w - w_0||^2 with which a convex objective is run:
// V/(D sqrt(R)). Doubt: the proofs print half of that, and their lemma needs this.
func (f accelerated) regularization(rounds float64) float64 {
	return math.Sqrt(f.variance/rounds) / f.Diameter
}

// steepness returns a v with which a convex objective needs no regularisation (Ghadimi and Lan 2012): max{2
// beta, sqrt(2 V^2 R (R+1)(R+2)/(3 D^2))}. Round r, from 1, of the accelerated algorithm has alpha_r =
// 2/(r+1) and eta_r = 4 v/(r (r+1)), which multiplies a squared distance: large is a small step. v is 2 beta
// at least. The paper gives no steps for the convex case; these follow its stages.
func (f accelerated) steepness(rounds float64) float64 {
	return math.Max(2*f.Smoothness, math.Sqrt(2*f.variance*rounds*(rounds+1)*(rounds+2)/3)/f.Diameter)
}

// reach returns X = sqrt(M) epsilon n/sqrt(d ln(1/delta)) of Theorem 4.1: the excess empirical risk is L D/X
// up to constants.
func (f empirical) reach() float64 { return math.Sqrt(f.signal() / (f.Dim * f.logDelta())) }

// rounds returns the rounds of Theorem 4.1 for smooth losses, not rounded, as the two terms of which
// the larger one counts: the steps' term, ((beta D/L) X)^(1/2) or sqrt(kappa) ln(Delta mu M epsilon^2
// n^2/(L^2 d)), and the batch's, epsilon^2 n^2/(K d ln(1/delta)), 0 where each round has every record. Doubt:
// the exponent 1/2 is hard to read; it alone turns into F.2's rounds with F.2's beta.
func (f empirical) rounds(batch float64) (steps, batches float64) {
	steps = math.Sqrt(f.Smoothness * f.Diameter / f.Lipschitz * f.reach())
	if f.Convexity > 0 {
		steps = math.Sqrt(f.condition()) * math.Log(f.Gap*f.Convexity*f.signal()/(f.Lipschitz*f.Lipschitz*f.Dim))
	}
	if !f.everything(batch) {
		batches = f.Epsilon * f.Epsilon * f.Records * f.Records / (batch * f.Dim * f.logDelta())
	}
	return steps, batches
}

// enveloped returns the federation with the losses' envelopes, beta of Theorem F.2: epsilon n sqrt(M)
// L/(sqrt(d) D), or mu M epsilon^2 n^2/d. The rounds are X then.
func (f empirical) enveloped() Federation {
	if f.Convexity > 0 {
		f.Smoothness = f.Convexity * f.signal() / f.Dim
	} else {
		f.Smoothness = math.Sqrt(f.signal()/f.Dim) * f.Lipschitz / f.Diameter
	}
	return f.Federation
}
