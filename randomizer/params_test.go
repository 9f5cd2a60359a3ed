package randomizer

import (
	"math"
	"strings"
	"testing"
)

func TestParamsValidate(t *testing.T) {
	good := Params{Dim: 7, ClipNorm: 1, Levels: 12, Trials: 9, Coin: Fair}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	if good.MaxCount() != 21 || good.countBits() != 5 || good.ReportBytes() != 5 {
		t.Errorf("max %d, bits %d, bytes %d; want 21, 5, 5", good.MaxCount(), good.countBits(), good.ReportBytes())
	}
	for field, breakIt := range map[string][]func(*Params){
		"Dim": {
			func(p *Params) { p.Dim = 0 }, func(p *Params) { p.Dim = -1 }, func(p *Params) { p.Dim = MaxDim + 1 },
			func(p *Params) { p.Dim = math.MaxInt }, func(p *Params) { p.Dim = math.MinInt },
		},
		"ClipNorm": {
			func(p *Params) { p.ClipNorm = 0 }, func(p *Params) { p.ClipNorm = -1 }, func(p *Params) { p.ClipNorm = math.NaN() },
			func(p *Params) { p.ClipNorm = math.Inf(1) }, func(p *Params) { p.ClipNorm = math.Inf(-1) },
			func(p *Params) { p.ClipNorm = 5e-324 }, func(p *Params) { p.ClipNorm = math.MaxFloat64 },
		},
		"Levels": {func(p *Params) { p.Levels = 0 }, func(p *Params) { p.Levels = MaxLevels + 1 },
			func(p *Params) { p.Levels = math.MaxUint32 }},
		"Trials": {func(p *Params) { p.Trials = MaxTrials + 1 }, func(p *Params) { p.Trials = math.MaxUint32 }},
		"coin": {func(p *Params) { p.Coin = 0 }, func(p *Params) { p.Coin = 1 << CoinBits },
			func(p *Params) { p.Coin = math.MaxUint32 }},
	} {
		for i, f := range breakIt {
			p := good
			f(&p)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%s, case %d: error %v does not name the field", field, i, err)
			}
			if _, err := NewVectorSum(p, nil); err == nil {
				t.Errorf("%s, case %d: NewVectorSum accepted it", field, i)
			}
		}
	}
	for _, edge := range []Params{
		{Dim: 1, ClipNorm: minClipNorm, Levels: 1, Trials: 0, Coin: 1},
		{Dim: MaxDim, ClipNorm: maxClipNorm, Levels: MaxLevels, Trials: MaxTrials, Coin: 1<<CoinBits - 1},
	} {
		if err := edge.Validate(); err != nil {
			t.Errorf("%+v: %v", edge, err)
		}
	}
}

func TestHeadRoom(t *testing.T) {
	p := Params{Dim: 1, ClipNorm: 1, Levels: 1 << 30, Trials: 1 << 30, Coin: Fair} // 2^31
	for _, c := range []struct {
		users, floor uint64
		ok           bool
	}{
		{1<<32 - 1, 1<<30 - 1, true}, {1<<32 - 1, 1 << 30, false}, {1 << 32, 0, false}, {1 << 33, 0, false},
		{math.MaxUint64, MaxBinomialTrials, false}, {0, MaxBinomialTrials, true}, {math.MaxUint64, 0, false},
	} {
		p.FloorTrials = c.floor
		if err := p.HeadRoom(c.users); (err == nil) != c.ok {
			t.Errorf("HeadRoom(%d) with floors of %d = %v, want ok = %v", c.users, c.floor, err, c.ok)
		}
	}
}

