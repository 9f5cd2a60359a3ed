package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// mayImport lists which of our packages the production code of a folder may import. Folders that are not
// listed may import none of ours, so a new package needs an entry here.
var mayImport = map[string][]string{
	"randomizer":            {},
	"randomizer/accounting": {"randomizer"}, // the shape of a round: who adds how many trials, how long a report is
	"randomizer/audit":      {"randomizer", "shuffle"},
	"shuffle":               {"randomizer"},
	"shuffle/split":         {"randomizer", "shuffle"},
	"shuffle/splitwire":     {"shuffle", "shuffle/split", "stream", "stream/seal", "stream/wire"},
	"internal/panics":       {},
	"shuffle/stage": {"internal/observe", "internal/panics", "randomizer", "shuffle", "shuffle/split", "shuffle/splitwire",
		"stream",
		"stream/grant", "stream/manifest", "stream/seal", "stream/wire"},
	"shuffle/roster": {"internal/disk", "stream", "stream/seal"},
	"shuffle/stage/leaderfile": {"internal/disk", "shuffle/roster", "shuffle/split", "shuffle/stage", "stream",
		"stream/seal"},
	"learner": {"learner/convex", "learner/method", "learner/practical", "learner/schedule",
		"stream/manifest", "stream/wire"},
	"learner/schedule":        {"learner/convex"}, // a table that the task and the planner ask
	"learner/convex":          {},
	"learner/practical":       {"learner/convex"},
	"learner/research/acsa":   {"learner/convex"},
	"learner/oneplace":        {"learner/convex", "randomizer/accounting"}, // the seam of methods that need all rows
	"learner/research/resque": {"learner/research/acsa", "learner/convex", "learner/oneplace"},
	"learner/method":          {"randomizer", "learner/convex", "learner/practical", "learner/schedule"},
	"learner/planning": {"learner", "randomizer", "randomizer/accounting", "learner/convex", "learner/method",
		"learner/practical", "learner/schedule",
		"stream/manifest",
		"stream/wire"},
	"learner/research/private": {"randomizer", "randomizer/accounting", "learner/convex", "learner/oneplace",
		"learner/research/resque"},
	"learner/task":        {"learner/convex", "learner/practical", "learner/schedule", "randomizer/accounting"},
	"learner/task/object": {"learner/task"},
	"learner/task/source": {"learner/convex", "learner/task", "learner/task/object"},
	"learner/task/draft": {"learner/convex", "learner/task", "learner/task/source",
		"learner/task/draft/publicmodel"},
	"learner/task/draft/publicmodel": {}, // numbers alone
	"learner/task/inspection":        {"learner/task", "learner/task/source"},
	"learner/block":                  {"learner/convex"},
	"learner/research/curator": {"learner/research/acsa", "learner/convex", "learner/oneplace", "randomizer",
		"randomizer/accounting"},
	"learner/report": {"learner/block", "learner/convex", "learner/practical", "learner/task",
		"randomizer"},
	"internal/disk":          {},
	"shuffle/stage/markfile": {"internal/disk", "stream"},
	"shuffle/helper/folder":  {"internal/disk", "shuffle/roster", "shuffle/split", "stream", "stream/seal"},
	"shuffle/helper": {"internal/observe", "internal/panics", "randomizer", "shuffle", "shuffle/helper/folder",
		"shuffle/split", "shuffle/splitwire",
		"stream", "stream/manifest", "stream/seal", "stream/wire"},
	"learner/service": {"internal/observe", "learner", "learner/convex", "learner/method", "learner/practical",
		"randomizer",
		"randomizer/accounting", "state", "stream", "stream/manifest",
		"stream/seal", "stream/wire"},
	"state":                   {},
	"state/pebblestore":       {"internal/build", "internal/disk", "state"},
	"internal/test/storetest": {"state"},
	"stream":                  {"stream/wire"},
	"stream/wire":             {},
	"stream/grant":            {"stream"},
	"stream/grant/issuer":     {"internal/disk", "internal/httpaccess", "internal/observe", "stream", "stream/grant"},
	"stream/seal":             {"internal/disk", "stream", "stream/wire"},
	"stream/manifest": {"learner/convex", "learner/practical", "randomizer", "randomizer/accounting", "shuffle",
		"stream", "stream/grant", "stream/seal", "stream/wire"},
	"stream/retention":         {"stream"},
	"internal/test/memory":     {"stream", "stream/device/ledger", "stream/device/participation", "stream/retention"},
	"internal/test/granttest":  {"stream", "stream/grant"},
	"stream/natsjs":            {"stream"},
	"stream/natsjs/embedded":   {"stream/natsjs"},
	"stream/natsjs/natsadmin":  {"stream", "stream/natsjs", "stream/retention"},
	"internal/test/streamtest": {"stream", "stream/retention", "stream/wire"},
	"stream/device": {"internal/panics", "randomizer", "learner/block", "learner/convex", "learner/report", "learner/task",
		"learner/task/object", "shuffle", "shuffle/split", "stream", "stream/device/consent", "stream/device/statefolder",
		"stream/device/grants", "stream/device/ledger", "stream/device/participation", "stream/grant", "stream/manifest",
		"stream/seal",
		"stream/wire"},
	"stream/device/grants": {"internal/disk", "stream", "stream/device/participation", "stream/grant"},
	"stream/device/consent": {"randomizer", "randomizer/accounting", "learner/convex", "learner/practical",
		"learner/report", "learner/task", "stream",
		"stream/device/ledger", "stream/device/participation", "stream/manifest", "stream/seal", "stream/wire"},
	"stream/device/ledger":        {"stream", "stream/device/participation"},
	"stream/device/participation": {"stream"},
	"stream/device/filestore":     {"internal/disk", "stream", "stream/device/ledger", "stream/device/participation"},
	"internal/httpaccess":         {},
	"internal/observe":            {},
	"stream/relay/relayhttp":      {"stream"},
	"stream/relay": {"internal/httpaccess", "internal/observe", "stream", "stream/manifest", "stream/relay/relayhttp",
		"stream/seal",
		"stream/wire"},
	"stream/relayclient": {"stream", "stream/relay/relayhttp"},
	"stream/device/statefolder": {"stream", "stream/device/consent", "stream/device/filestore",
		"stream/device/participation"},
	"stream/device/httpgateway": {"internal/httpaccess", "learner/task", "learner/task/object", "stream", "stream/grant",
		"stream/device",
		"stream/device/consent", "stream/device/participation"},
	"internal/test/campaign":  {}, // tests alone
	"internal/test/operators": {}, // tests alone
	"internal/test/cluster":   {}, // tests alone
	"internal/dashboard": {"internal/build", "internal/cli", "internal/model", "internal/obs", "internal/wording",
		"learner",
		"learner/method", "learner/practical", "learner/service", "shuffle/stage"},
	"internal/devca":            {"deploy", "internal/disk", "stream/natsjs"},
	"internal/devicepage":       {"stream"},
	"internal/test/permissions": {}, // tests alone
	"internal/test/intrusion":   {}, // tests alone
	"internal/test/dptest":      {},
	"internal/test/endurance":   {}, // tests alone
	"internal/test/doctest":     {}, // tests alone
	"internal/test/kills":       {}, // tests alone
	"internal/test/typescript":  {}, // tests alone
	"internal/test/nodejs":      {}, // test support
	"internal/test/fleet":       {}, // tests alone
	"internal/test/lint":        {},
	"internal/test/systems":     {}, // a check of the gate, no product
	"deploy/helm":               {}, // a module of its own: it tests the chart with Helm's library
	"deploy/release":            {}, // a module of its own: it runs the programs and links none of them
	"internal/evaluation":       {},
	"internal/prequential":      {"internal/model", "learner/convex", "learner/method", "learner/service", "learner/task"},
	"internal/model": {"internal/evaluation", "internal/model/onnx", "internal/wording", "learner/convex", "learner/task",
		"randomizer/accounting",
		"state", "stream/wire"},
	"internal/model/onnx": {},
	"internal/wording": {"learner/method", "learner/practical", "learner/schedule", "randomizer/accounting",
		"stream/manifest",
		"stream/wire"},
	"internal/test/mutants": {}, // tests alone
	"internal/test/procs":   {}, // test support: it runs programs and links none
	"internal/build":        {"stream"},
	"internal/scorer": {"internal/httpaccess", "internal/model", "learner/task", "learner/task/object",
		"learner/task/source"},
	"internal/obs": {"internal/build", "internal/httpaccess", "internal/model", "internal/scorer", "learner",
		"learner/method", "learner/service", "shuffle/helper", "shuffle/split", "shuffle/stage", "state", "stream",
		"stream/device",
		"stream/device/participation", "stream/grant/issuer", "stream/relay"},
	"internal/test/e2e": {},
	"learner/research/experiments": {"learner/research/isrl", "internal/model", "internal/picture", "internal/run",
		"internal/sim", "learner",
		"learner/block", "learner/convex", "learner/research/curator", "learner/method", "learner/report",
		"learner/research/resque",
		"learner/research/private", "learner/task",
		"learner/task/source", "randomizer", "randomizer/accounting", "stream/manifest", "stream/wire"},
	"learner/research/isrl":     {"randomizer/accounting"},
	"internal/test/flow":        {},
	"internal/test/longtest":    {}, // test support
	"internal/test/golden":      {}, // test support
	"internal/test/vectors":     {}, // test support
	"internal/test/parquettest": {}, // test support: the only place that writes Parquet
	"deploy":                    {},
	"internal/sim": {"randomizer", "randomizer/accounting", "shuffle", "learner", "learner/block", "learner/convex",
		"learner/method", "learner/planning",
		"learner/practical", "learner/report", "learner/schedule", "learner/task", "learner/task/source", "stream/manifest",
		"stream/wire"},
	"internal/picture": {},
	"internal/rehearse": {"internal/cli", "internal/model", "internal/picture", "internal/prequential", "internal/run",
		"internal/sim", "internal/wording", "learner/block", "learner/convex", "learner/method", "learner/planning",
		"learner/practical", "learner/schedule", "learner/task", "learner/task/inspection", "learner/task/source",
		"randomizer/accounting", "stream/manifest", "stream/wire"},
	"internal/rehearse/tune": {"internal/model", "internal/rehearse", "internal/run", "internal/sim", "learner/convex",
		"learner/task", "learner/task/draft", "stream/manifest", "stream/wire"},
	"internal/rehearse/compare": {"internal/model", "internal/rehearse", "internal/run", "internal/run/curated",
		"internal/sim", "internal/wording", "learner/block", "learner/convex", "learner/oneplace",
		"learner/schedule", "learner/task", "randomizer/accounting", "stream/manifest",
		"stream/wire"},
	"internal/run":          {"*"},
	"internal/run/runadmin": {"*"},
	"internal/run/audits": {"internal/run", "learner/block", "learner/convex", "learner/report", "randomizer",
		"randomizer/accounting", "randomizer/audit", "stream/manifest"},
	"internal/run/linkage": {"internal/httpaccess", "internal/run", "learner/convex", "learner/task", "shuffle/stage",
		"stream",
		"stream/device", "stream/device/consent", "stream/device/grants", "stream/device/participation", "stream/grant",
		"stream/grant/issuer", "stream/manifest", "stream/natsjs", "stream/natsjs/embedded", "stream/relay",
		"stream/relayclient",
		"stream/seal", "stream/wire"},
	"internal/run/curated": {"internal/run/statedir", "internal/wording", "learner/convex", "learner/oneplace",
		"learner/research/curator", "learner/research/resque", "learner/research/private", // in its list of methods
		"learner/task", "randomizer", "randomizer/accounting", "stream/manifest", "stream/wire"},
	"internal/run/rundevice": {"internal/httpaccess", "internal/obs", "internal/panics", "internal/run",
		"internal/run/many", "learner/task", "learner/task/inspection",
		"learner/task/source", "stream", "stream/device",
		"stream/device/consent", "stream/device/filestore", "stream/device/grants", "stream/device/httpgateway",
		"stream/device/participation", "stream/device/statefolder", "stream/natsjs", "stream/relayclient"},
	"internal/run/runissuer": {"internal/httpaccess", "internal/obs", "internal/run/many", "learner/task",
		"stream/grant/issuer"},
	"internal/run/runrelay": {"internal/httpaccess", "internal/obs", "internal/run", "stream", "stream/relay"},
	"internal/run/runscorer": {"internal/httpaccess", "internal/model", "internal/obs", "internal/run/statedir",
		"internal/scorer", "state"},
	"internal/run/fit":        {"*"},
	"internal/run/runlearner": {"*"},
	"internal/run/pipeline":   {"*"},
	"internal/run/quickstart": {"*"},
	"internal/test/runtest":   {"*"}, // test support
	"internal/run/many":       {"internal/dashboard", "internal/obs", "internal/panics", "learner/task", "stream"},
	"internal/run/runstage": {"internal/observe", "internal/obs", "internal/run", "internal/run/many", "shuffle/helper",
		"shuffle/helper/folder", "shuffle/stage", "stream", "stream/natsjs",
		"stream/natsjs/natsadmin", "stream/seal"},
	"internal/run/statedir": {"*"},
	"examples/webservice":   {"stream", "stream/device", "stream/natsjs"},
	"internal/test/live":    {"*"}, // test support
	"cmd/learner":           {"*"},
	"cmd/ingest":            {"*"},
	"internal/cli":          {"*"},
}

