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
	Rounds      uint64 // of gradients, which the other users answer; cohorts grow as the root of the round's number
	Method      Method
	Unit        float64 // standard deviation of one coordinate of a released sum at clip norm 1, for users who answer one round
}

const (
	momentShare = 0.1 // of the users; also their share where there is a matrix
	matrixShare = 0.4

	leastRounds, mostRounds = 2, 8 // of classes
	roundsFactor            = 4
	matrixRounds            = 4
	diagonalRounds          = 12   // of numbers without a matrix
	matrixLimit             = 0.15 // of d unit/n, the noise of d sums beside the users
)

// Layout divides the users. unit is the standard deviation of one coordinate of a released sum at clip norm 1.
func (p Problem) Layout(unit float64) Layout {
	n := float64(p.Users)
	l := Layout{MomentUsers: max(1, uint64(math.Round(momentShare*n))), Unit: unit}
	switch {
	case p.classes() > 0:
		l.Rounds = p.classRounds(unit)
	case !p.uniform() && float64(p.dim())*unit <= matrixLimit*n:
		l.MatrixUsers = max(1, uint64(math.Round(matrixShare*n)))
		l.Rounds, l.Method = matrixRounds, Descent
	default:
		l.Rounds = diagonalRounds
	}
	if left := p.Users - min(p.Users, l.MomentUsers+l.MatrixUsers); !p.Interactive {
		l.Rounds = max(1, min(l.Rounds, left))
	}
	return l
}

// classRounds is round(4 q^(1/3)) within [2, 8]: q users for each unit of noise that a gradient has.
func (p Problem) classRounds(unit float64) uint64 {
	noise := unit * float64(p.dim()) * math.Sqrt(float64(p.classes()-1))
	t := math.Round(roundsFactor * math.Cbrt(float64(p.Users)/noise))
	return uint64(min(max(t, leastRounds), mostRounds))
}

// gradientNoise is the standard deviation, at clip norm 1, of one coordinate of a gradient of all users of the layout's mean round.
func (p Problem) gradientNoise(l Layout) float64 {
	t := float64(l.Rounds)
	if p.Interactive {
		t = math.Sqrt(t)
	}
	return l.Unit * t / float64(p.Users)
}
