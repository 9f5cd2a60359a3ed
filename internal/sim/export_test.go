package sim

// Optimum returns the minimiser of the objective, theta* where there is no ridge. A copy.
func (s *Synthetic) Optimum() []float64 { return append([]float64(nil), s.optimum...) }
