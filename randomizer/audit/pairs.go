package audit

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/randomizer"
)

// An Input names what a user holds.
type Input int

const (
	// Nothing is encoded as the zero vector.
	Nothing Input = iota
	// Plus and Minus are the two ends of a Pair.
	Plus
	Minus
)

// An Encoder is a device.
type Encoder interface {
	// Report appends the report of a user with this input, a new draw, packed as Config.Params say for Dim coordinates.
	Report(dst []byte, of Input) []byte
	// Dim is Params.Dim for Plus and Minus. Nothing may have more, as long as all are independent draws of a zero:
	// what a report costs beside its coordinates is then shared by many lanes.
	Dim(of Input) int
}

// Entropy is the source of a device's draws.
type Entropy = rand.Source

// A Pair is two inputs of a user, or of all that change together, far apart in the ball of vectors of a unit.
type Pair struct {
	Name string
	// Along leads from Minus to Plus, in Params.Dim numbers. The scalar of the view is the product of totals and
	// Along; coordinates where Along is 0 are left out.
	Along []float64
	// Distance of the ends of a unit, once they are clipped, in diameters of its ball: 1 at most.
	Distance float64
	// Part p runs one p-th of the trials; 0 means 1.
	Part int
	// Encoder makes a device of a round; nil entropy is the system's.
	Encoder func(p randomizer.Params, entropy Entropy) (Encoder, error)
}

// bare returns the pairs of a device that is nothing but the randomizer: the poles of the ball, which exercise one
// coordinate, and two opposite points that are spread over up to four. Those cost more and can only reveal coarser
// faults, such as a vector that is clipped coordinate by coordinate, so they run less often.
func bare(p randomizer.Params, within uint64) []Pair {
	out := []Pair{Pole("pole", p, 1, within)}
	if wide := min(4, p.Dim); wide > 1 {
		out = append(out, Pole("spread", p, wide, within))
		out[1].Part = wide
	}
	return out
}

// Pole returns a pair of opposite vectors far beyond the clip, of length equal in so many coordinates, which the
// randomizer encodes without a client around it: in so many units of a report, whose others are zero. Minimisers are
// as far apart as so many units may bring them.
func Pole(name string, p randomizer.Params, wide int, within uint64) Pair {
	along := make([]float64, p.Dim)
	for j := range wide {
		along[j] = 1
	}
	return Pair{Name: name, Along: along, Distance: 1, Encoder: func(p randomizer.Params, entropy Entropy) (Encoder,
		error) {
		sum, err := randomizer.NewVectorSum(p, entropy)
		d := &device{sum: sum, vectors: within}
		far := beyond * p.ClipNorm
		if p.Minimizer {
			d.vectors, far = 1, p.ClipNorm*float64(within)/float64(max(p.Units, 1))/math.Sqrt(float64(wide))
		}
		for i, sign := range []float64{Nothing: 0, Plus: 1, Minus: -1} {
			d.inputs[i] = make([]float64, p.Dim)
			for j, a := range along {
				d.inputs[i][j] = a * sign * far
			}
		}
		return d, err
	}}
}

// beyond the clip is how long the inputs of bare pairs are: clipping them is part of what runs.
const beyond = 1000

// A device is the bare randomizer.
type device struct {
	sum     *randomizer.VectorSum
	vectors uint64 // that it adds
	inputs  [3][]float64
	counts  []uint32
}

func (d *device) Dim(Input) int { return d.sum.Params().Dim }

func (d *device) Report(dst []byte, of Input) []byte {
	for range d.vectors {
		if err := d.sum.Add(d.inputs[of]); err != nil {
			panic(err) // the inputs have its dimension, and there are no more than it takes
		}
	}
	d.counts = d.sum.Draw(d.counts)
	return d.sum.Params().Pack(dst, d.counts)
}

// A setting is a pair in a cohort, and who looks at it when.
type setting struct {
	Pair
	at        []int     // coordinates that run
	weights   []float64 // of them in the scalar; their squares sum to 1
	trials    int
	cohort    uint64 // that the stage tops up to
	honest    uint64 // users who report and add their noise, those who change among them
	dishonest uint64 // who report zeros without noise
	look      look   // of the intruder; the learner has none
}

func (s setting) users() int { return int(s.honest + s.dishonest) }

// settings returns all settings to run. The learner's scalar is a sum of totals.
func (c Config) settings() []setting {
	var out []setting
	for _, pair := range c.Pairs {
		s := setting{Pair: pair, trials: c.Trials / max(1, pair.Part)}
		length := 0.0
		for j, a := range pair.Along {
			if a != 0 {
				s.at, s.weights = append(s.at, j), append(s.weights, a)
				length = math.Hypot(length, a)
			}
		}
		for i := range s.weights {
			s.weights[i] /= length
		}
		if c.View.looked() {
			out = append(out, c.intruded(s)...)
			continue
		}
		s.cohort = c.Users
		s.dishonest = min(c.Dishonest, c.Minimum-c.Together)
		s.honest = c.Minimum - s.dishonest
		out = append(out, s)
		if pair.Part <= 1 && c.Params.Trials > 0 && s.honest > c.Together {
			s.Name += ", topped up"
			s.honest = c.Together
			out = append(out, s)
		}
	}
	return out
}

// silent is the number of others in the cohort of an intruder's or operator's view, who do not protect the target. Their number
// makes no difference to the claim.
const silent = 2

// intruded returns a setting at each look of the intruder, or the operator's one. Nobody is missing: a top-up would be noise that the claim does not count
// on.
func (c Config) intruded(s setting) (out []setting) {
	s.cohort = min(c.Users, c.Together+silent)
	s.honest, s.dishonest = c.Together, s.cohort-c.Together
	if c.View == Operator {
		s.look = behindOneFloor(s.users())
		return []setting{s}
	}
	all := looks(s.users(), int(c.Together))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := s
		one.Name, one.look = s.Name+", "+name, all[name]
		out = append(out, one)
	}
	return out
}
