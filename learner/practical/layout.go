package practical

import "math"

// A Method is how the gradient rounds step.
type Method uint8

const (
	// Acceleration is accelerated stochastic approximation with curvature v, see method.PAGD.
	Acceleration Method = iota
	// Descent is plain gradient steps of one size; the model is the mean of the last two points, weighted by the users of their rounds.
	Descent
)

// A Layout says what users are asked.
type Layout struct {
	MomentUsers uint64 // of the first cohort
	MatrixUsers uint64 // of the second-moment matrix; 0: none is asked
	Rounds      uint64 // of gradients, which the other users answer
	Method      Method
	Unit        float64 // standard deviation of one coordinate of a released sum at clip norm 1, for users who answer one round
}

const (
	leastMoments, mostMoments = 0.1, 0.2 // shares of the users who are asked for moments, as many as the noise of one needs
	momentNoise               = 0.1      // that is enough
	matrixShare               = 0.4
	matrixLimit               = 0.2 // of d unit/n, the noise of d sums beside the users
	matrixDim                 = 512 // largest d of which it is asked, for the length of a report
	matrixRounds              = 4

	leastRounds                  = 2
	classRounds, mostClassRounds = 4, 8  // for each cube root of n/(d unit)
	numberRounds, mostRounds     = 5, 12 // and of classes whose users answer every round
)

// Layout divides the users. unit is the standard deviation of one coordinate of a released sum at clip norm 1.
func (p Problem) Layout(unit float64) Layout {
	n := float64(p.Users)
	share := min(max(unit*p.MomentsNorm()/(momentNoise*n), leastMoments), mostMoments)
	l := Layout{MomentUsers: max(1, uint64(math.Round(share*n))), Unit: unit}
	switch {
	case p.classes() > 0:
		most := float64(mostClassRounds)
		if p.Interactive {
			most = mostRounds
		}
		l.Rounds = rounds(classRounds, most, n/(unit*float64(p.dim())*math.Sqrt(float64(p.classes()-1))))
	case p.matrixable() && float64(p.dim())*unit <= matrixLimit*n:
		l.MatrixUsers = max(1, uint64(math.Round(matrixShare*n)))
		l.Rounds, l.Method = matrixRounds, Descent
	default:
		l.Rounds = rounds(numberRounds, mostRounds, n/(unit*float64(p.dim())))
	}
	if left := p.Users - min(p.Users, l.MomentUsers+l.MatrixUsers); !p.Interactive {
		l.Rounds = max(1, min(l.Rounds, left))
	}
	return l
}

// matrixable says that the matrix may be asked where users are enough.
func (p Problem) matrixable() bool { return p.classes() == 0 && !p.uniform() && p.dim() <= matrixDim }

// rounds are so many as q users for each unit of a gradient's noise are worth.
func rounds(factor, most, q float64) uint64 {
	return uint64(min(max(math.Round(factor*math.Cbrt(q)), leastRounds), most))
}

// gradientNoise is the standard deviation, at clip norm 1, of one coordinate of a gradient of all users of the layout's mean round.
func (p Problem) gradientNoise(l Layout) float64 {
	t := float64(l.Rounds)
	if p.Interactive {
		t = math.Sqrt(t)
	}
	return l.Unit * t / float64(p.Users)
}
