package audit

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// A pair is two inputs of one user and the scalar of the totals that tells them apart best, larger under plus.
type pair struct {
	name        string
	dim         int
	trials      int
	plus, minus []float64
}

// pairs are the poles of the ball, which exercise one coordinate, and two opposite points that are spread over the
// coordinates. Those cost more and can only reveal coarser faults, so they run half as often. The scalar is the sum
// of all totals.
func (c Config) pairs() []pair {
	out := []pair{spread("pole", c.Params.ClipNorm, 1, c.Trials)}
	if c.Dim > 1 {
		out = append(out, spread("spread", c.Params.ClipNorm, c.Dim, c.Trials/2))
	}
	return out
}

func spread(name string, clip float64, dim, trials int) pair {
	pr := pair{name: name, dim: dim, trials: trials, plus: make([]float64, dim), minus: make([]float64, dim)}
	for j := range dim {
		// Slightly too long, so that the clipping is part of what runs.
		pr.plus[j] = 1.001 * clip / math.Sqrt(float64(dim))
		pr.minus[j] = -pr.plus[j]
	}
	return pr
}

// run returns the scalars of whole rounds in which the first user holds x and the others the zero vector.
func (c Config) run(ctx context.Context, pr pair, x []float64) ([]float64, error) {
	params := c.Params
	params.Dim = pr.dim
	cfg := shuffle.Config{Params: params, Cohort: c.Users, Minimum: c.Users, FloorTrials: c.FloorTrials, Entropy: c.Entropy}
	var src rand.Source
	if c.Entropy != nil {
		src = c.Entropy()
	}
	device, err := randomizer.NewVectorSum(params, src)
	if err != nil {
		return nil, err
	}
	zero := make([]float64, pr.dim)
	var counts []uint32
	var packed []byte
	ids := make([]shuffle.ReportID, 1)
	out := make([]float64, pr.trials)
	for trial := range out {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		mixer, err := shuffle.NewMixer(cfg)
		if err != nil {
			return nil, err
		}
		for user := range c.Users {
			in := zero
			if user == 0 {
				in = x
			}
			if counts, err = device.Encode(counts, in); err != nil {
				return nil, err
			}
			packed = params.Pack(packed[:0], counts)
			binary.BigEndian.PutUint64(ids[0][:], user)
			if got := mixer.Add(ids, packed); got != shuffle.Accepted {
				return nil, fmt.Errorf("audit: the mixer refused an honest report: %v", got)
			}
		}
		rel, err := mixer.Close()
		if err != nil {
			return nil, err
		}
		for _, t := range rel.Totals {
			out[trial] += float64(t)
		}
	}
	return out, nil
}
