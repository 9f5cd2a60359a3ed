package mutants

// The promises that the guarantee stands on, broken one at a time, from the device to the learner's disk.
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
		name: "the learner announces before it commits", file: "learner/service/service.go", pkg: "learner/service", tests: "TestCrashAtEveryEffect",
		edits: []edit{
			{`	if err := s.config.Store.Commit(ctx, step.next, step.entries); err != nil {
		if back`, `	if len(step.next.NextRound) > 0 {
		_ = s.put(ctx, s.config.Task.Round(stream.Round(r+1)), step.next.NextRound, r+1)
	}
	if err := s.config.Store.Commit(ctx, step.next, step.entries); err != nil {
		if back`},
		},
	},
	{
		name: "a device publishes before its charge is durable", file: "stream/client/publish.go", pkg: "stream/client", tests: "TestDeathAtEveryWrite",
		edits: []edit{
			{`	if err := l.Store.Write(change); err != nil {
		return fmt.Errorf("charge`, `	if err := error(nil); err != nil {
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
}
