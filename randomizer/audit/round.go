package audit

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/shuffle"
)

// lanes is the number of rounds of a setting that one mixer runs side by side, each in coordinates of its own. The
// mixer treats coordinates alike and independently; its tables, which cost a millisecond, are then made once for all
// of them.
const lanes = 128

// run returns the scalars of whole rounds in which those who change hold x.
func (c Config) run(ctx context.Context, s setting, x Input) ([]float64, error) {
	var src rand.Source
	if c.Entropy != nil {
		src = c.Entropy()
	}
	device, err := s.Encoder(c.Params, src)
	if err != nil {
		return nil, err
	}
	wide := c.Params
	wide.Dim = len(s.at) * lanes
	r := round{Config: c, setting: s, device: device, x: x,
		cfg: shuffle.Config{Params: wide, Cohort: s.cohort, Minimum: uint64(s.users()), SideBySide: lanes,
			Entropy: c.Entropy}}
	var out []float64
	for len(out) < s.trials {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run := r.run
		if c.View == OneReport {
			run = r.alone
		}
		if out, err = run(out); err != nil {
			return nil, err
		}
	}
	return out[:s.trials], nil
}

// A round is lanes rounds in one mixer. It is run again and again, and keeps what it allocates.
type round struct {
	Config
	setting
	cfg    shuffle.Config
	device Encoder
	x      Input
	one    []uint32 // counts of one report
	zeros  []uint32 // counts of one report of nothing
	used   int      // of them, by lanes
	counts []uint32 // of all lanes
	report []byte   // of the device
	packed []byte   // of all lanes
}

// alone appends the scalar of one report as it left the device, where no mixer could add what hides it.
func (r *round) alone(out []float64) ([]float64, error) {
	var err error
	if r.one, err = r.ask(r.one, r.x); err != nil {
		return nil, err
	}
	var sum float64
	for i, j := range r.at {
		sum += r.weights[i] * float64(r.one[j])
	}
	return append(out, sum), nil
}

// run appends one scalar for each lane.
func (r *round) run(out []float64) ([]float64, error) {
	mixer, err := r.subject(r.cfg)
	if err != nil {
		return nil, err
	}
	var seen []uint64
	ids := make([]shuffle.ReportID, 1)
	for user := range r.users() + 1 {
		if r.View.looked() && user == r.look.after {
			if seen, err = mixer.Look(); err != nil {
				return nil, err
			}
		}
		if user == r.users() {
			break
		}
		if err := r.encode(user); err != nil {
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
		of := func(totals []uint64) (sum float64) {
			for i, w := range r.weights {
				sum += w * float64(totals[lane*len(r.at)+i])
			}
			return sum
		}
		if r.View.looked() {
			out = append(out, r.look.scalar(of(seen), of(rel.Totals)))
		} else {
			out = append(out, of(rel.Totals))
		}
	}
	return out, nil
}

// encode packs a user's reports in all lanes: users who change hold x, as many others as are honest hold nothing, and
// the rest send the centre without noise.
func (r *round) encode(user int) error {
	first := r.look.target
	changes := user >= first && user < first+int(r.Together)
	others := user // before this one, of those who do not change
	if user > first {
		others -= int(r.Together)
	}
	if !changes && others >= int(r.honest-r.Together) {
		r.counts = append(r.counts[:0], make([]uint32, r.cfg.Params.Dim)...)
		for j := range r.counts {
			r.counts[j] = r.cfg.Params.MaxCount() / 2
		}
		r.packed = r.cfg.Params.Pack(r.packed[:0], r.counts)
		return nil
	}
	r.counts = r.counts[:0]
	for range lanes {
		var err error
		if changes {
			if r.one, err = r.ask(r.one, r.x); err != nil {
				return err
			}
			for _, j := range r.at {
				r.counts = append(r.counts, r.one[j])
			}
			continue
		}
		for range r.at { // all coordinates of a zero vector are alike, so its report serves several lanes
			if r.used == len(r.zeros) {
				if r.zeros, err = r.ask(r.zeros, Nothing); err != nil {
					return err
				}
				r.used = 0
			}
			r.counts = append(r.counts, r.zeros[r.used])
			r.used++
		}
	}
	r.packed = r.cfg.Params.Pack(r.packed[:0], r.counts)
	return nil
}

// ask has the device report once, and overwrites dst with the counts.
func (r *round) ask(dst []uint32, of Input) ([]uint32, error) {
	r.report = r.device.Report(r.report[:0], of)
	p := r.Params
	p.Dim = r.device.Dim(of)
	dst, err := p.Unpack(dst, r.report)
	if err != nil {
		return nil, fmt.Errorf("audit: the device's report: %w", err)
	}
	return dst, nil
}
