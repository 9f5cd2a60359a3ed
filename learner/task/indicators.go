package task

// indicators reports for each coordinate, the intercept left out, whether it is 0 or 1 in every event, so that it
// equals its square. This follows from the declaration: kinds indicator, categorical, hashed and bucketed, crosses, and
// products of indicators alone qualify. A coordinate with a scale other than 1 does not, and no coordinate does if the
// norm bound is below the largest norm, because vectors are then scaled down. Events with more nonzero values than
// declared, which are also scaled down, are ignored here.
func (m *FeatureMap) indicators() []bool {
	out := make([]bool, len(m.coordinate))
	for j := range out {
		out[j] = !m.shrinks && m.coordinate[j].indicator()
	}
	return out
}

func (c *Coordinate) indicator() bool {
	if c.Factor != 1 || c.Offset != 0 {
		return false
	}
	switch c.Kind {
	case string(Numeric), string(Hats), string(Text), FourierOf, PublicOf:
		return false
	case Crossed:
		return c.Derived.Scaled == nil || c.Derived.Scaled.Kind == Indicator
	case Product:
		for _, s := range c.Sources {
			if s.Kind != Indicator {
				return false
			}
		}
	}
	return true
}
