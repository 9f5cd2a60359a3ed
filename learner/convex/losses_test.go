package convex_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

func TestNewLoss(t *testing.T) {
	for _, want := range []convex.Loss{convex.Logistic{}, convex.Squared{}, convex.Absolute{}, convex.Hinge{}} {
		got, err := convex.NewLoss(want.Name())
		if err != nil || got != want || got.Parameters(7) != 7 {
			t.Errorf("%s: got %v, %v", want.Name(), got, err)
		}
	}
	if l := (convex.Softmax{Classes: 3}); l.Parameters(7) != 21 {
		t.Errorf("softmax: %d parameters, want 21", l.Parameters(7))
	}
	if _, err := convex.NewLoss("hinged"); err == nil || !strings.Contains(err.Error(), `"hinged"`) {
		t.Errorf("unknown name: error %v must name it", err)
	}
}

// TestEveryLossIsDrawn: what holds for all losses is tested on declared, so a row of the table that is not there is
// tested by nothing.
func TestEveryLossIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	for _, d := range declared {
		drawn[d.Name] = true
	}
	for _, name := range convex.LossNames() {
		if !drawn[name] {
			t.Errorf("%s is not in declared", name)
		}
	}
}

func TestDeclarationGivesTheLoss(t *testing.T) {
	for _, c := range []struct {
		text string
		want convex.Loss
	}{
		{`{"name":"softmax","classes":10}`, convex.Softmax{Classes: 10}},
		{`{"name":"huber","width":0.5}`, given(convex.Declaration{Name: "huber", Width: 0.5})},
		{`{"name":"quantile","level":0.25}`, given(convex.Declaration{Name: "quantile", Level: 0.25})},
		{`{"name":"smoothed-hinge","width":2}`, given(convex.Declaration{Name: "smoothed-hinge", Width: 2})},
		{`{"name":"poisson","score_bound":3,"max_count":12}`, given(convex.Declaration{Name: "poisson", ScoreBound: 3,
			MaxCount: 12})},
		{`{"name":"logistic"}`, convex.Logistic{}},
	} {
		var d convex.Declaration
		if err := json.Unmarshal([]byte(c.text), &d); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(d); err != nil || string(again) != c.text {
			t.Errorf("%s becomes %s, %v", c.text, again, err)
		}
		if l, err := d.New(); err != nil || !reflect.DeepEqual(l, c.want) {
			t.Errorf("%s: %#v, %v, want %#v", c.text, l, err, c.want)
		}
	}
}

func TestDeclarationRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		d    convex.Declaration
		want string
	}{
		{convex.Declaration{}, `""`},
		{convex.Declaration{Name: "softmax"}, "classes: 0"},
		{convex.Declaration{Name: "softmax", Classes: 1}, "classes: 1"},
		{convex.Declaration{Name: "softmax", Classes: -3}, "classes: -3"},
		{convex.Declaration{Name: "softmax", Classes: 1 << 30}, "classes: 1073741824"},
		{convex.Declaration{Name: "logistic", Classes: 2}, "classes"},
		{convex.Declaration{Name: "quantile"}, "level: 0"},
		{convex.Declaration{Name: "quantile", Level: 1}, "level: 1"},
		{convex.Declaration{Name: "quantile", Level: nan}, "level: NaN"},
		{convex.Declaration{Name: "absolute", Level: 0.5}, "level"},
		{convex.Declaration{Name: "huber"}, "width: 0"},
		{convex.Declaration{Name: "huber", Width: inf}, "width: +Inf"},
		{convex.Declaration{Name: "smoothed-hinge", Width: -1}, "width: -1"},
		{convex.Declaration{Name: "hinge", Width: 1}, "width"},
		{convex.Declaration{Name: "poisson"}, "score_bound: 0"},
		{convex.Declaration{Name: "poisson", ScoreBound: 301}, "score_bound: 301"},
		{convex.Declaration{Name: "poisson", ScoreBound: 3, MaxCount: -1}, "max_count: -1"},
		{convex.Declaration{Name: "poisson", ScoreBound: 3, MaxCount: inf}, "max_count: +Inf"},
		{convex.Declaration{Name: "squared", ScoreBound: 3}, "score_bound"},
		{convex.Declaration{Name: "squared", MaxCount: 3}, "max_count"},
		{convex.Declaration{Name: "poisson", ScoreBound: 3, ClassWeights: []float64{1, 2}}, "class_weights"},
		{convex.Declaration{Name: "absolute", ClassWeights: []float64{1, 2}}, "class_weights"},
		{convex.Declaration{Name: "logistic", ClassWeights: []float64{1, 2, 3}}, "class_weights: [1 2 3]"},
		{convex.Declaration{Name: "logistic", ClassWeights: []float64{}}, "class_weights: []"},
		{convex.Declaration{Name: "logistic", LabelNoise: 0.5}, "label_noise: 0.5"},
		{convex.Declaration{Name: "logistic", LabelNoise: nan}, "label_noise: NaN"},
		{convex.Declaration{Name: "hinge", LabelNoise: 0.1}, "not convex"},
		{convex.Declaration{Name: "softmax", Classes: 2, LabelNoise: 0.1}, "not convex"},
	} {
		l, err := c.d.New()
		if err == nil || l != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: loss %v, error %v, want one with %q", c.d, l, err, c.want)
		}
	}
}

