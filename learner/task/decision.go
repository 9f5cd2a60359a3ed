package task

// Classification reports whether the label is a class, -1 or +1, rather than a number.
func (m *FeatureMap) Classification() bool { return m.label.classes != nil }

// Decide turns a score, the inner product of a mapped row with the parameters, into a prediction: the class +1 where it is
// positive and -1 elsewhere, or for regression the target in the units of the data.
func (m *FeatureMap) Decide(score float64) float64 {
	if m.Classification() {
		if score > 0 {
			return 1
		}
		return -1
	}
	return m.label.affine.invert(score)
}

// Target turns the label of a mapped row back into what Decide is compared with: the class, or the number in the units
// of the data (moved into the declared bounds).
func (m *FeatureMap) Target(label float64) float64 {
	if m.Classification() {
		return label
	}
	return m.label.affine.invert(label)
}
