package task

import (
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// SetDefaults fills in the default of every field that is zero and has one, and brings the honest fraction into its plain
// form. Parse has done it already. Intercept is left
// alone, because 0 means none.
func (s *Spec) SetDefaults() {
	or(&s.Events.MaxLine, 1<<16)
	if s.Events.Format == CSV {
		or(&s.Events.Separator, ",")
	}
	if v := s.Features.Vector; v != nil {
		or(&v.Scale, Raw)
		or(&v.MaxNonzeros, v.Dimension)
	}
	for i := range s.Features.Columns {
		c := &s.Features.Columns[i]
		switch c.Kind {
		case Numeric:
			if or(&c.Scale, Symmetric); c.Scale == Standard {
				or(&c.Clip, 3)
			}
		case Categorical:
			or(&c.Unknown, Invalid)
		}
	}
	if s.traits().Labels == convex.Numbers {
		or(&s.Label.Scale, Symmetric)
	}
	or(&s.Model.Set, convex.SetKinds()[0])
	or(&s.Model.ClipNorm, 1)
	or(&s.Privacy.Trust, "shuffle")
	or(&s.Privacy.HonestFraction, "1")
	if f, err := accounting.ParseFraction(s.Privacy.HonestFraction); err == nil {
		s.Privacy.HonestFraction = f.String() // one spelling: 0.90 and 9/10 are 0.9
	}
	or(&s.Privacy.Coin, "fair")
	or(&s.Privacy.Profile, "numeric")
	or(&s.Privacy.Seal, "hpke")
	or(&s.Schedule.Algorithm, s.conditions().Default())
	or(&s.Schedule.Deadline, Duration(60*time.Second))
	s.setDefaultValidation()
}

func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
