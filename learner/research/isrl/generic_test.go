package isrl

import "testing"

// TestFormulasAtGenericNumbers compares with values that a script worked out from the paper's formulas, at numbers of which
// none is 1 and no two are alike, so that no power of one of them is another's.
func TestFormulasAtGenericNumbers(t *testing.T) {
	f := Federation{Silos: 25, Available: 17, Records: 1234, Dim: 50, Lipschitz: 2, Smoothness: 3, Diameter: 7,
		Deviation: 1.5, Spread: 0.7, Gap: 11, Epsilon: 0.4, Delta: 1e-6}
	strong := f
	strong.Convexity = 0.03
	steps, batches := empirical{f}.rounds(40)
	const to = 1e-9
	for what, v := range map[string][2]float64{
		"2.1, noise":                 {f.noise(300), 19.33492967017893},
		"2.1, least K":               {f.leastBatch(300), 1.322592076692276},
		"2.1, R":                     {minibatch{f}.rounds(), 22498.797323774605},
		"2.1, R, strongly convex":    {minibatch{strong}.rounds(), 20978},
		"2.1, step":                  {f.step(50000, 0.3), 0.004807625683776389},
		"2.1, step, strongly convex": {strong.step(5000, 0.3), 0.08308478445665816},
		"D.2, beta":                  {minibatch{f}.enveloped().Smoothness, 14.416534774027415},
		"D.2, beta, strongly convex": {minibatch{strong}.enveloped().Smoothness, 139.89497559677812},
		"3.1, K":                     {onePass{f}.batch(), 84.57986430746048},
		"3.1, noise":                 {onePass{f}.noise(40), 2.649401263425237},
		"3.1, V^2":                   {f.variance(40, 0.3), 0.27762254901960787},
		"3.1, lambda":                {accelerated{f, 0.2}.regularization(60), 0.008247860988423226},
		"3.1, v":                     {accelerated{f, 0.2}.steepness(60), 24.8489313201816},
		"4.1, V^2":                   {empirical{f}.variance(40, 0.3), 0.28823529411764703},
		"4.1, X":                     {empirical{f}.reach(), 77.43390119733057},
		"4.1, R":                     {steps, 28.514136188423645},
		"4.1, R of batches":          {batches, 8.817660374467577},
		"F.2, beta":                  {empirical{f}.enveloped().Smoothness, 82.23308157987545},
		"5.2, K":                     {summed{f}.batch(), 89.65265150710528},
	} {
		near(t, what, v[0], v[1], to)
	}
}