// onlyIn lists the folders in which production code may import a foreign module.
var onlyIn = map[string][]string{
	"github.com/nats-io/":            {"internal/devca", "stream/natsjs"},
	"github.com/nats-io/nats-server": {"internal/devca", "stream/natsjs/embedded"},
	"github.com/cockroachdb/pebble":  {"state/pebblestore"},
	"github.com/gofrs/flock":         {"internal/disk"},
	"golang.org/x/sys":               {"internal/disk"},
	"golang.org/x/text":              {"stream/grant/issuer"},
	"golang.org/x/time":              {"stream/device/httpgateway"},
	"github.com/klauspost/compress":  {"learner/task/source"},
	"github.com/parquet-go/":         {"learner/task/source", "internal/test/parquettest"},
	"github.com/prometheus/": {"internal/obs", "internal/run/many", "internal/run/rundevice",
		"internal/run/runissuer", "internal/run/runlearner", "internal/run/runstage"},
	"github.com/goccy/go-yaml":    {"learner/task", "internal/cli", "stream/device"},
	"github.com/spf13/cobra":      {"cmd/learner", "cmd/ingest", "internal/cli"},
	"gonum.org/v1/plot":           {"internal/picture"},
	"google.golang.org/protobuf/": {"stream", "shuffle/stage", "internal/model/onnx"},
	"crypto/hpke":                 {"stream/seal"},
	"github.com/cloudflare/circl": {"shuffle/split", "stream/grant"},
	"math/rand": {"randomizer", "shuffle", "learner", "stream", "internal/test/storetest",
		"internal"},
}

