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
		name: "there is no id set", file: "shuffle/mixer.go", pkg: "shuffle", tests: "TestMixerCountsEachUserOnce",
		edits: []edit{
			{"\t\tif len(m.ids) == before {", "\t\tif len(m.ids) < before {"},
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
		name: "a publish without an answer is refunded", file: "stream/client/participation.go", pkg: "stream/client", tests: "TestPossiblyCountedNeverGoesAgain|TestDecide",
		edits: []edit{
			{"s.Attempt != c.Attempt || s.Acked != s.Sent || s.Lowest <= c.Cutoff", "s.Attempt != c.Attempt || s.Lowest <= c.Cutoff"},
		},
	},
	{
		name: "under pan a device answers the attempt after a dead one", file: "stream/client/participation.go", pkg: "stream/client", tests: "TestPanDropsOut",
		edits: []edit{
			{"\t\treturn attempt == last || (attempt > last && !floors)", "\t\treturn attempt >= last"},
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
		name: "an id counts in every shard", file: "shuffle/stage/attempt.go", pkg: "shuffle/stage", tests: "TestShardReasons",
		edits: []edit{
			{"\t\tif stream.ShardOf([stream.ReportIDSize]byte(id), a.shards) != a.context.Shard {", "\t\tif stream.ShardOf([stream.ReportIDSize]byte(id), a.shards) > stream.MaxShards {"},
		},
	},
	{
		name: "the totals over tasks are not asked", file: "stream/client/ledger.go", pkg: "stream/client", tests: "TestTotalOverTasks",
		edits: []edit{
			{"p.MaxTotalEpsilon > 0 && !(total <= p.MaxTotalEpsilon*(1+tolerance))", "p.MaxTotalEpsilon > 0 && total != total"},
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
}
