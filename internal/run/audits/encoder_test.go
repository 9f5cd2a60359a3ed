package audits

import (
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/audit"
	"github.com/panlearn/panlearn/stream/manifest"
)

// unclipped is an encoder that skips the clip: it cuts a row's vector to the clip norm coordinate by coordinate, so
// that the stage finds no count out of range.
type unclipped struct {
	encoder
	vectors [3][]float64
	params  randomizer.Params
	line    *randomizer.VectorSum // of one coordinate
	counts  []uint32
}

func unclip(t *testing.T, f found, p randomizer.Params, entropy rand.Source) (audit.Encoder, error) {
	t.Helper()
	honest, err := f.encoder(p, entropy)
	if err != nil {
		return nil, err
	}
	u := &unclipped{encoder: honest.(encoder), params: p}
	unit := 1.0
	if f.frame != nil {
		frame := *f.frame
		frame.Clip = convex.MaxScale
		f.frame, unit = &frame, convex.MaxScale
	} else {
		f.of.ClipNorm = convex.MaxScale
	}
	exact, err := report.NewExact(f.of)
	if err != nil {
		return nil, err
	}
	if err := exact.At(f.point, f.frame); err != nil {
		return nil, err
	}
	for _, of := range []audit.Input{audit.Plus, audit.Minus} {
		for i, v := range exact.Unit(f.rows[of]) {
			if i < f.of.Dim()-f.of.Scores {
				v *= unit
			}
			u.vectors[of] = append(u.vectors[of], min(max(v, -p.ClipNorm), p.ClipNorm))
		}
	}
	p.Dim = 1
	u.line, err = randomizer.NewVectorSum(p, entropy)
	return u, err
}

func (u *unclipped) Report(dst []byte, of audit.Input) []byte {
	if of == audit.Nothing {
		return u.encoder.Report(dst, of)
	}
	u.counts = u.counts[:0]
	var one []uint32
	for _, v := range u.vectors[of] {
		one, _ = u.line.Encode(one, []float64{v})
		u.counts = append(u.counts, one[0])
	}
	return u.params.Pack(dst, u.counts)
}

// Rows are found for every statistic that are nearly as far apart as vectors of the ball can be, or as rows of the
// statistic can; the client's encoder passes with them, and one that skips the clip fails. Seeds are fixed. With free
// ones the honest one fails with probability below 1/1000 a mechanism. One that skips it shifts by twice the ball's
// diameter at four features, where delta(0) is 0.18 for a claim of 0.094; the bounds are 0.035 wide with standard
// errors of 0.007.
func TestAuditOfTheEncoder(t *testing.T) {
	for name, c := range map[string]struct {
		sets []string
		near []float64 // least distances of the poles, by mechanism
		long bool
	}{
		"gradients and scores": {[]string{"schedule.users=200", "schedule.cohort=200", "schedule.plan=proved",
			"model.radius=5"}, []float64{0.85}, true},
		"gradients without scores": {[]string{"schedule.users=200", "schedule.cohort=200", "schedule.plan=proved",
			"model.radius=5", "validation.off=true"}, []float64{0.999}, true},
		"moments and frames": {[]string{"schedule.users=400", "schedule.cohort=100"}, []float64{0.7, 0.85}, false},
		"matrix": {[]string{"schedule.users=600", "schedule.cohort=100",
			"label={column: y, min: -1, max: 1}", "model.loss=squared"}, []float64{0.6, 0.99, 0.85}, true},
		"classes": {[]string{"schedule.users=400", "schedule.cohort=100",
			"label={column: y, classes: [a, b, c]}", "model.loss=softmax"}, []float64{0.6, 0.8}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long && !longtest.Run(t, "encoders of "+name) {
				t.SkipNow()
			}
			job := quickstartJob(t, c.sets...)
			audits := seededAudits(t, job, 0)
			if len(audits) != len(c.near) {
				t.Fatalf("%d audits, want %d", len(audits), len(c.near))
			}
			for i, one := range audits {
				params, err := manifest.Params(job.Plan.Phases[one.Phases[0]-1].Mechanism)
				if err != nil {
					t.Fatal(err)
				}
				all, err := foundFor(job, one.Phases[0]-1, params, 1)
				if err != nil {
					t.Fatal(err)
				}
				one.Config.Pairs = one.Config.Pairs[len(one.Config.Pairs)-len(all):] // without bare poles
				for _, pair := range one.Config.Pairs {
					t.Logf("%s, %s: distance %.3f along %v", one.Statistic, pair.Name, pair.Distance, pair.Along)
				}
				if got := one.Config.Pairs[0].Distance; !(got >= c.near[i]) {
					t.Errorf("%s: poles are %.3f apart, want %.3f", one.Statistic, got, c.near[i])
				}
				if !auditPasses(t, one) {
					t.Errorf("%s: the client's encoder fails", one.Statistic)
				}
				pairs := one.Config.Pairs
				one.Config.Pairs = nil
				for k, pair := range pairs {
					pair.Encoder = func(p randomizer.Params, entropy rand.Source) (audit.Encoder, error) {
						return unclip(t, all[k], p, entropy)
					}
					one.Config.Pairs = append(one.Config.Pairs, pair)
				}
				if auditPasses(t, one) {
					t.Errorf("%s: an encoder that skips the clip passes", one.Statistic)
				}
			}
		})
	}
}
