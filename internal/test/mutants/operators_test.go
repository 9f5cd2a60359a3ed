package mutants

// The promises of a device to the users of a task of two operators.
var operatorMutants = []mutant{
	{
		name: "learner and leader vouch for the helper", file: "stream/device/consent/policy.go", pkg: "stream/device", tests: "TestNobodyVouchesForOperators|TestPinOfTheStoreIsNotEnough", quick: true,
		edits: []edit{{"		return len(p.StageKey) > 0 && len(p.HelperKey) > 0\n", "		return len(p.StageKey) > 0 && len(p.HelperKey)+len(p.LearnerKey) > 0\n"}},
	},
	{
		name: "what a store pinned vouches for two operators", file: "stream/device/consent/policy.go", pkg: "stream/device", tests: "TestPinOfTheStoreIsNotEnough",
		edits: []edit{{"	case manifest.HasOperators(t.GetPlan()):\n		return Refuse(", "	case pinned == nil && manifest.HasOperators(t.GetPlan()):\n		return Refuse("}},
	},
	{
		name: "an Open is taken without its Join", file: "stream/device/pairing.go", pkg: "stream/device", tests: "TestUnpairedAttempts",
		edits: []edit{{"	return r.open != nil && (r.join != nil || !manifest.HasOperators(r.place.Plan))", "	return r.open != nil && (r.join != nil || manifest.HasOperators(r.place.Plan) || r.open.Attempt > 0)"}},
	},
	{
		name: "a Join of another Open is taken", file: "stream/device/consent/records.go", pkg: "stream/device", tests: "TestUnpairedAttempts",
		edits: []edit{{"	case !bytes.Equal(j.OpenHash, hash[:]) || o.Round", "	case len(hash) == 0 || o.Round"}},
	},

	{
		name: "a ninth attempt is answered", file: "stream/device/participation/record.go", pkg: "stream/device", tests: "TestNineAttempts", quick: true,
		edits: []edit{{" && uint64(n) < uint64(of.Most)", ""}},
	},
	{
		name: "each attempt of two operators is a report of its own", file: "stream/device/participation/record.go", pkg: "stream/device", tests: "TestNineAttempts|TestDecisionsVectors",
		edits: []edit{{"len(p.Sends) == 0 || !of.Alike", "true || !of.Alike"}},
	},
	{
		name: "an attempt that died decides what became of an event", file: "stream/device/participation/record.go", pkg: "stream/device", tests: "TestNineAttempts|TestDecisionsVectors",
		edits: []edit{{"		if p.Draw.Shared() && s.Attempt != c.Attempt {", "		if false {"}},
	},
	{
		name: "an attempt counts from its Open", file: "stream/device/round.go", pkg: "stream/device", tests: "TestAttemptsCountFromTheirJoin|TestLateJoinIsNoHerd",
		edits: []edit{{"		begun = max(begun, r.join.StartedUnixMs)", "		begun = min(begun, r.join.StartedUnixMs)"}},
	},

	{
		name: "an id is the same in all attempts", file: "stream/device/shares.go", pkg: "stream/device", tests: "TestNextAttempt|TestNineAttempts",
		edits: []edit{
			{"	first = split.ID(b.record().Draw.Secret, d.attempt.Open, d.attempt.Join)", "	first = [16]byte(b.record().Draw.Secret[:])"},
			{"		id := split.ID(draw.Secret, d.attempt.Open, d.attempt.Join)", "		id := [16]byte(draw.Secret[:])"},
		},
	},
	{
		name: "a sharing is shown in the next attempt again", file: "stream/device/shares.go", pkg: "stream/device", tests: "TestNextAttempt|TestMessagesAreKept",
		edits: []edit{{"b.message != nil && b.of == d.attempt", "b.message != nil"}},
	},
}
