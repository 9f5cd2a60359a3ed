package kills

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// seedFlag repeats the draws of a campaign; what processes do with their time is not a function of it.
var seedFlag = flag.Uint64("kills.seed", 0, "seed of the kills; 0: 1, or a new one with PANLEARN_DEEP")

var roundsFlag = flag.Int("kills.rounds", 10_000, "rounds of the long campaign of a task without an end")

var soakFlag = flag.Duration("kills.soak", time.Hour, "how long many tasks are disturbed with PANLEARN_DEEP")

var programs *procs.Programs

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(procs.Main(m, &programs))
}