// TestNoiseTrials: every counted report, every missing one of the planned cohort, and two floors; an overfull cohort
// counts as it is.
func TestNoiseTrials(t *testing.T) {
	p := Params{Dim: 1, ClipNorm: 1, Levels: 4, Trials: 30, FloorTrials: 400, Coin: Fair}
	for _, c := range []struct{ users, cohort, want uint64 }{
		{10, 10, 300 + 800}, {4, 10, 300 + 800}, {12, 10, 360 + 800}, {0, 0, 800},
	} {
		if got := p.NoiseTrials(c.users, c.cohort); got != c.want {
			t.Errorf("NoiseTrials(%d, %d) = %d, want %d", c.users, c.cohort, got, c.want)
		}
	}
	if got := p.Noise().Intruded(2); got != 460 {
		t.Errorf("an intruder sees two users behind %d trials, want their own 60 and one floor of 400", got)
	}
}

// TestReportBytes is the plaintext size: fixed width, packed, padded to bytes.
func TestReportBytes(t *testing.T) {
	for _, c := range []struct {
		dim  int
		most uint64
		want int
	}{{1, 1, 1}, {100, 19 + 26, 75}, {784, 3, 196}, {3, 4 + 4, 2}, {3, 255 + 1, 4}} {
		if got := ReportBytes(c.dim, c.most); got != c.want {
			t.Errorf("%d counts of at most %d: %d bytes, want %d", c.dim, c.most, got, c.want)
		}
	}
}

func TestCoinFromFloat(t *testing.T) {
	for _, p := range []float64{0.5, 0.25, 3.0 / 1024, 0x1p-24, 1 - 0x1p-24} {
		c, err := CoinFromFloat(p)
		if err != nil || c.Float() != p {
			t.Errorf("CoinFromFloat(%v) = %v, %v", p, c, err)
		}
	}
	for _, p := range []float64{0, 1, -0.5, 1.5, 0.1, 1.0 / 3, 0x1p-25, 1 - 0x1p-25, 0x1.8p-24, math.NaN(), math.Inf(1),
		math.Inf(-1), 5e-324} {
		if c, err := CoinFromFloat(p); err == nil {
			t.Errorf("CoinFromFloat(%v) = %v, want an error", p, c)
		}
	}
}

// Section 2 of the paper's vector sum at m = 200, g = 12, b = 9, p = 1/2: 12.5 L^2 and at most 1.389 L^2.
func TestVariance(t *testing.T) {
	p := Params{Dim: 7, ClipNorm: 3, Levels: 12, Trials: 9, Coin: Fair}
	v := p.Variance(200, 200*9)
	if l2 := p.ClipNorm * p.ClipNorm; math.Abs(v.Privacy-12.5*l2) > 1e-9 || math.Abs(v.RoundingMax-50.0/36*l2) > 1e-9 {
		t.Errorf("variance %+v, want 12.5 and 1.389 times 9", v)
	}
}

// E exp(t (X - p)) <= exp(t^2 s2/2) for one flip, over all t that matter, and s2 is not wasted: it is between the
// variance and a quarter, and touched somewhere.
func TestCoinSubGaussian(t *testing.T) {
	for _, c := range []Coin{1, 1000, 1 << 20, 1 << 22, Fair / 2, Fair - 9, Fair - 8, Fair - 1, Fair, Fair + 1,
		Fair + 1000, 3 << 22, 1<<CoinBits - 1} {
		p, s2 := c.Float(), c.SubGaussian()
		if s2 < p*(1-p) || s2 > 0.25 {
			t.Errorf("coin %v: %v outside [%v, 0.25]", c, s2, p*(1-p))
		}
		tight := math.Inf(1)
		for x := -60.0; x <= 60; x += 1.0 / 64 {
			if x == 0 {
				continue
			}
			// log of the moment generating function, without overflow
			log := -p*x + math.Log1p(p*math.Expm1(x))
			if slack := s2 - 2*log/(x*x); slack < -1e-9 {
				t.Errorf("coin %v: at t = %v the proxy %v is too small by %v", c, x, s2, -slack)
				break
			} else {
				tight = min(tight, slack)
			}
		}
		if tight > 0.01 {
			t.Errorf("coin %v: the proxy %v is at least %v larger than needed", c, s2, tight)
		}
	}
}
