package evaluation

import "math"

// bins is the number of bins of a Reliability.
const bins = 10

// A Reliability compares probabilities with what occurred, in bins of equal width. The zero value is ready.
type Reliability struct{ sums [bins]binSums }

type binSums struct {
	events, occurred int
	probability      float64 // sum
}

// Add takes an event that was said to occur with probability p, in [0, 1]. A bin has its lower edge; the last one
// has both.
func (r *Reliability) Add(p float64, occurred bool) {
	b := &r.sums[min(int(p*bins), bins-1)]
	b.events++
	b.probability += p
	if occurred {
		b.occurred++
	}
}

// A Bin is one line of a reliability table.
type Bin struct {
	Low         float64 `json:"low"` // of the probabilities in it
	High        float64 `json:"high"`
	Events      int     `json:"events"`
	Probability float64 `json:"probability"` // mean of what was said
	Occurred    float64 `json:"occurred"`    // share that did
}

// Table returns a line for each bin that is not empty.
func (r *Reliability) Table() (out []Bin) {
	for i, b := range r.sums {
		if n := float64(b.events); n > 0 {
			out = append(out, Bin{Low: float64(i) / bins, High: float64(i+1) / bins, Events: b.events,
				Probability: b.probability / n, Occurred: float64(b.occurred) / n})
		}
	}
	return out
}

// Error returns the expected calibration error: the mean over events of the distance between what was said
// and what occurred in their bin (Naeini, Cooper, Hauskrecht, Obtaining Well Calibrated Probabilities Using
// Bayesian Binning, AAAI 2015); 0 without events.
func (r *Reliability) Error() float64 {
	distance, events := 0.0, 0
	for _, b := range r.sums {
		distance += math.Abs(b.probability - float64(b.occurred))
		events += b.events
	}
	return distance / float64(max(1, events))
}
