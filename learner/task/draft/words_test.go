package draft

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWordsOfThePublicModel: init promises no gain that is a loss, says where the public model is no better than the
// best constant, and does not call it trees where these have no share.
func TestWordsOfThePublicModel(t *testing.T) {
	for seed := range uint64(12) {
		for _, number := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 3))
			noise := seed%3 == 0
			path := write(t, "rows.csv", lines("a,b,c,y", 300, func(int) string {
				a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
				score := r.NormFloat64()
				if !noise {
					score += 2*a - b
				}
				if number {
					return fmt.Sprintf("%.3f,%.3f,%.3f,%.3f", a, b, c, score)
				}
				return fmt.Sprintf("%.3f,%.3f,%.3f,%s", a, b, c, [...]string{"no", "yes"}[indicate(score > 0)])
			}))
			d, err := FromSample(path, besideFiles(300))
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(d.Notes, "\n")
			if strings.Contains(notes, "lower by -") || strings.Contains(notes, "share of 100 %") {
				t.Errorf("seed %d: notes\n%s", seed, notes)
			}
			if worse := strings.Contains(notes, "no better than the best constant"); worse && !noise {
				t.Errorf("seed %d: of a label that follows from two columns:\n%s", seed, notes)
			} else if worse {
				t.Logf("seed %d: %s", seed, notes)
			}
		}
	}
}