func TestLabels(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		loss     convex.Loss
		accepted []float64
		refused  []float64
	}{
		{convex.Logistic{}, signs, []float64{0, 2, nan, inf}},
		{convex.Hinge{}, signs, []float64{0, 2, nan, inf}},
		{given(convex.Declaration{Name: "smoothed-hinge", Width: 1}), signs, []float64{0, 2, nan, inf}},
		{convex.Squared{}, []float64{0, -1e300}, []float64{nan, -inf}},
		{given(convex.Declaration{Name: "huber", Width: 1}), []float64{0, -1e300}, []float64{nan, -inf}},
		{convex.Absolute{}, []float64{0, -1e300}, []float64{nan, -inf}},
		{given(convex.Declaration{Name: "quantile", Level: 0.5}), []float64{0, -1e300}, []float64{nan, -inf}},
		{convex.Softmax{Classes: 3}, []float64{0, 1, 2}, []float64{-1, 3, 0.5, nan, inf, -inf}},
		{given(convex.Declaration{Name: "poisson", ScoreBound: 1}), []float64{0, 1, 1e15}, []float64{-1, 0.5, nan, inf}},
		{given(convex.Declaration{Name: "poisson", ScoreBound: 1, MaxCount: 9}), []float64{0, 9}, []float64{-1, 0.5, 10, nan,
			inf}},
		{declare(t, convex.Declaration{Name: "logistic", LabelNoise: 0.1}), signs, []float64{0, 2, nan, inf}},
		{envelope(t, convex.Softmax{Classes: 3}, 1), []float64{0, 1, 2}, []float64{-1, 3, nan}},
	} {
		for _, y := range c.accepted {
			if err := c.loss.CheckLabel(y); err != nil {
				t.Errorf("%s: label %v: %v", c.loss.Name(), y, err)
			}
		}
		for _, y := range c.refused {
			if c.loss.CheckLabel(y) == nil {
				t.Errorf("%s: label %v accepted", c.loss.Name(), y)
			}
		}
	}
}

// TestValues: values that a calculator gives.
func TestValues(t *testing.T) {
	e := func(y float64) convex.Example { return convex.Example{Value: []float64{2}, Label: y} }
	for _, c := range []struct {
		loss           convex.Loss
		theta          []float64
		label          float64
		value          float64
		gradient, prox []float64 // prox with b = 4, so that ||x||^2/b = 1
	}{
		{convex.Squared{}, []float64{1}, 5, 4.5, []float64{-6}, []float64{1.75}},
		{given(convex.Declaration{Name: "huber", Width: 1}), []float64{1}, 5, 2.5, []float64{-2}, []float64{1.5}},
		{convex.Absolute{}, []float64{1}, 5, 3, []float64{-2}, []float64{1.5}},
		{convex.Absolute{}, []float64{1}, 2, 0, []float64{0}, []float64{1}},
		{given(convex.Declaration{Name: "quantile", Level: 0.75}), []float64{1}, 5, 2.25, []float64{-1.5}, []float64{1.375}},
		{given(convex.Declaration{Name: "quantile", Level: 0.75}), []float64{1}, -2, 1, []float64{0.5}, []float64{0.875}},
		{convex.Hinge{}, []float64{1}, -1, 3, []float64{2}, []float64{0.5}},
		{convex.Hinge{}, []float64{0.25}, 1, 0.5, []float64{-2}, []float64{0.5}},
		{given(convex.Declaration{Name: "smoothed-hinge", Width: 1}), []float64{0.25}, 1, 0.125, []float64{-1},
			[]float64{0.375}},
		{given(convex.Declaration{Name: "smoothed-hinge", Width: 1}), []float64{-1}, 1, 2.5, []float64{-2}, []float64{-0.5}},
		{convex.Logistic{}, []float64{0}, 1, math.Ln2, []float64{-1}, nil},
		{convex.Softmax{Classes: 4}, make([]float64, 4), 2, math.Log(4), []float64{0.5, 0.5, -1.5, 0.5}, nil},
		{given(convex.Declaration{Name: "poisson", ScoreBound: 3}), []float64{0}, 1, 0, []float64{0}, []float64{0}},
		{given(convex.Declaration{Name: "poisson", ScoreBound: 1}), []float64{1}, 0, 2 * math.E, []float64{2 * math.E}, nil},
	} {
		if v := c.loss.Value(c.theta, e(c.label)); math.Abs(v-c.value) > 1e-15*(1+c.value) {
			t.Errorf("%s: value %v, want %v", c.loss.Name(), v, c.value)
		}
		if g := gradient(c.loss, c.theta, e(c.label)); convex.Norm(minus(g, c.gradient)) > 1e-15*(1+convex.Norm(g)) {
			t.Errorf("%s: gradient %v, want %v", c.loss.Name(), g, c.gradient)
		}
		if c.prox == nil {
			continue
		}
		if u := prox(c.loss.(convex.Proximal), c.theta, e(c.label), 4); convex.Norm(minus(u, c.prox)) > 1e-15 {
			t.Errorf("%s: prox %v, want %v", c.loss.Name(), u, c.prox)
		}
	}
}
