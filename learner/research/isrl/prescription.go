package isrl

import (
	"errors"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Prescription holds the numbers that one theorem prescribes for a federation. Noise is of one coordinate,
// in units of L.
type Prescription struct {
	Theorem string `json:"theorem"`
	Claims  string `json:"claims"` // what its risk is of
	Rounds  uint64 `json:"rounds"`
	Batch   uint64 `json:"batch"` // records of one silo in one round
	// ReportNoise is sigma of one silo's mean gradient, MeanNoise of the mean over the M silos of a round;
	// nil where the theorem has none. A sum by P_vec has no noise of single reports; ReportNoise is then the
	// mean's times sqrt(M).
	ReportNoise *float64 `json:"noise_per_report"`
	MeanNoise   *float64 `json:"noise_of_mean"`

	Smoothness float64 `json:"smoothness"` // beta: of the envelopes, where losses are not smooth
	// eta of plain steps: the minimiser of the bound that is proved
	Step *float64 `json:"step,omitempty"`
	// v of accelerated steps of a convex objective, see accelerated.steepness
	Steepness      *float64 `json:"v,omitempty"`
	Regularization *float64 `json:"regularization,omitempty"` // lambda, instead of such a v
	Stages         int      `json:"stages,omitempty"`         // of a strongly convex objective, that fit

	Conditions []condition `json:"conditions"`
	// Epsilon bounds the real cost of these rounds, of batches drawn without replacement, from both sides;
	// nil where no accountant here applies.
	Epsilon *Interval `json:"epsilon,omitempty"`
}

// Prescribe returns the prescription of the theorem that covers the federation's task: Theorem 2.1 where steps are
// plain, 3.1 where they are accelerated and records are in one round each, 4.1 where they are in many; 5.1 and 5.2
// where reports are shuffled. The error explains why none does.
func (f Federation) Prescribe(accelerated, many, shuffled bool) (Prescription, error) {
	if err := f.Validate(); err != nil {
		return Prescription{}, err
	}
	smooth := !math.IsInf(f.Smoothness, 1)
	switch {
	case shuffled && accelerated && many:
		return Prescription{},
			errors.New(
				"no theorem of the paper is of accelerated steps on the same records in many shuffled rounds: 5.1 is of plain ones, 5.2 of one pass")
	case shuffled && !smooth:
		return Prescription{},
			errors.New("the theorems 5.1 and 5.2 ask for a smooth loss, or leave open the smoothness of its envelope")
	case shuffled && accelerated:
		return summed{f}.prescribe()
	case shuffled:
		return shuffling{f}.prescribe(), nil
	case accelerated && many:
		return empirical{f}.prescribe(), nil
	case accelerated && !smooth:
		return Prescription{}, errors.New("the theorem 3.1 asks for a smooth loss")
	case accelerated:
		return onePass{f}.prescribe(), nil
	}
	return minibatch{f}.prescribe(), nil
}

func (f minibatch) prescribe() Prescription {
	if math.IsInf(f.Smoothness, 1) {
		f.Federation = f.enveloped()
	}
	r := whole(f.rounds())
	k := math.Ceil(f.withinRecords(f.leastBatch(r)))
	noise := f.noise(r)
	p := f.prescription("2.1", "the risk on the population, if all silos' records are drawn alike", r, k, noise)
	p.Step, p.Conditions, p.Epsilon = number(f.step(r, noise)), f.conditions(r, k), f.cost(f.Records, k, r, noise)
	return p
}

func (f onePass) prescribe() Prescription {
	k := math.Max(1, math.Floor(f.batch()))
	r := math.Floor(f.Records / k)
	noise := f.noise(k)
	p := f.prescription("3.1", "the risk on the population, whatever silos' records are", r, k, noise)
	accelerated{f.Federation, f.variance(k, noise)}.fill(&p)
	p.Conditions, p.Epsilon = f.conditions(k), f.cost(k, k, 1, noise)
	return p
}

func (f empirical) prescribe() Prescription {
	k := f.Records
	var r float64
	if math.IsInf(f.Smoothness, 1) {
		f.Federation = f.enveloped()
		_, batches := f.rounds(k)
		r = whole(math.Max(f.reach(), batches))
	} else {
		steps, batches := f.rounds(k)
		r = whole(math.Max(steps, batches))
	}
	noise := f.noise(r)
	p := f.prescription("4.1", "the mean loss of the records at hand", r, k, noise)
	accelerated{f.Federation, f.variance(k, noise)}.fill(&p)
	p.Conditions, p.Epsilon = f.conditions(r, k), f.cost(f.Records, k, r, noise)
	return p
}

func (f shuffling) prescribe() Prescription {
	r := whole(f.rounds())
	noise := f.shuffled(r).Noise
	p := f.prescription("5.1", "the risk on the population, if all silos' records are drawn alike", r, 1, noise)
	if p.Conditions = f.conditions(r); p.ReportNoise != nil {
		p.Step = number(f.step(r, noise))
	}
	return p
}

func (f summed) prescribe() (Prescription, error) {
	k := math.Max(1, math.Floor(f.batch()))
	r := math.Floor(f.Records / k)
	noise, err := f.noise(k)
	if err != nil {
		return Prescription{}, err
	}
	p := f.prescription("5.2", "the risk on the population, whatever silos' records are", r, k,
		noise*math.Sqrt(f.Available))
	accelerated{f.Federation, f.variance(k, noise)}.fill(&p)
	p.Conditions = f.conditions(k)
	return p, nil
}

// At returns the noise of one report that the theorem prescribes for these rounds and this batch, which may differ from
// its own; NaN where it prescribes none.
func (f Federation) At(theorem string, rounds, batch uint64) (float64, error) {
	r, k := float64(rounds), float64(batch)
	switch theorem {
	case "3.1":
		return onePass{f}.noise(k) / f.Lipschitz, nil
	case "5.1":
		return f.shuffled(r).Noise / f.Lipschitz, nil
	case "5.2":
		noise, err := summed{f}.noise(k)
		return noise * math.Sqrt(f.Available) / f.Lipschitz, err
	}
	return f.noise(r) / f.Lipschitz, nil
}

func (f Federation) prescription(theorem, claims string, rounds, batch, noise float64) Prescription {
	return Prescription{Theorem: theorem, Claims: claims, Rounds: uint64(rounds), Batch: uint64(batch),
		Smoothness:  f.Smoothness,
		ReportNoise: number(noise / f.Lipschitz), MeanNoise: number(noise / f.Lipschitz / math.Sqrt(f.Available))}
}

// fill fills in the steps of the accelerated algorithm.
func (f accelerated) fill(p *Prescription) {
	if f.Convexity > 0 {
		p.Stages = len(f.stages(int(p.Rounds)))
		return
	}
	p.Steepness = number(f.steepness(float64(p.Rounds)))
	p.Regularization = number(f.regularization(float64(p.Rounds)))
}

// cost returns the real epsilon of Gaussian rounds; nil where it is out of the accountant's reach, or would
// take it more than a few seconds.
func (f Federation) cost(records, batch, rounds, noise float64) *Interval {
	if rounds > 1<<16 {
		return nil
	}
	s := Sampled{Records: uint64(records), Batch: uint64(batch), Rounds: uint64(rounds), Noise: noise / f.Lipschitz}
	e, err := s.Epsilon(f.Delta)
	if err != nil || e.Upper >= accounting.MaxEpsilon {
		return nil
	}
	return &e
}

// whole rounds a number of rounds up.
func whole(rounds float64) float64 { return math.Min(math.Max(1, math.Ceil(rounds)), 1<<53) }

func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
