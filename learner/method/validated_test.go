package method_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream/wire"
)

// scored puts two scores after the gradient of a plan.
func scored(p *wire.Plan) *wire.Plan {
	p = proto.CloneOf(p)
	p.Scorecard = &wire.Scorecard{Norm: math.Sqrt2, High: 4, Correctness: true}
	for _, f := range p.Phases {
		if f.Statistic == wire.Statistic_STATISTIC_GRADIENT {
			f.Mechanism.Dim, f.Mechanism.Scores = f.Mechanism.Dim+2, 2
		}
	}
	return p
}

// valued returns a round's estimate: a gradient, then the scores of a mean loss and accuracy, a coordinate's
// unit being 1.
func valued(gradient []float64, loss, accuracy float64, users uint64, proxy float64) method.Estimate {
	return method.Estimate{Gradient: append(slices.Clone(gradient), loss/2-1, 2*accuracy-1), Users: users,
		NoiseProxy: proxy}
}

// TestScoresLeaveTheMethodAlone: the method does what it would have done without scores, also after moments,
// which have none.
func TestScoresLeaveTheMethodAlone(t *testing.T) {
	for _, plan := range []*wire.Plan{alone()} {
		a, b := begin(t, scored(plan)), begin(t, plan)
		for k := 0; !b.Done(); k++ {
			q, r := a.Query(), b.Query()
			if q.Step != r.Step || !slices.Equal(q.Point, r.Point) || q.Frame != r.Frame {
				t.Fatalf("query %+v, want %+v", q, r)
			}
			if k == 2 {
				if err := errors.Join(a.Skip(), b.Skip()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			own := method.Estimate{Gradient: []float64{0.1 * float64(k), 1}, Users: 5, NoiseProxy: 0.1}
			both := valued(own.Gradient, 1, 0.5, 5, 0.1)
			if err := errors.Join(a.Step(both), b.Step(own)); err != nil {
				t.Fatal(err)
			}
		}
		if !a.Done() || !slices.Equal(a.Model(), b.Model()) || !bytes.HasSuffix(bytesOf(t, a), bytesOf(t, b)) {
			t.Errorf("with scores %v, without %v", a.Model(), b.Model())
		}
		if v := learner.ValidationOf(a); v == nil || v.Rounds != 2 || learner.ValidationOf(b) != nil {
			t.Errorf("validation %+v, want one of 2 rounds", v)
		}
	}
}

// TestValidationFigures: the figures, computed by hand.
func TestValidationFigures(t *testing.T) {
	plan := alone()
	a := begin(t, scored(plan))
	if learner.ValidationOf(a) != nil {
		t.Error("a validation before the first round")
	}
	zero := []float64{0, 0}
	if err := errors.Join(a.Step(valued(zero, 2, 0.5, 100, 0.03)), a.Step(valued(zero, 1, 0.7, 300, 0.01))); err != nil {
		t.Fatal(err)
	}
	v := learner.ValidationOf(a)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	// Proxies of a mean: the noise and 1/users for a sample from [-1, 1]. A score's unit is half a loss range, or half.
	first, second := 0.03+1.0/100, 0.01+1.0/300
	near("last loss", v.Loss.Last.Value, 1)
	near("last accuracy", v.Accuracy.Last.Value, 0.7)
	half := math.Sqrt(2 * second * math.Log(40))
	near("last low", v.Accuracy.Last.Low, 0.7-half/2)
	near("last high", v.Loss.Last.High, 1+2*half)
	near("overall accuracy", v.Accuracy.Overall.Value, (100*0.5+300*0.7)/400)
	near("overall loss", v.Loss.Overall.Value, (100*2.0+300*1)/400)
	prior, all := 1e4*first, 1e4*first+9e4*second
	half = math.Sqrt((all+prior)*math.Log((all+prior)/prior*400)) / 400
	near("overall low", v.Accuracy.Overall.Low, 0.65-half/2)
	near("recent accuracy", v.Accuracy.Recent.Value, (90*0.5+300*0.7)/390)
	half = math.Sqrt(2*(0.81*1e4*first+9e4*second)*math.Log(40)) / 390
	near("recent high", v.Accuracy.Recent.High, (90*0.5+300*0.7)/390+half/2)
	if v.Rounds != 2 || v.Confidence != 0.95 || v.Repeated {
		t.Errorf("%+v", v)
	}
}

// TestWorseOfLate: falling scores are reported once the bands of the last or of recent rounds lie apart from
// the band of all, and no sooner.
func TestWorseOfLate(t *testing.T) {
	run := func(last ...float64) *method.Validation {
		a := begin(t, scored(series(2, convex.SetDeclaration{Radius: 2}, 0, descent(12, 0.3))))
		for _, correct := range append([]float64{0.8, 0.82, 0.81, 0.8}, last...) {
			if err := a.Step(valued([]float64{0, 0}, 1, correct, 10000, 1e-4)); err != nil {
				t.Fatal(err)
			}
		}
		return learner.ValidationOf(a)
	}
	for _, c := range []struct {
		last  []float64
		worse bool
	}{{nil, false}, {[]float64{0.9}, false}, {[]float64{0.79}, false}, {[]float64{0.6}, true}, {[]float64{0.6, 0.8},
		false}, {[]float64{0.6, 0.6, 0.8}, false},
		{[]float64{0.1, 0.1, 0.5, 0.5}, true}} {
		if v := run(c.last...); v.Worse != c.worse {
			t.Errorf("after %v: worse %t of %+v", c.last, v.Worse, v.Accuracy)
		}
	}
	// Losses, too.
	a := begin(t, scored(series(2, convex.SetDeclaration{Radius: 2}, 0, descent(3, 0.3))))
	for _, loss := range []float64{0.5, 0.5, 1.5} {
		if err := a.Step(valued([]float64{0, 0}, loss, 0.8, 10000, 1e-4)); err != nil {
			t.Fatal(err)
		}
	}
	if v := learner.ValidationOf(a); !v.Worse {
		t.Errorf("a loss of 1.5 after 0.5 is not worse: %+v", v.Loss)
	}
}

// TestScoresOfTheSameUsers: users who answer every round are no new sample: the bands are about them, and about
// noise alone.
func TestScoresOfTheSameUsers(t *testing.T) {
	plan := series(2, convex.SetDeclaration{Radius: 2}, 0, interactive(3, 0.3))
	a := begin(t, scored(plan))
	if err := a.Step(valued([]float64{0, 0}, 1, 0.7, 5, 0.01)); err != nil {
		t.Fatal(err)
	}
	v := learner.ValidationOf(a)
	if want := 0.7 - math.Sqrt(2*0.01*math.Log(40))/2; !v.Repeated || math.Abs(v.Accuracy.Last.Low-want) > 1e-12 {
		t.Errorf("%+v, want a lower end of %v", v.Accuracy.Last, want)
	}
}

// TestScoresState: a run goes on from its state to the same bytes; a state of another card, of other users, or
// damaged, is refused.
func TestScoresState(t *testing.T) {
	plan := inPractice(convex.Declaration{Name: "logistic"}, false, 3)
	feed := func(a learner.Algorithm, from, to int) {
		t.Helper()
		for k := from; k < to; k++ {
			e := method.Estimate{Gradient: []float64{0.5, 0.2, 0.1, 0.3, 0.1, 0}, Users: 5, NoiseProxy: 0.1}
			if a.Query().Point != nil {
				e = valued([]float64{0.1 * float64(k), -0.2, 0, 0}, 1, 0.25*float64(k), 5, 0.1)
			}
			if err := a.Step(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := begin(t, scored(plan))
	feed(whole, 0, 4)
	for cut := range 5 {
		a, b := begin(t, scored(plan)), begin(t, scored(plan))
		feed(a, 0, cut)
		if err := b.UnmarshalBinary(bytesOf(t, a)); err != nil {
			t.Fatalf("after %d rounds: %v", cut, err)
		}
		feed(b, cut, 4)
		if !bytes.Equal(bytesOf(t, b), bytesOf(t, whole)) {
			t.Errorf("cut after %d rounds, the run ended elsewhere", cut)
		}
	}
	state := bytesOf(t, whole)
	if got := hex.EncodeToString(state[:54+96+16]); got != goldenScores {
		t.Errorf("the layout changed, running tasks become unreadable:\n got %s\nwant %s", got, goldenScores)
	}
	before := slices.Delete(slices.Clone(state), 54+96, 54+96+16) // a state of a version that did not read gradients
	before[14] = 0
	old := begin(t, scored(plan))
	if err := old.UnmarshalBinary(before); err != nil || !bytes.Equal(bytesOf(t, old), before) {
		t.Errorf("a state of before: %v", err)
	}
	other := scored(plan)
	other.Scorecard = &wire.Scorecard{Norm: math.Sqrt2, High: 3, Correctness: true}
	for name, a := range map[string]learner.Algorithm{"another card": begin(t, other), "no scores": begin(t, plan)} {
		if err := a.UnmarshalBinary(state); !errors.Is(err, method.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const sums = 54
	for name, spoil := range map[string]func([]byte) []byte{
		"short":              func(b []byte) []byte { return b[:sums+90] },
		"no users":           func(b []byte) []byte { return slices.Replace(b, sums+32, sums+40, make([]byte, 8)...) },
		"no first proxy":     func(b []byte) []byte { return slices.Replace(b, sums+24, sums+32, make([]byte, 8)...) },
		"negative proxy":     func(b []byte) []byte { b[sums+23] |= 0x80; return b },
		"not finite":         func(b []byte) []byte { return slices.Replace(b, sums, sums+8, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f) },
		"rounds passed over": func(b []byte) []byte { b[14] = 2; return b },
		"negative loss": func(b []byte) []byte {
			return slices.Replace(b, sums+96, sums+104, 0, 0, 0, 0, 0, 0, 0xf0,
				0xbf)
		},
		"slope not finite": func(b []byte) []byte {
			return slices.Replace(b, sums+104, sums+112, 0, 0, 0, 0, 0, 0, 0xf0,
				0x7f)
		},
		"method cut": func(b []byte) []byte { return b[:len(b)-1] },
	} {
		a := begin(t, scored(plan))
		before := bytesOf(t, a)
		if err := a.UnmarshalBinary(spoil(slices.Clone(state))); !errors.Is(err, method.ErrState) ||
			!bytes.Equal(before, bytesOf(t, a)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const goldenScores = "0206020000000300000000000000010000000000000001a03948d707212505a8e9689ba969be4643ebd4af783442e288ed9c21b2ad50" +
	"000000000000e0bf000000000000e03f343333333333d33f0100000000001e409a99999999192b409a99999999191bc0686666666666" +
	"de3ff5fdd478e97e32400000000000002e400000000000001ec0000000000000000001000000008036400000000000000000" +
	"9b65c45fa19eedbf"

func TestScoresRefuse(t *testing.T) {
	plan := alone()
	a := begin(t, scored(plan))
	before := bytesOf(t, a)
	for _, e := range []method.Estimate{
		{Gradient: []float64{1, 2}, Users: 5}, {Gradient: []float64{1, 2, 3}, Users: 5},
		{Gradient: []float64{1, 2, 0, math.NaN()}, Users: 5},
		{Gradient: []float64{1, 2, 0, 0}}, {Gradient: []float64{1, 2, 0, 0}, Users: 5, NoiseProxy: math.Inf(1)},
	} {
		if err := a.Step(e); err == nil || !bytes.Equal(before, bytesOf(t, a)) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	bad := scored(plan)
	bad.Phases[0].Mechanism.Scores = 1
	if _, err := learner.New(bad); err == nil {
		t.Error("a plan of one coordinate for two scores")
	}
	bad.Scorecard = nil
	if _, err := learner.New(bad); err == nil {
		t.Error("a plan of scores without a scorecard")
	}
}

// TestBandsHold: the band over all rounds holds at all rounds at once, and the others at one: over 2000 runs of
// 60 rounds with cohorts of changing sizes, scores at the ends of their range and bounded noise, the share of
// runs that ever leave is at most 5 %. The seeds are fixed.
func TestBandsHold(t *testing.T) {
	const runs, rounds, truth = 2000, 60, 0.5 // a fair share of correct predictions has the largest variance
	random := rand.New(rand.NewPCG(1, 2))
	var ever, recent, last int
	for range runs {
		plan := alone()
		plan.Phases[0].Rounds = rounds
		a := begin(t, scored(plan))
		left := false
		for range rounds {
			users := 20 + random.Uint64N(60)
			right := 0.0
			for range users {
				if random.Float64() < truth {
					right += 1 / float64(users)
				}
			}
			const step = 0.1 // a coin of two sides at this distance has the proxy step^2
			noise := step * float64(2*random.IntN(2)-1)
			e := valued([]float64{0, 0}, 2, right, users, step*step)
			e.Gradient[3] += noise
			if err := a.Step(e); err != nil {
				t.Fatal(err)
			}
			b := learner.ValidationOf(a).Accuracy.Overall
			left = left || truth < b.Low || truth > b.High
		}
		v := learner.ValidationOf(a).Accuracy
		outside := func(b method.Band) int {
			if truth < b.Low || truth > b.High {
				return 1
			}
			return 0
		}
		if left {
			ever++
		}
		recent, last = recent+outside(v.Recent), last+outside(v.Last)
	}
	t.Logf(
		"seed 1, 2: of %d runs the overall band was left at some round by %d, the recent one at the end by %d, the last one by %d", runs, ever, recent, last)
	for what, n := range map[string]int{"overall, ever": ever, "recent": recent, "last": last} {
		if n > runs*5/100 {
			t.Errorf("%s: %d of %d runs outside, more than 5 %%", what, n, runs)
		}
	}
	if ever == 0 && recent == 0 && last == 0 {
		t.Error("no run ever left a band: the test cannot see bands that are too narrow")
	}
}

// TestSampleBandsDoNotDependOnTheNorm: the part of a band that is due to the sample has the unit of a
// coordinate: a card of a quarter of the norm gives the same band of the score where there is no noise.
func TestSampleBandsDoNotDependOnTheNorm(t *testing.T) {
	for _, norm := range []float64{math.Sqrt2, math.Sqrt2 / 4} {
		plan := alone()
		plan = scored(plan)
		plan.Scorecard.Norm = norm
		a := begin(t, plan)
		if err := a.Step(method.Estimate{Gradient: make([]float64, 4), Users: 800}); err != nil {
			t.Fatal(err)
		}
		// Hoeffding for means of 800 shares of right predictions, each 0 or 1.
		half := math.Sqrt(math.Log(40) / (2 * 800))
		if b := learner.ValidationOf(a).Accuracy.Last; math.Abs(b.High-0.5-half) > 1e-12 || math.Abs(0.5-b.Low-half) > 1e-12 {
			t.Errorf("norm %v: %+v, want 0.5 and %v to each side", norm, b, half)
		}
	}
}

// TestEstimateProxy checks that the proxy of an estimate is the proxy of the mean, noise and rounding: their
// variance for a fair coin, and more for another.
func TestEstimateProxy(t *testing.T) {
	for coin, fair := range map[randomizer.Coin]bool{randomizer.Fair: true, randomizer.Fair / 4: false} {
		params := randomizer.Params{Dim: 1, ClipNorm: 3, Levels: 6, Trials: 10, Coin: coin}
		e, err := method.EstimateMean(params, []uint64{300}, 20, 240)
		if err != nil {
			t.Fatal(err)
		}
		want := (240*coin.SubGaussian() + 20.0/4) / (20 * 20) // a level is 1
		if math.Abs(e.NoiseProxy-want) > 1e-12 {
			t.Errorf("coin %v: proxy %v, want %v", coin, e.NoiseProxy, want)
		}
		if sum := e.PrivacyVariance + e.RoundingVariance; math.Abs(e.NoiseProxy-sum) < 1e-12 != fair ||
			e.NoiseProxy < sum-1e-12 {
			t.Errorf("coin %v: proxy %v beside a variance of %v", coin, e.NoiseProxy, sum)
		}
	}
}
