package audit

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// A pair is two inputs, of one user or of all that change together, and the scalar of the view that tells them apart, larger under plus.
type pair struct {
	name        string
	dim         int
	trials      int
	plus, minus []float64
	users       int  // in the cohort
	look        look // of the intruder; the learner has none
}

// pairs are the poles of the ball, which exercise one coordinate, and two opposite points that are spread over the
// coordinates. Those cost more and can only reveal coarser faults, so they run half as often. The learner's scalar is
// the sum of all totals.
func (c Config) pairs() []pair {
	shapes := []pair{spread("pole", c.Params.ClipNorm, 1, c.Trials)}
	if c.Dim > 1 {
		shapes = append(shapes, spread("spread", c.Params.ClipNorm, c.Dim, c.Trials/2))
	}
	if c.View == Learner {
		for i := range shapes {
			shapes[i].users = int(c.Users)
		}
		return shapes
	}
	var out []pair
	users := int(min(c.Users, c.Together+intruded))
	for _, shape := range shapes {
		all := looks(users, int(c.Together))
		for _, name := range slices.Sorted(maps.Keys(all)) {
			one := shape
			one.name, one.users, one.look = shape.name+", "+name, users, all[name]
			out = append(out, one)
		}
	}
	return out
}

// intruded is how many others there are in the cohort of the intruder's view, who do not protect the target. How many they are
// makes no difference to the claim.
const intruded = 2

func spread(name string, clip float64, dim, trials int) pair {
	pr := pair{name: name, dim: dim, trials: trials, plus: make([]float64, dim), minus: make([]float64, dim)}
	for j := range dim {
		// Slightly too long, so that the clipping is part of what runs.
		pr.plus[j] = 1.001 * clip / math.Sqrt(float64(dim))
		pr.minus[j] = -pr.plus[j]
	}
	return pr
}

// lanes is how many rounds of a pair one mixer runs side by side, each in coordinates of its own. The mixer treats
// coordinates alike and independently; its tables, which cost a millisecond, are then made once for all of them.
const lanes = 128

// run returns the scalars of whole rounds in which those who change hold x. The others hold the zero vector and are honest in the
// learner's view; in the intruder's they send zeros without noise.
func (c Config) run(ctx context.Context, pr pair, x []float64) ([]float64, error) {
	narrow := c.Params
	narrow.Dim = pr.dim
	var src rand.Source
	if c.Entropy != nil {
		src = c.Entropy()
	}
	device, err := randomizer.NewVectorSum(narrow, src)
	if err != nil {
		return nil, err
	}
	wide := c.Params
	wide.Dim = pr.dim * lanes
	n := uint64(pr.users)
	r := round{Config: c, pair: pr, device: device, x: x, zero: make([]float64, pr.dim),
		cfg: shuffle.Config{Params: wide, Cohort: n, Minimum: n, Entropy: c.Entropy}}
	var out []float64
	for len(out) < pr.trials {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if out, err = r.run(out); err != nil {
			return nil, err
		}
	}
	return out[:pr.trials], nil
}

// A round is lanes rounds in one mixer. It is run again and again, and keeps what it allocates.
type round struct {
	Config
	pair
	cfg     shuffle.Config
	device  *randomizer.VectorSum
	x, zero []float64
	one     []uint32 // counts of one lane
	counts  []uint32 // of all
	packed  []byte
}

// run appends one scalar for each lane.
func (r *round) run(out []float64) ([]float64, error) {
	mixer, err := r.subject(r.cfg)
	if err != nil {
		return nil, err
	}
	var seen []uint64
	ids := make([]shuffle.ReportID, 1)
	for user := range r.users + 1 {
		if r.View == Intruder && user == r.look.after {
			if seen, err = mixer.Look(); err != nil {
				return nil, err
			}
		}
		if user == r.users {
			break
		}
		if err := r.report(user); err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint64(ids[0][:], uint64(user))
		if got := mixer.Add(ids, r.packed); got != shuffle.Accepted {
			return nil, fmt.Errorf("audit: the mixer refused an honest report: %v", got)
		}
	}
	rel, err := mixer.Close()
	if err != nil {
		return nil, err
	}
	for lane := range lanes {
		of := func(totals []uint64) float64 { return sum(totals[lane*r.dim:][:r.dim]) }
		if r.View == Intruder {
			out = append(out, r.look.scalar(of(seen), of(rel.Totals)))
		} else {
			out = append(out, of(rel.Totals))
		}
	}
	return out, nil
}

// report packs what a user sends in all lanes.
func (r *round) report(user int) error {
	r.counts = r.counts[:0]
	for range lanes {
		in := r.zero
		if user >= r.look.target && user < r.look.target+int(r.Together) {
			in = r.x
		} else if r.View == Intruder {
			r.counts = append(r.counts, make([]uint32, r.dim)...)
			continue
		}
		var err error
		if r.one, err = r.device.Encode(r.one, in); err != nil {
			return err
		}
		r.counts = append(r.counts, r.one...)
	}
	r.packed = r.cfg.Params.Pack(r.packed[:0], r.counts)
	return nil
}
