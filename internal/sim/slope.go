package sim

import (
	"math"

	"github.com/panlearn/panlearn/learner/schedule"
)

// A Slope is the exponent of n in the excess risk of one method, fitted and proved.
type Slope struct {
	Method string  `json:"method"`
	Fitted float64 `json:"fitted"` // least squares of log(mean excess risk) over log(users)
	// Privacy and Sampling are the exponents of the two terms of the theorem's rate: what privacy adds, and what learning from n
	// users costs anyway. The rate is the slower of the two in the end.
	Privacy  float64 `json:"privacy"`
	Sampling float64 `json:"sampling"`
}

// Slopes fits every method of a series. A series of one point has slopes 0.
func Slopes(points []Point) []Slope {
	if len(points) == 0 {
		return nil
	}
	out := make([]Slope, len(points[0].Risks))
	for i, r := range points[0].Risks {
		var n, sx, sy, sxx, sxy float64
		for _, p := range points {
			x, y := math.Log(float64(p.Users)), math.Log(p.Risks[i].Mean)
			n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		}
		m, _ := schedule.Of(r.Method)
		out[i].Method, out[i].Privacy, out[i].Sampling = r.Method, m.Privacy, m.Sampling
		if n > 1 {
			out[i].Fitted = (n*sxy - sx*sy) / (n*sxx - sx*sx)
		}
	}
	return out
}
