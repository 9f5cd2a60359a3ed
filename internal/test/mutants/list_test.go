package mutants

import "slices"

// The promises on which the guarantee rests, broken one at a time.
var mutants = slices.Concat(noiseMutants, laterMutants, operatorMutants, helperMutants, rogueMutants)

// From the device's noise to what is charged for it.
var noiseMutants = []mutant{
	{
		name: "half of a device's noise is left out", file: "randomizer/vectorsum.go", pkg: "internal/sim", tests: "TestTheorem32_NoiseIsAsPlanned",
		edits: []edit{
			{"uint32(bits.OnesCount64(w&mask))", "uint32(bits.OnesCount64(w&mask)/2)"},
		},
	},
	{
		name: "the back floor is left out", file: "shuffle/mixer.go", pkg: "shuffle", tests: "TestMixerNoiseLaw", quick: true,
		edits: []edit{
			{`	if m.floor != nil {
		m.addNoise(m.floor)
	}
	r := Release`, "\tr := Release"},
		},
	},
	{
		name: "missing users' noise is not topped up", file: "shuffle/mixer.go", pkg: "shuffle", tests: "TestMixerNoiseLaw",
		edits: []edit{
			{`		m.addNoise(top)
`, `		_ = top
`},
		},
	},
	{
		name: "there is no id set", file: "shuffle/idset.go", pkg: "shuffle", tests: "TestMixerCountsEachUserOnce",
		edits: []edit{
			{"\tif *slot == id {", "\tif s.taken < 0 {"},
		},
	},
	{
		name: "a mixer releases under the minimum", file: "shuffle/mixer.go", pkg: "shuffle", tests: "TestMixerBelowMinimumChangesNothing",
		edits: []edit{
			{`	if m.users < m.cfg.Minimum {
		return Release`, `	if m.users == 0 {
		return Release`},
		},
	},
	{
		name: "the report id is not authenticated", file: "stream/seal/context.go", pkg: "stream/seal", tests: "TestOneCiphertextOneID",
		edits: []edit{
			{`		return ids[0]
`, `		return nil
`},
		},
	},
	{
		name: "a batch without a claim", file: "shuffle/stage/collect.go", pkg: "shuffle/stage", tests: "TestCrashAtEveryCall",
		edits: []edit{
			{"\treturn &marking{environment: p.environment, release: out}, nil", "\treturn &releasing{environment: p.environment, release: out}, nil"},
		},
	},
	{
		name: "the learner announces before it commits", file: "learner/service/edit.go", pkg: "learner/service", tests: "TestCrashAtEveryEffect",
		edits: []edit{
			{`	if err := s.config.Store.Commit(ctx, step.next, step.entries, kept...); err != nil {
		if back`, `	if len(step.next.NextRound) > 0 {
		_ = s.broker.put(ctx, s.config.Task.Round(stream.Round(r+1)), step.next.NextRound, r+1)
	}
	if err := s.config.Store.Commit(ctx, step.next, step.entries, kept...); err != nil {
		if back`},
		},
	},
	{
		name: "a round that was asked at a withdrawn model teaches the model", file: "learner/service/core.go", pkg: "learner/service", tests: "TestRollBack",
		edits: []edit{
			{"	if out.record.Unused { // and", "	if false { // and"},
		},
	},
	{
		name: "the record of a round is not in its commit", file: "learner/service/edit.go", pkg: "learner/service", tests: "TestRollBackAndKills",
		edits: []edit{
			{"step.next, step.entries, kept...); err", "step.next, step.entries); err"},
		},
	},
	{
		name: "a device publishes before its charge is durable", file: "stream/device/sender.go", pkg: "stream/device", tests: "TestDeathAtEveryWrite",
		edits: []edit{
			{`	if got := s.do(effect{call: write, change: change}); got.err != nil {
		return fmt.Errorf("charge`, `	if got := (result{}); got.err != nil {
		return fmt.Errorf("charge`},
		},
	},
	{
		name: "a commit is acknowledged before it is on disk", file: "state/pebblestore/store.go", pkg: "state/pebblestore", tests: "TestReportedCommitIsDurable",
		edits: []edit{
			{"pebble.Sync", "pebble.NoSync"},
		},
	},
	{
		name: "a round over the budget is reserved", file: "state/ledger.go", pkg: "state", tests: "TestBudget",
		edits: []edit{
			{"total.Epsilon > budget.Epsilon ||", "total.Epsilon > 2*budget.Epsilon ||"},
		},
	},
	{
		name: "what a row says is not clipped", file: "learner/report/statistic.go", pkg: "learner/report", tests: "TestMomentsAndFrames|TestEveryRowIsWithinTheNorm",
		edits: []edit{
			{"	convex.Clip(statistic, e.c.ClipNorm)\n", ""},
		},
	},
	{
		name: "the ball of a unit of several is that of one alone", file: "randomizer/params.go", pkg: "randomizer", tests: "TestUnitsStayInTheirBalls",
		edits: []edit{
			{"return radius(p.Levels) / p.vectors()", "return radius(p.Levels)"},
		},
	},
	{
		name: "a report takes more units than it is of", file: "randomizer/vectorsum.go", pkg: "randomizer", tests: "TestAddRefuses",
		edits: []edit{
			{"if v.added == v.params.vectors() {", "if v.added < 0 {"},
		},
	},
	{
		name: "the device does not hear of the units", file: "stream/manifest/mechanism.go", pkg: "internal/run/audits", tests: "TestAuditOfBlocks",
		edits: []edit{
			{"		Units: m.Units, Window: m.Window, ", "		Window: m.Window, "},
		},
	},
	{
		name: "a unit of K is charged for L/K where it moves 2L/K", file: "randomizer/accounting/mechanism.go", pkg: "randomizer/accounting",
		tests: "TestLocalSamples|TestTheoremA_NeverBelowExactAttack",
		edits: []edit{
			{"float64(m.Levels)/float64(m.Units)*(1+1e-15)", "float64(m.Levels)/float64(2*m.Units)"},
		},
	},
	{
		name: "units are not charged for", file: "randomizer/accounting/release.go", pkg: "randomizer/accounting", tests: "TestLocalReliesOnItsOwnTrials",
		edits: []edit{
			{"Rounds: rounds, Units: r.Units,", "Rounds: rounds,"},
		},
	},
	{
		name: "the noise of others counts under local", file: "randomizer/accounting/release.go", pkg: "randomizer/accounting", tests: "TestLocalReliesOnItsOwnTrials",
		edits: []edit{
			{"		honest = r.Trials // everybody", "		honest = max(honest, r.Trials) // everybody"},
		},
	},
	{
		name: "an operator is charged as one look", file: "randomizer/accounting/release.go", pkg: "randomizer/accounting",
		tests: "TestSplitIsNotPan|TestSplitNeverBelowExactAttack|TestSplitAdversaries",
		edits: []edit{
			{"[]Mechanism{view(behind, r.Rounds)}", "[]Mechanism{view(behind, 1), view(2*behind, max(1, r.Rounds-1))}[:min(2, r.Rounds)]"},
		},
	},
	{
		name: "an operator sees one participation of several", file: "randomizer/accounting/repeated.go", pkg: "randomizer/accounting",
		tests: "TestSplitNeverBelowExactAttack|TestSplitAdversaries",
		edits: []edit{
			{"worst([]turns{{times, held}})", "worst([]turns{{times - 1, seen}, {1, held}})"},
		},
	},
	{
		name: "an operator does not know its own floor", file: "randomizer/accounting/release.go", pkg: "randomizer/accounting",
		tests: "TestOperatorSeesTheTotalBehindOneFloor|TestSplitNeverBelowExactAttack|TestSplitAdversaries",
		edits: []edit{
			{"behind := r.FloorTrials // the", "behind := 2 * r.FloorTrials // the"},
		},
	},
	{
		name: "floors of split are searched as those of pan", file: "randomizer/accounting/search.go", pkg: "randomizer/accounting",
		tests: "TestSplitPlans",
		edits: []edit{
			{"	if s.q.rounds() == 1 || s.q.Trust.HasOperators() {", "	if s.q.Trust.HasOperators() {\n		second = learner\n	}\n	if s.q.rounds() == 1 || s.q.Trust.HasOperators() {"},
		},
	},
	{
		name: "the lattice of split is below the best", file: "randomizer/accounting/search.go", pkg: "randomizer/accounting",
		tests: "TestSplitPlans",
		edits: []edit{
			{"	if !above && g&(g+1) != 0 {", "	if g&(g+1) != 0 {"},
		},
	},
	{
		name: "a silo's own noise is for the units that were planned", file: "randomizer/accounting/own.go", pkg: "randomizer/accounting", tests: "TestOwnTrials",
		edits: []edit{
			{"		own[i].Units = units\n", ""},
		},
	},
	{
		name: "a silo does not say how many units it has", file: "stream/device/consent/own.go", pkg: "stream/device", tests: "TestAllRowsInEveryRound",
		edits: []edit{
			{"own, err := s.within(of, b)", "own, err := ownSilo{s.Agreement, max(1, of[0].Units)}.within(of, b)"},
		},
	},
	{
		name: "half of a silo's noise is left out", file: "randomizer/vectorsum.go", pkg: "randomizer", tests: "TestDecodeOfUnits",
		edits: []edit{
			{"NewBinomial(uint64(p.Trials), p.Coin)", "NewBinomial(uint64(p.Trials/2), p.Coin)"},
		},
	},
	{
		name: "noise is centred beside the window", file: "randomizer/vectorsum.go", pkg: "randomizer", tests: "TestWindowClamps|TestDecodeOfUnits",
		edits: []edit{
			{"int64(w/2)-int64(v.params.Trials/2)", "int64(w/2)-int64(v.params.Trials/2)+1"},
		},
	},
	{
		name: "noise is topped up under local", file: "randomizer/params.go", pkg: "shuffle", tests: "TestWindowIsNotToppedUp",
		edits: []edit{
			{"		cohort = 0\n", "		cohort += 0\n"},
		},
	},
	{
		name: "a block is drawn again where a broker denies it", file: "stream/device/reports.go", pkg: "stream/device", tests: "TestFinalReportsAreDrawnOnce",
		edits: []edit{
			{"Final: p.contract.agreement.Final,", "Final: false,"},
		},
	},
	{
		name: "what a person says is not clipped", file: "learner/report/statistic.go", pkg: "learner/report", tests: "TestEveryUnitIsWithinTheNorm|TestUnitsAndBlocksAreMeans",
		edits: []edit{
			{"	convex.Clip(e.unit[:at], e.c.Norm())\n", "	_ = at\n"},
		},
	},
	{
		name: "a person says the sum over rows", file: "learner/report/statistic.go", pkg: "learner/report", tests: "TestUnitsAndBlocksAreMeans",
		edits: []edit{
			{"	share := 1 / float64(len(rows))\n", "	share := 1.0\n"},
		},
	},
	{
		name: "a minimiser is charged for half of its move", file: "randomizer/ball.go", pkg: "randomizer", tests: "TestMinimizersMoveByTheirShift",
		edits: []edit{
			{"float64(g)/float64(units)*(1+0x1p-18)", "float64(g)/float64(2*units)*(1+0x1p-18)"},
		},
	},
	{
		name: "what snapping adds to a minimiser's move is not charged for", file: "randomizer/ball.go", pkg: "randomizer", tests: "TestMinimizersMoveByTheirShift",
		edits: []edit{
			{"math.Sqrt(dim)*0x1p-24", "0*math.Sqrt(dim)*0x1p-24"},
		},
	},
	{
		name: "a vector is charged for half of its sensitivity", file: "randomizer/ball.go", pkg: "randomizer", tests: "TestMinimizersMoveByTheirShift",
		edits: []edit{
			{"float64(g)*min(ratio, 1)", "float64(g)*min(ratio/2, 1)"},
		},
	},
	{
		name: "the reversal of a curve is forgotten", file: "randomizer/accounting/curve.go", pkg: "randomizer/accounting", tests: "TestCurveAtEveryEpsilon|TestGaussianCurve",
		edits: []edit{
			{"	if eps < 0 {\n", "	if eps = math.Abs(eps); eps < 0 {\n"},
		},
	},
	{
		name: "a Laplace draw has half of its scale", file: "randomizer/laplace.go", pkg: "randomizer", tests: "TestDiscreteLaplaceLaw|TestTruncatedLaplaceLaw", quick: true,
		edits: []edit{
			{"(u + l.t*v) / l.s", "(u + l.t*v) / (2 * l.s)"},
		},
	},
	{
		name: "a Laplace draw is zero twice as often", file: "randomizer/laplace.go", pkg: "randomizer", tests: "TestDiscreteLaplaceLaw|TestTruncatedLaplaceLaw",
		edits: []edit{
			{"		if y != 0 { //", "		if y >= 0 { //"},
		},
	},
	{
		name: "a coin of a power of e goes on for one too many", file: "randomizer/laplace.go", pkg: "randomizer", tests: "TestDiscreteLaplaceLaw|TestTruncatedLaplaceLaw",
		edits: []edit{
			{"below(src, k) != 0", "below(src, k) > 1"},
		},
	},
	{
		name: "a release that comes less often is compared as if it came as often", file: "randomizer/accounting/deletion.go", pkg: "randomizer/accounting",
		tests: "TestDeletionNeverBelowExactAttack|TestDeletionNoise",
		edits: []edit{
			{"eps+math.Log(q/p)-1e-15", "eps-1e-15"},
		},
	},
	{
		name: "the profile of a test counts half of the releases", file: "randomizer/accounting/testrelease.go", pkg: "randomizer/accounting", tests: "TestScoreTestNeverBelowExactAttack",
		edits: []edit{
			{"return p * release.Delta(", "return p / 2 * release.Delta("},
		},
	},
	{
		name: "a halt is for free", file: "randomizer/accounting/deletion.go", pkg: "randomizer/accounting", tests: "TestDeletionNeverBelowExactAttack",
		edits: []edit{
			{"	d := p + halts\n", "	halts = 0\n	d := p\n"},
		},
	},
	{
		name: "a test of scores costs nothing", file: "randomizer/accounting/testrelease.go", pkg: "randomizer/accounting", tests: "TestScoreTestNeverBelowExactAttack|TestCalibrateTest",
		edits: []edit{
			{"return t.Noise.Rate() * float64", "return 0 * t.Noise.Rate() * float64"},
		},
	},
}
