package private

import "math"

// paper holds the parameters of Theorem 3 of Carmon et al. 2023 with its universal constants C and C_ba set
// to 1, with which nothing is proved: at the constants that its proofs need, the theorem says nothing below
// 4e46 records (docs/proofs/resque.md). For print and comparison alone.
type paper struct {
	Error, Kappa, Rho, R, K, Lambda float64
	Order, Beta, Iterations         float64
	T1, T2, T3                      float64 // gradients of a call of the three oracles
	Noise                           float64 // of the first phase
	Probes, Copies                  float64 // of a step's line search, and of each probe's point: 20 log(1/zeta)
}

// newPaper evaluates them for L = R = 1. An Error above 1 is vacuous, and then only Error to Beta mean something.
func newPaper(n, d, eps, delta float64) paper {
	var p paper
	long := math.Log(n / delta)
	p.Error = 1/math.Sqrt(n) + math.Sqrt(d*math.Log(1/delta))*math.Pow(long, 1.5)*math.Log(n)/(n*eps)
	p.Kappa = 1 / p.Error
	p.Rho = p.Error / math.Sqrt(d)
	p.R = p.Rho / (long * long)
	p.K = math.Pow(1/p.R, 2./3)
	log := math.Log(p.Kappa)
	p.Lambda = p.Error * p.K * p.K * log * log
	p.Order = 4 * math.Log(2/delta) / eps
	p.Beta = eps / (long * math.Sqrt(math.Log(1/delta)))
	p.Iterations = p.K * log
	noisy, plain := p.Kappa*math.Sqrt(d)/(math.Sqrt(p.K)*p.Beta), p.Kappa*p.Kappa/p.K
	p.T1 = noisy/(log*log) + plain/(log*log*log*long)
	p.T2 = noisy/math.Sqrt(log) + plain/log
	p.T3 = noisy + plain
	// Algorithm 4's eta at the call's T2, over 4, over beta: its second branch, which binds.
	p.Noise = p.R / (4 * math.Sqrt(d))
	p.Probes = math.Log(p.Kappa / p.R)
	p.Copies = 20 * math.Log(p.Kappa*p.Iterations)
	return p
}

// Constants of the paper's lemmas, as their proofs have them: C_cvx of Lemma 4 and C_sc = 32 C_cvx^2 of Proposition 8.
const (
	paperConvex = 16
	paperStrong = 32 * paperConvex * paperConvex
)

// paperGap returns the bound of Proposition 8 with that constant: Algorithm 5 has a gap of at most 8192
// (L^2/lambda) (d/(beta T)^2 + 1/T). At the centre it is at most L^2/(2 lambda), so this says nothing below
// 16,384 steps; a plan evaluates Lemma T of docs/proofs/resque.md.
func paperGap(lipschitz, lambda, d, beta, steps float64) float64 {
	return paperStrong * lipschitz * lipschitz / lambda * (d/(beta*steps*beta*steps) + 1/steps)
}
