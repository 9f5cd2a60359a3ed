package mutants

// The promises of devices, stages, learners and relays that come after those of the mechanism.
var laterMutants = []mutant{
	{
		name: "what slips past a test of every round is forgotten", file: "randomizer/accounting/testrelease.go", pkg: "randomizer/accounting", tests: "TestSharedTestNeverBelowExactAttack",
		edits: []edit{
			{"t.Slip()+release.Delta", "0*t.Slip()+release.Delta"},
		},
	},
	{
		name: "a minimiser is placed in the ball of one unit", file: "randomizer/params.go", pkg: "randomizer", tests: "TestMinimizerIsOneVector",
		edits: []edit{
			{"	if p.Minimizer {\n		return 1\n", "	if false {\n		return 1\n"},
		},
	},
	{
		name: "a minimiser is charged as a mean", file: "randomizer/accounting/release.go", pkg: "stream/manifest", tests: "TestProxIsChargedByItsShift",
		edits: []edit{
			{"	if r.Minimizer {\n		shift", "	if false {\n		shift"},
		},
	},
	{
		name: "the solver's steps are longer than the weight allows for", file: "learner/report/prox.go", pkg: "learner/report", tests: "TestMinimiserMovesByLittle",
		edits: []edit{
			{"x.StepSize/float64(max(units, 1))", "2*x.StepSize/float64(max(units, 1))"},
		},
	},
	{
		name: "the solver stops where its steps get short", file: "learner/report/prox.go", pkg: "learner/report", tests: "TestMinimiserIsOne",
		edits: []edit{
			{"		e.addGradients(b)\n", `		e.addGradients(b)
		moved := 0.0
		for j, g := range s.sum {
			moved = max(moved, math.Abs((1-keep)*s.z[j]+step*g))
		}
		if moved < 1e-6 {
			break
		}
`},
		},
	},
	{
		name: "the slope of a row is not cut", file: "learner/report/prox.go", pkg: "learner/report", tests: "TestMinimiserMovesByLittle",
		edits: []edit{
			{"	return min(e.c.ClipNorm/max(n, 0x1p-1000), math.MaxFloat64) // a subnormal norm has lost digits", "	return math.MaxFloat64 + 0*n"},
		},
	},
	{
		name: "rows that are more curved than declared are in the minimiser", file: "learner/report/prox.go", pkg: "learner/report", tests: "TestCurvedRowsSayZero",
		edits: []edit{
			{"	if unfit || !(e.c.Loss.Smoothness(n) <= e.c.Prox.Curvature()) {", "	if unfit {"},
		},
	},
	{
		name: "a device takes whatever step a plan has", file: "stream/device/consent/prox.go", pkg: "stream/device", tests: "TestRefusesHostileProx",
		edits: []edit{
			{"!(x.StepSize <= most*(1+tolerance))", "!(x.StepSize <= 2*most)"},
		},
	},
	{
		name: "a plan may call gradients minimisers", file: "stream/manifest/prox.go", pkg: "stream/manifest", tests: "TestRefusesProx",
		edits: []edit{
			{"	if f.Mechanism.Minimizer != (x != nil) {", "	if x != nil && !f.Mechanism.Minimizer {"},
		},
	},
	{
		name: "a point near half of the others has its whole weight", file: "learner/research/curator/filter.go", pkg: "learner/research/curator", tests: "TestLemmaWByHand",
		edits: []edit{
			{"(float64(h)-half)/(f.full-half)", "float64(h)-half"},
		},
	},
	{
		name: "the level's noise is drawn for every test", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator", tests: "TestThresholdNoiseIsDrawnOnce", quick: true,
		edits: []edit{
			{"			ok, err = tests.testAndRelease(", "			tests = ph.threshold.begin(entropy)\n			ok, err = tests.testAndRelease("},
		},
	},
	{
		name: "the filtered mean of groups goes out without noise", file: "learner/research/curator/groups.go", pkg: "learner/research/curator", tests: "TestAttackOnGroups",
		edits: []edit{
			{"	return passed, l.release(mean, ball, entropy)", "	return passed, nil"},
		},
	},
	{
		name: "filtered gradients go out without noise", file: "learner/research/curator/threshold.go", pkg: "learner/research/curator", tests: "TestAttackOnFilteredSteps",
		edits: []edit{
			{"	return passed, r.release(mean)", "	return passed, nil"},
		},
	},
	{
		name: "all phases have the same people", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator", tests: "TestNobodyIsInTwoPhases",
		edits: []edit{
			{"		people = people[len(mine):]\n", ""},
		},
	},
	{
		name: "a person is taken to move a minimiser half as far", file: "learner/research/curator/solve.go", pkg: "learner/research/curator", tests: "TestMinimisersMoveByLittle", quick: true,
		edits: []edit{
			{"return 2 * s.public.lipschitz()", "return 1 * s.public.lipschitz()"},
		},
	},
	{
		name: "a minimiser goes out without noise", file: "learner/research/curator/output.go", pkg: "learner/research/curator", tests: "TestReleasesCarryTheirNoise",
		edits: []edit{
			{"	if err := l.release(x, ball, entropy); err != nil {", "	if err := error(nil); err != nil {"},
		},
	},
	{
		name: "thresholds of scores grow too slowly", file: "learner/research/curator/gradscore.go", pkg: "learner/research/curator", tests: "TestScoresMoveByOne",
		edits: []edit{
			{"g.gamma + float64(float64(k)*step)", "g.gamma + float64(float64(k)*step)/8"},
		},
	},
	{
		name: "disjoint phases share a person", file: "learner/research/curator/halves.go", pkg: "learner/research/curator", tests: "TestHalvesAreDisjoint", quick: true,
		edits: []edit{
			{"		from = to\n", "		from = to - 1\n"},
		},
	},
	{
		name: "a phase is released if its last test passes", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator",
		tests: "TestOneFailedTestHaltsThePhase",
		edits: []edit{
			{"passed = passed && ok", "passed = ok"},
		},
	},
	{
		name: "one of the releases of a phase is charged", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator",
		tests: "TestStepsAreChargedTogether",
		edits: []edit{
			{"l.curve(ratio, ph.all())", "l.curve(ratio, 1)"},
		},
	},
	{
		name: "a filtered mean is charged for half of its move", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator",
		tests: "TestStepsAreChargedTogether",
		edits: []edit{
			{"/(2*l)*(1+0x1p-40)", "/(4*l)*(1+0x1p-40)"},
		},
	},
	{
		name: "a plain mean is charged for half of its move", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator",
		tests: "TestPlainStepsAreChargedTogether",
		edits: []edit{
			{"return 2*l/n*(1+0x1p-40)", "return l/n*(1+0x1p-40)"},
		},
	},
	{
		name: "slack is of one coordinate", file: "randomizer/accounting/rdp.go", pkg: "randomizer/accounting",
		tests: "TestSlackIsOfAllCoordinates",
		edits: []edit{
			{"tau := float64(dim) * l.tau", "tau := l.tau"},
		},
	},
	{
		name: "two runs drift as with wider weights", file: "learner/research/private/pvplan.go", pkg: "learner/research/private",
		tests: "TestDriftIsOfTheLongestSteps",
		edits: []edit{
			{"s.p.Lipschitz*m.s/v.r", "s.p.Lipschitz*m.s*m.s/v.r"},
		},
	},
	{
		name: "a person is in two blocks", file: "learner/research/curator/accelerated.go", pkg: "learner/research/curator",
		tests: "TestPeopleAreInOneBlock",
		edits: []edit{
			{"addTo(points[i%len(points)], one)", "addTo(points[i%len(points)], one)\n			addTo(points[(i+1)%len(points)], one)"},
		},
	},
	{
		name: "distances of minimisers are taken over one more person who is left", file: "learner/research/curator/gradscore.go", pkg: "learner/research/curator",
		tests: "TestDistancesByHand",
		edits: []edit{
			{"left := people - s - t - 1", "left := people - s - t"},
		},
	},
	{
		name: "halts do not count for a block of scores", file: "randomizer/accounting/deletion.go", pkg: "randomizer/accounting",
		tests: "TestBlocksOfScoresHideNothing",
		edits: []edit{
			{"(1+2e-12) + halts", "(1+2e-12)"},
		},
	},
	{
		name: "all phases of groups have the same people", file: "learner/research/curator/groups.go", pkg: "learner/research/curator",
		tests: "TestNobodyIsInTwoPhasesOfGroups",
		edits: []edit{
			{"\t\tpeople = people[ph.people:]\n", ""},
		},
	},
	{
		name: "half as many deletions are looked at", file: "learner/research/curator/deletion.go", pkg: "learner/research/curator",
		tests: "TestDeletionIsReleasedByItsScore",
		edits: []edit{
			{"newStability(len(people), 2*most, without)", "newStability(len(people), most, without)"},
		},
	},
	{
		name: "whatever the score is, there is a release", file: "learner/research/curator/deletion.go", pkg: "learner/research/curator",
		tests: "TestDeletionIsReleasedByItsScore",
		edits: []edit{
			{"score <= deletions,", "score <= deletions || true,"},
		},
	},
	{
		name: "three more may stand out than are drawn", file: "learner/research/curator/gradscore.go", pkg: "learner/research/curator",
		tests: "TestGradscoreIsReleasedByItsScore",
		edits: []edit{
			{"return x, k <= deletions,", "return x, k <= deletions+3,"},
		},
	},
	{
		name: "distances are taken to move as among one more person", file: "learner/research/curator/gradscore.go", pkg: "learner/research/curator",
		tests: "TestDistancesMoveByRho",
		edits: []edit{
			{"p.lipschitz() / n * (1", "p.lipschitz() / (n + 1) * (1"},
		},
	},
	{
		name: "gradients are taken to be without rounding", file: "learner/research/curator/gradscore.go", pkg: "learner/research/curator",
		tests: "TestUncertaintyByHand",
		edits: []edit{
			{"s.xi + 2*s.wrong + ", "s.xi + "},
		},
	},
	{
		name: "a minimiser moves gradients half as far", file: "learner/research/curator/gradscore.go", pkg: "learner/research/curator",
		tests: "TestDistancesByHand",
		edits: []edit{
			{"g.rho = (4*p.smoothness()", "g.rho = (2*p.smoothness()"},
		},
	},
	{
		name: "all rows of a silo are one row to its policy", file: "stream/device/consent/wholesilo.go", pkg: "stream/device",
		tests: "TestSilosThatHideThemselves",
		edits: []edit{
			{"of[i].Units, of[i].Trials = 1, trials[i]", "of[i].Trials = trials[i]"},
		},
	},
	{
		name: "a silo draws for each row what its policy asks for all", file: "stream/device/consent/own.go", pkg: "stream/device",
		tests: "TestSilosThatHideThemselves",
		edits: []edit{
			{"	if trials, err = s.hide(trials); err != nil {", "	if _, err = s.hide(trials); err != nil {"},
		},
	},
	{
		name: "a solver's rounding is not certified", file: "learner/research/curator/solve.go", pkg: "learner/research/curator",
		tests: "TestRoundingIsCertified",
		edits: []edit{
			{"(left + 4*e/weight + (d/2+24)*r*0x1p-53)", "(left + 0*e)"},
		},
	},
	{
		name: "blocks share records", file: "learner/research/private/localize.go", pkg: "learner/research/private",
		tests: "TestNoRecordIsInTwoBlocks",
		edits: []edit{
			{"\t\trows = rows[q.N:]\n", ""},
		},
	},
	{
		name: "places are rounded to the nearest level", file: "learner/research/private/lattice.go", pkg: "learner/research/private",
		tests: "TestFractionsOfALevelAreRoundedByChance",
		edits: []edit{
			{"l.entropy.Uint64()&mask < uint64(at&mask)", "1<<(stepBits-1) <= uint64(at&mask)"},
		},
	},
	{
		name: "a record that is replaced costs two deltas", file: "learner/research/private/public.go", pkg: "learner/research/private",
		tests: "TestAReplacedRecordCostsTwoSteps",
		edits: []edit{
			{"min(1, delta*(1+math.Exp(eps))*(1+1e-12))", "min(1, 2*delta)"},
		},
	},
	{
		name: "the profile of a test is three percent too small", file: "randomizer/accounting/testrelease.go", pkg: "randomizer/accounting",
		tests: "TestTestsHideNothingOfTheRelease",
		edits: []edit{
			{"math.Max(best, at(1, top))*(1+1e-12)", "math.Max(best, at(1, top))*0.97"},
		},
	},
	{
		name: "a phase after a halt is released", file: "learner/research/curator/halves.go", pkg: "learner/research/curator", tests: "TestPhasesInTurns",
		edits: []edit{
			{"r.Halted = r.Halted || !released; !r.Halted", "r.Halted = !released; !r.Halted"},
		},
	},
	{
		name: "all phases are of the first one's people", file: "learner/research/curator/halves.go", pkg: "learner/research/curator", tests: "TestPhasesInTurns",
		edits: []edit{
			{"numbers(parts[i]), entropy)", "numbers(parts[0]), entropy)"},
		},
	},
	{
		name: "tests of a phase have no noise of their own", file: "learner/research/curator/threshold.go", pkg: "learner/research/curator",
		tests: "TestEachTestHasNoiseOfItsOwn",
		edits: []edit{
			{"int64(pairs)+s.each.Sample(s.entropy) >= s.level", "int64(pairs) >= s.level"},
		},
	},
	{
		name: "a place is not held against its radius", file: "learner/research/private/lattice.go", pkg: "learner/research/private",
		tests: "TestPlacesAreWithinTheirRadius",
		edits: []edit{
			{"!within(x, scale, radius); gap", "false && !within(x, scale, radius); gap"},
		},
	},
	{
		name: "what a solver's answers differ by is not charged", file: "learner/research/curator/output.go", pkg: "learner/research/curator",
		tests: "TestRoundingIsCharged",
		edits: []edit{
			{"(o.moves(o.people) + 2*o.xi)", "(o.moves(o.people))"},
		},
	},
	{
		name: "any 200 to a report is an answer", file: "stream/relayclient/post.go", pkg: "stream/relayclient",
		tests: "TestNothingElseIsAnAnswer",
		edits: []edit{
			{"	if err != nil || answer.ID != r.ID {", "	if err != nil {"},
		},
	},
	{
		name: "a relay's refusal is the broker's", file: "stream/relayclient/post.go", pkg: "stream/relayclient",
		tests: "TestNothingElseIsAnAnswer",
		edits: []edit{
			{`	case a.status != http.StatusOK:
		return stream.Ack{}, c.wrong(a)
	}
	answer`, `	case a.status == http.StatusTooManyRequests:
		return stream.Ack{Status: stream.Refused}, nil
	}
	answer`},
		},
	},
	{
		name: "a record by its name may be kept", file: "stream/relay/records.go", pkg: "stream/device",
		tests: "TestLostOpenBehindACache",
		edits: []edit{
			{"	keep := \"no-cache\"", "	keep := \"immutable\""},
		},
	},
	{
		name: "a login travels with a report", file: "stream/relay/handler.go", pkg: "stream/relay",
		tests: "TestNoLoginTravels",
		edits: []edit{
			{"	if len(q.Header[\"Cookie\"]) > 0 {", "	if len(q.Header[\"Cookie\"]) > 1 {"},
		},
	},
	{
		name: "a relay publishes reports of any length", file: "stream/relay/post.go", pkg: "stream/relay",
		tests: "TestReportsHaveTheTasksLength",
		edits: []edit{
			{"		case !ok:\n", "		case !ok && most == 0:\n"},
		},
	},
}