func within(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") })
}

func TestImportDirections(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		allowed, known := mayImport[f.dir()]
		if !known {
			t.Errorf("%s: folder %q is not in the table of import rules", f.path, f.dir())
			continue
		}
		seen[f.dir()] = true
		own, foreign := f.imports()
		for _, p := range own {
			if !slices.Contains(allowed, "*") && !slices.Contains(allowed, p) {
				t.Errorf("%s imports %s: %s may import %v", f.path, p, f.dir(), allowed)
			}
		}
		for _, p := range foreign {
			for prefix, folders := range onlyIn {
				if strings.HasPrefix(p, prefix) && !within(f.dir(), folders) {
					t.Errorf("%s imports %s: only %v may", f.path, p, folders)
				}
			}
			if p == "math/rand" {
				t.Errorf("%s imports math/rand: use math/rand/v2", f.path)
			}
		}
	}
	for dir := range mayImport {
		if !seen[dir] {
			t.Errorf("the table of import rules names %q, which has no Go file", dir)
		}
	}
}

// The sans-IO cores know no clock, network, disk or goroutine.
func TestCoresDoNoIO(t *testing.T) {
	cores := []string{"randomizer", "randomizer/accounting", "shuffle", "shuffle/split", "learner", "learner/block",
		"learner/convex", "learner/method", "learner/planning", "learner/practical", "learner/report",
		"learner/research/private", "state",
		"stream/manifest", "stream/device/ledger", "stream/device/participation"}
	forbidden := []string{"net", "os", "net/http", "os/exec", "log", "log/slog"}
	for _, f := range sources(t) {
		if f.test || !slices.Contains(cores, f.dir()) {
			continue
		}
		_, foreign := f.imports()
		for _, p := range foreign {
			if slices.Contains(forbidden, p) {
				t.Errorf("%s imports %s: %s is a sans-IO core", f.path, p, f.dir())
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in a sans-IO core", f.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
						n.Sel.Name) {
					t.Errorf("%s: a sans-IO core reads the clock", f.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
