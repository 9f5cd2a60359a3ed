package mutants

// The broken promises, from the device to the learner's disk.
var mutants = []mutant{
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
		name: "the front floor is left out", file: "shuffle/mixer.go", pkg: "shuffle", tests: "TestMixerLaysTheFrontFloorFirst",
		edits: []edit{
			{`			return nil, err
		}
		m.addNoise(m.floor)`, `			return nil, err
		}`},
		},
	},
	{
		name: "one generator draws both floors", file: "shuffle/mixer.go", pkg: "shuffle", tests: "TestMixerErasesGenerators",
		edits: []edit{
			{`	m := &Mixer{
`, `	src := cfg.Entropy()
	cfg.Entropy = func() rand.Source { return src }
	m := &Mixer{
`},
			{`	defer erase(src)
`, ""},
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
		name: "a report does not belong to its round", file: "stream/seal/context.go", pkg: "stream/seal", tests: "TestNothingOpensChanged",
		edits: []edit{
			{`	info = append(info, c.ManifestHash[:]...)
`, `	info = append(info, make([]byte, len(c.ManifestHash))...)
`},
		},
	},
	{
		name: "the key is kept after Close", file: "shuffle/stage/attempt.go", pkg: "shuffle/stage", tests: "TestNothingIsLeftAfterClose",
		edits: []edit{
			{`	a.key.Erase()
`, ""},
		},
	},
	{
		name: "a batch without a claim", file: "shuffle/stage/collect.go", pkg: "shuffle/stage", tests: "TestCrashAtEveryCall",
		edits: []edit{
			{"\treturn &claiming{facts: p.facts, release: out}, nil", "\treturn &releasing{facts: p.facts, release: out}, nil"},
		},
	},
	{
		name: "who loses the claim releases all the same", file: "shuffle/stage/claim.go", pkg: "shuffle/stage", tests: "TestWhoLosesTheClaimReleasesNothing",
		edits: []edit{
			{`	if r.put.Ours {
		return &releasing`, `	if r.put.Ours || true {
		return &releasing`},
		},
	},
	{
		name: "the learner announces before it commits", file: "learner/service/service.go", pkg: "learner/service", tests: "TestCrashAtEveryEffect",
		edits: []edit{
			{`	if err := s.config.Store.Commit(ctx, step.next, step.entries); err != nil {
		if back`, `	if len(step.next.NextRound) > 0 {
		_ = s.put(ctx, s.config.Task.Round(r+1), step.next.NextRound, r+1)
	}
	if err := s.config.Store.Commit(ctx, step.next, step.entries); err != nil {
		if back`},
		},
	},
	{
		name: "a device publishes before its charge is durable", file: "stream/client/flight.go", pkg: "stream/client", tests: "TestDeathAtEveryWrite",
		edits: []edit{
			{`	if err := g.Store.Write(change); err != nil {
		return fmt.Errorf("charge`, `	if err := error(nil); err != nil {
		return fmt.Errorf("charge`},
		},
	},
	{
		name: "a publish without an answer is refunded", file: "stream/client/participation/record.go", pkg: "stream/client/participation", tests: "TestPossiblyCountedNeverGoesAgain|TestDecide",
		edits: []edit{
			{"s.Attempt != c.Attempt || s.Acked != s.Sent || s.Lowest <= c.Cutoff", "s.Attempt != c.Attempt || s.Lowest <= c.Cutoff"},
		},
	},
	{
		name: "under pan a device answers the attempt after a dead one", file: "stream/client/participation/record.go", pkg: "stream/client", tests: "TestPanDropsOut",
		edits: []edit{
			{"\t\treturn attempt == last || (!floors && attempt.Number", "\t\treturn attempt == last || (attempt.Number"},
		},
	},
	{
		name: "under pan another attempt of the same number is answered", file: "stream/client/participation/record.go",
		pkg: "stream/client/participation", tests: "TestAttemptsOfOneNumber",
		edits: []edit{
			{"\t\treturn attempt == last || (!floors", "\t\treturn attempt.Number == last.Number || (!floors"},
		},
	},
	{
		name: "the ledger's chain is not checked", file: "state/chain.go", pkg: "state/pebblestore", tests: "TestTamperedValues",
		edits: []edit{
			{"\tcase e.Previous != c.head.Hash:", "\tcase e.Previous != c.head.Hash && e.Sequence == 0:"},
		},
	},
	{
		name: "the cutoff is the last report's, not the highest", file: "shuffle/stage/attempt.go", pkg: "shuffle/stage", tests: "TestNothingIsOpenedAfterTheCutoff",
		edits: []edit{
			{"a.cutoff = max(a.cutoff, m.Sequence)", "a.cutoff = m.Sequence"},
		},
	},
	{
		name: "the learner takes a batch of another manifest", file: "learner/service/core.go", pkg: "learner/service", tests: "TestBatchesThatAreRefused",
		edits: []edit{
			{"\tif !bytes.Equal(b.ManifestHash, c.manifest[:]) {", "\tif len(b.ManifestHash) != len(c.manifest) {"},
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
			{"after.Epsilon > budget.Epsilon ||", "after.Epsilon > 2*budget.Epsilon ||"},
		},
	},
	{
		name: "a claimed round is not marked", file: "shuffle/stage/marks.go", pkg: "shuffle/stage", tests: "TestLostClaimAndBatch",
		edits: []edit{
			{"\t\tours, err := m.facts.Marks.Claim(m.facts.taskHash, a.Round, m.facts.Instance)", "\t\tours, err := true, error(nil)"},
		},
	},
	{
		name: "a round that another process marked is claimed", file: "shuffle/stage/marks.go", pkg: "shuffle/stage", tests: "TestMarksOnTwoFaces",
		edits: []edit{
			{"\t\tif !ours {", "\t\tif !ours && err != nil {"},
		},
	},
	{
		name: "the totals over tasks are not asked", file: "stream/client/consent/cost.go", pkg: "stream/client", tests: "TestTotalOverTasks",
		edits: []edit{
			{"p.MaxTotalEpsilon > 0 && !(withEpsilon <= p.MaxTotalEpsilon*(1+tolerance))", "p.MaxTotalEpsilon > 0 && total != total"},
		},
	},
	{
		name: "a learner on an older state folder goes on", file: "learner/service/survey.go", pkg: "learner/service", tests: "TestEveryPairOfCopies",
		edits: []edit{
			{`	case p.decided > at.Round:
`, `	case p.decided > at.Round+1<<32:
`},
		},
	},
	{
		name: "a device accounts one round of a phase of several", file: "stream/client/consent/agreement.go", pkg: "stream/client", tests: "TestInteractiveCost|TestCheckTask",
		edits: []edit{
			{"manifest.PhaseRound(a.Task.Plan, f), f.RoundsPerUser)", "manifest.PhaseRound(a.Task.Plan, f), 1)"},
		},
	},
	{
		name: "a learner charges one round of a phase of several", file: "learner/service/charge.go", pkg: "learner/service", tests: "TestRoundsOfPhases|TestBudgetOfAPhase",
		edits: []edit{
			{"manifest.Release(r, honest, at.Phase.RoundsPerUser)", "manifest.Release(r, honest, min(1, at.Phase.RoundsPerUser))"},
		},
	},
	{
		name: "a device answers more rounds than its policy takes", file: "stream/client/consent/agreement.go", pkg: "stream/client", tests: "TestCheckTask",
		edits: []edit{
			{"case f.RoundsPerUser > a.policy.maxRoundsPerUser():", "case f.RoundsPerUser > t.policy.maxRoundsPerUser() && f == nil:"},
		},
	},
	{
		name: "a device answers for moments that nobody declared", file: "stream/client/consent/agreement.go", pkg: "stream/client", tests: "TestMomentsAreAsDeclared",
		edits: []edit{
			{"case moments != (a.Scaling != nil):", "case !moments && t.Scaling != nil:"},
		},
	},
	{
		name: "a device takes any scales", file: "stream/client/consent/round.go", pkg: "stream/client", tests: "TestScalesAreChecked",
		edits: []edit{
			{"if err := a.Scaling.CheckScales(r.Scales); err != nil {", "if err := a.Scaling.CheckScales(r.Scales); err != nil && r == nil {"},
		},
	},
	{
		name: "what a row says is not clipped", file: "learner/report/statistic.go", pkg: "learner/report", tests: "TestGradientThenScores|TestMomentsAndScales",
		edits: []edit{
			{"	convex.Clip(statistic, e.c.ClipNorm)\n", ""},
		},
	},
	{
		name: "users of the moments are planned twice", file: "learner/planning/moments.go", pkg: "learner/planning", tests: "TestPlanOfMoments",
		edits: []edit{
			{"	p.Users -= p.MomentUsers\n", ""},
		},
	},
	{
		name: "an event answers a step twice", file: "stream/client/participation/record.go", pkg: "stream/client/participation", tests: "TestRoundsOfOnePhase|TestOnePhaseAndNoMoreThanItsRounds",
		edits: []edit{
			{"(d.Step <= p.Draw.Step || d.Phase < p.Draw.Phase):", "(d.Step < p.Draw.Step || d.Phase < p.Draw.Phase):"},
		},
	},
	{
		name: "an event answers more rounds than its phase has", file: "stream/client/participation/record.go", pkg: "stream/client/participation", tests: "TestRoundsOfOnePhase|TestOnePhaseAndNoMoreThanItsRounds",
		edits: []edit{
			{" && p.Rounds < p.Draw.Most\n", "\n"},
		},
	},
	{
		name: "who was counted in one phase answers another", file: "stream/client/participation/record.go", pkg: "stream/client/participation", tests: "TestRoundsOfOnePhase|TestOnePhaseAndNoMoreThanItsRounds",
		edits: []edit{
			{"case p.State == Charged, p.State != Fresh && p.State != Uncounted && !again:", "case p.State == Charged:"},
		},
	},
	{
		name: "a device answers a step that its learner repeats", file: "stream/client/refresh.go", pkg: "stream/client", tests: "TestHostileSteps",
		edits: []edit{
			{"if err := g.terms.CheckOrder(g.current.message, m); err != nil {", "if err := g.terms.CheckOrder(g.current.message, m); err != nil && g.over() {"},
		},
	},
	{
		name: "a later round is published before it is durable", file: "stream/client/flight.go", pkg: "stream/client", tests: "TestUsersAnswerEveryRoundOfTheirPhase|TestDeathInAnInteractivePhase",
		edits: []edit{
			{"	if err := g.Store.Write(change); err != nil {\n\t\treturn fmt.Errorf(\"charge",
				"	if r.later() {\n\t\tchange.Events = nil\n\t}\n	if err := g.Store.Write(change); err != nil {\n\t\treturn fmt.Errorf(\"charge"},
		},
	},
	{
		name: "a void round of an interactive phase is asked again", file: "learner/service/core.go", pkg: "learner/service", tests: "TestRoundsOfPhases",
		edits: []edit{
			{"at.Interactive() { // its", "at.Interactive() && b == nil { // its"},
		},
	},
	{
		name: "a user answers other than one round or all", file: "stream/manifest/plan.go", pkg: "stream/manifest", tests: "TestCheckTask",
		edits: []edit{
			{"case f.RoundsPerUser > 1 && uint64(f.RoundsPerUser) != f.Rounds:", "case uint64(f.RoundsPerUser) > f.Rounds:"},
		},
	},
}
