package mutants

// The promises of each operator to the users of its task, against the other one.
var rogueMutants = []mutant{
	{
		name: "a leader's key is used beside no folder", file: "shuffle/stage/leaderfile/folder.go",
		pkg: "shuffle/stage/leaderfile", tests: "TestPartsOfAFolder",
		edits: []edit{{"		if err != nil {\n			return nil, false, err\n		}\n		identity, err := seal.LoadIdentity(path)\n",
			"		if err != nil {\n			own, _ := seal.LoadIdentity(path)\n			return own.Public(), false, f.fs.Replace(f.named(rosterFile), roster.New(own.Public()).Encode(rosterTitle))\n		}\n		identity, err := seal.LoadIdentity(path)\n"}},
	},
	{
		name: "an attempt is held without asking the desk again", file: "shuffle/helper/attempt.go",
		pkg: "internal/test/operators", tests: "TestRogueLeader",
		edits: []edit{{"h.desk.Join(a.x); !ok || h.closing", "h.desk.Join(a.x); !ok && h.over || h.closing"}},
	},
	{
		name: "a Share that the leader shows says nothing", file: "shuffle/helper/exchange.go",
		pkg: "internal/test/operators", tests: "TestRogueLeader",
		edits: []edit{{"	_ = h.shows(s) //", "	//"}},
	},
	{
		name: "a request has no bound", file: "shuffle/split/messages.go", pkg: "internal/test/operators",
		tests: "TestRogueLeaderReports",
		edits: []edit{{"	return users <= maxUsers && size", "	return users >= 0 || size"}},
	},
	{
		name: "a second Share of one attempt is taken", file: "shuffle/stage/leaderfile/leaderfile.go",
		pkg: "internal/test/operators", tests: "TestRogueHelper", quick: true,
		edits: []edit{{"				return bytes.Equal(standing, signed), err\n",
			"				return len(standing) > 0 || bytes.Equal(standing, signed), err\n"}},
	},
	{
		name: "a second share of one attempt is prepared", file: "shuffle/stage/leaderfile/leaderfile.go",
		pkg: "internal/test/operators", tests: "TestForkedLeader",
		edits: []edit{{"standing != nil && bytes.Equal(standing.Append(nil), p.Append(nil)), err",
			"standing != nil && len(bytes.Clone(nil)) == 0, err"}},
	},
	{
		name: "totals of one round are released as another's", file: "shuffle/stage/finishing.go",
		pkg: "internal/test/operators", tests: "TestRogueHelper",
		edits: []edit{{" && stream.Hash(own.Note.Manifest) != p.manifest {",
			" && stream.Hash(own.Note.Manifest) == (stream.Hash{}) {"}},
	},
	{
		name: "a mark has a round void that the folder holds", file: "shuffle/stage/find.go", pkg: "internal/test/operators",
		tests: "TestLateLook",
		edits: []edit{{"{ return p.operators() && !p.folder }", "{ return p.operators() && p.folder }"}},
	},
	{
		name: "a Share has a round void that the folder holds", file: "shuffle/stage/finishing.go",
		pkg: "internal/test/operators", tests: "TestLateLook",
		edits: []edit{{"	case finding == split.Void && !p.sure:", "	case finding == split.Void && p.marked > 0 && !p.sure:"}},
	},
	{
		name: "attempts follow each other without a pause", file: "shuffle/stage/pairing.go", pkg: "internal/test/operators",
		tests: "TestRogueHelperTires",
		edits: []edit{{"			return again(p.environment, a.round, a.number+1, now), nil\n		}\n		p.helper",
			"			return openAttempt(p.environment, a.round, a.number+1, now)\n		}\n		p.helper"}},
	},
}
