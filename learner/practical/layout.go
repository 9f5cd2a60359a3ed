package practical

import "math"

// A Method is the kind of the steps of the gradient rounds.
type method uint8

const (
	// Acceleration is accelerated stochastic approximation with curvature v, see method.PAGD.
	Acceleration method = iota
	// Descent is plain gradient steps of one size; the model is the mean of the last two points, weighted by the users of
	// their rounds.
	Descent
)

// A Layout divides the users among the rounds.
type Layout struct {
	MomentUsers uint64 // of the first cohort, counted as in Problem.Users
	MatrixUsers uint64 // of the second-moment matrix; 0: no matrix
	Rounds      uint64 // of gradients, which the other users answer
	Method      method
	Base, Top   uint64 `json:",omitempty"` // smallest and largest cohort, for a task without an end; else 0
	// Unit is the standard deviation of one coordinate of a sum of gradients at clip norm 1, for users who answer one
	// round.
	Unit  float64
	Units uint64 `json:",omitempty"` // of a report, for silos whose stream does not end; 0 means 1
}

const (
	// bounds on the share of users who report moments; the noise of a moment decides
	leastMoments, mostMoments = 0.1, 0.2
	momentNoise               = 0.1 // target noise of a moment
	matrixShare               = 0.4
	matrixLimit               = 0.2 // of d unit/n, the noise of d sums relative to the users
	matrixDim                 = 512 // largest d with a matrix, because of the length of a report
	matrixRounds              = 4

	leastRounds                  = 2
	classRounds, mostClassRounds = 4, 8   // for each cube root of n/(d unit)
	numberRounds, mostRounds     = 5, 12  // and of classes whose users answer every round
	evenRounds, evenAgainRounds  = 2.5, 5 // used instead of classRounds for even rounds: with new rows, with the same

	// Users for each unit of a gradient's noise, n/(d unit), from which classes take a second and a third round from a
	// declared start. The unit is about 9/epsilon of a stage's noise: n epsilon/d is 20 and 200 there.
	secondFromStart, thirdFromStart = 20. / 9, 200. / 9
)

// Layout divides the users. unit is the standard deviation of one coordinate of a released sum at clip norm 1, before
// Radius.
func (p Problem) Layout(unit float64) Layout {
	s := p.shape()
	n := float64(s.Users)
	l := Layout{Unit: unit * s.radius}
	switch {
	case s.classes > 0:
		most := float64(mostClassRounds)
		if s.Interactive {
			most = mostRounds
		}
		q := n / (l.Unit * float64(s.dim) * math.Sqrt(float64(s.classes-1)))
		if l.Rounds = rounds(s.factor(), most, q); s.Start != nil {
			few := fromStart(q)
			if s.Interactive && few > 1 { // a round of the same users adds less noise
				few *= 2
			}
			l.Rounds = min(l.Rounds, few)
		}
	case s.matrixable && float64(s.dim)*unit <= s.matrixLimit()*n:
		l.MatrixUsers = max(1, uint64(math.Round(matrixShare*n)))
		l.Rounds, l.Method = matrixRounds, Descent
	default:
		l.Rounds = rounds(numberRounds, mostRounds, n/(l.Unit*float64(s.dim)))
	}
	if q := n / (l.Unit * float64(s.dim)); s.Start != nil && s.classes == 0 {
		l.Rounds = min(l.Rounds, max(1, fromStart(q)-1))
	}
	if s.Even {
		return s.even(l)
	}
	share := min(max(unit*s.MomentsNorm()/(momentNoise*n), leastMoments), mostMoments)
	l.MomentUsers = max(1, uint64(math.Round(share*n)))
	if left := s.Users - min(s.Users, l.MomentUsers+l.MatrixUsers); !s.Interactive {
		l.Rounds = max(1, min(l.Rounds, left))
	}
	return l
}

// even gives every round an equal share of the units, or of each user's budget.
func (s shape) even(l Layout) Layout {
	l.MomentUsers = s.Users
	if !s.Interactive {
		l.Rounds = max(1, min(l.Rounds, s.Users-min(s.Users, l.looks())))
		l.MomentUsers = max(1, s.Users/(l.Rounds+l.looks()))
	}
	if l.MatrixUsers > 0 {
		l.MatrixUsers = l.MomentUsers
	}
	return l
}

func (l Layout) looks() uint64 {
	if l.MatrixUsers > 0 {
		return 2
	}
	return 1
}

// factor returns the number of rounds of classes for each cube root of n/(d unit).
func (s shape) factor() float64 {
	switch {
	case s.Even && s.Interactive:
		return evenAgainRounds
	case s.Even:
		return evenRounds
	}
	return classRounds
}

// matrixLimit returns the largest noise of d sums, relative to the users, for which the plan has a matrix. For even
// rounds it is scaled: at the limit the noise in the matrix's mean is as large as with matrixShare of the users.
func (s shape) matrixLimit() float64 {
	if !s.Even {
		return matrixLimit
	}
	return matrixLimit / matrixShare / s.parts(matrixRounds+2)
}

// parts returns the ratio of the noise of one of that many equal rounds to the noise of a single round that
// everybody answers.
func (s shape) parts(rounds float64) float64 {
	if s.Interactive {
		return math.Sqrt(rounds)
	}
	return rounds
}

// rounds returns factor times the cube root of q, the users for each unit of a gradient's noise, from
// leastRounds to most.
func rounds(factor, most, q float64) uint64 {
	return uint64(min(max(math.Round(factor*math.Cbrt(q)), leastRounds), most))
}

// fromStart returns the largest number of rounds for classes after a declared start; numbers have one less. Little is
// left to learn, and each round of few users adds more noise than it removes error.
func fromStart(q float64) uint64 {
	switch {
	case q < secondFromStart:
		return 1
	case q < thirdFromStart:
		return 2
	}
	return 3
}

// gradientNoise returns the standard deviation, at clip norm 1, of one coordinate of a mean gradient over the users of
// the layout's average round.
func (s shape) gradientNoise(l Layout) float64 {
	t := float64(l.Rounds)
	if s.Even {
		t += float64(l.looks())
	}
	return l.Unit * s.parts(t) / float64(s.Users)
}
