package task

// indicators reports for each coordinate, the intercept left out, whether it is 0 or 1 in every event, so that
// its square is itself. The declaration decides: kinds indicator, categorical, hashed and bucketed, crosses,
// and products of indicators alone are; with a scale other than 1 nothing is, and with a norm bound below the
// largest norm, for which vectors are scaled down, none at all. An event with more nonzero values than declared
// is scaled down too, and does not count here.
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
