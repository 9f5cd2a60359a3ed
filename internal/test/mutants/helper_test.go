package mutants

// The promises of a helper and its folder.
var helperMutants = []mutant{
	{
		name: "a copied folder is taken for its original", file: "shuffle/helper/folder/folder.go", pkg: "shuffle/helper/folder", tests: "TestCopiedFolder",
		edits: []edit{{"	if !place.Same(f.roster.Place) {", "	if !place.Same(place) {"}},
	},
	{
		name: "the other process of a copied machine is not told", file: "shuffle/helper/join.go", pkg: "shuffle/helper", tests: "TestCopiedMachine",
		edits: []edit{{"[]uint64{j.Round, j.Round + 1} {", "[]uint64{} {"}},
	},
	{
		name: "a release leaves before the folder has it", file: "shuffle/helper/exchange.go", pkg: "shuffle/helper", tests: "TestFullDisk", quick: true,
		edits: []edit{{"		h.failed(context.Background(), callMark, err)\n		return\n", "		h.failed(context.Background(), callMark, err)\n		mark = split.HelperMark{X: c.x, Signed: c.signed}\n"}},
	},
	{
		name: "the learner chooses the leader", file: "shuffle/helper/enlist.go", pkg: "shuffle/helper", tests: "TestTasksRefused",
		edits: []edit{{"	case !f.LeaderKey.Equal(ed25519.PublicKey(task.StageKey)):", "	case len(task.StageKey) == 0:"}},
	},
	{
		name: "the learner chooses the helper", file: "shuffle/helper/enlist.go", pkg: "shuffle/helper", tests: "TestTasksRefused",
		edits: []edit{{"	case !f.Identity.Public().Equal(ed25519.PublicKey(task.HelperKey)):", "	case len(task.HelperKey) == 0:"}},
	},
	{
		name: "a helper that is shown its own later Share goes on", file: "shuffle/helper/helper.go", pkg: "shuffle/helper", tests: "TestRestoredFolder", quick: true,
		edits: []edit{{"	if !h.desk.Shown(s) {", "	if !h.desk.Shown(s) || true {"}},
	},
	{
		name: "a Join of its own that the folder does not know is passed over", file: "shuffle/helper/join.go", pkg: "shuffle/helper", tests: "TestRestoredFolder",
		edits: []edit{{"	if f.Folder.Knows(", "	if true || f.Folder.Knows("}},
	},
	{
		name: "an attempt of another round's manifest is joined", file: "shuffle/helper/follow.go", pkg: "shuffle/helper", tests: "TestOpensRefused",
		edits: []edit{{"	case stream.Hash(o.ManifestHash) != f.round.manifest:", "	case len(o.ManifestHash) == 0:"}},
	},
	{
		name: "a listed task whose mark is lost begins again", file: "shuffle/helper/folder/folder.go", pkg: "shuffle/helper/folder", tests: "TestPartsOfDifferentTimes", quick: true,
		edits: []edit{{"	case errors.Is(err, fs.ErrNotExist) && listed:\n", "	case errors.Is(err, fs.ErrNotExist) && listed && own == roster.ID{}:\n"}},
	},
	{
		name: "a mark is written beside the old one alone", file: "shuffle/helper/folder/files.go", pkg: "shuffle/helper/folder", tests: "TestKilledBetweenAnyTwoOperations",
		edits: []edit{{"		err = os.Rename(file.Name(), f.path(name))\n", "		err = nil\n"}},
	},
	{
		name: "two processes have one folder", file: "shuffle/helper/folder/folder.go", pkg: "shuffle/helper/folder", tests: "TestOneProcess", quick: true,
		edits: []edit{{"	if errors.Is(err, disk.ErrHeld) {\n", "	if errors.Is(err, disk.ErrHeld) {\n		return func() error { return nil }, nil\n"}},
	},
}
