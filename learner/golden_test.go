package learner_test

import (
	"encoding/hex"
	"testing"

	"github.com/panlearn/panlearn/learner"
)

// The layout of version 1 and the arithmetic, on every architecture: three steps of each method, in hexadecimal. A
// change here makes running tasks unreadable.
func TestGoldenStates(t *testing.T) {
	for name, want := range golden {
		a := build(t, name, 2, 4)
		for k := range 3 {
			g := []float64{0.1 * float64(k+1), -1 / float64(k+3)}
			if err := a.Step(learner.Estimate{Gradient: g, Users: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if got := hex.EncodeToString(bytesOf(t, a)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

var golden = map[string]string{
	"psgd": "010102000000040000000000000003000000000000000000000000000040333333333333d33f0000000000000000" +
		"0ad7a3703d0ac7bf14ae47e17a14ce3f7a14ae47e17aa4bf777777777777b73f",
	"pagd": "01020200000004000000000000000300000000000000000000000000004000000000000008400000000000000000" +
		"deddddddddddcdbf3fe9933ee993ce3f832dd8822dd8c2bf666666666666c63f",
	"pagd strongly convex": "0102020000000400000000000000030000000000000000000000000000400000000000000840000000000000e03f" +
		"43485a639763c5bf80a4d368475fc73ffd167983cce8bbbf46348aba05d0c13f",
}
