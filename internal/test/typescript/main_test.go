package typescript

import (
	"os"
	"testing"

	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/internal/test/procs"
)

var programs *procs.Programs

func TestMain(m *testing.M) { os.Exit(procs.Main(m, &programs)) }

// TestClient runs the tests of the package: all vectors of docs/vectors among them.
func TestClient(t *testing.T) {
	folder, _ := nodejs.Client(t)
	t.Logf("%s", nodejs.Run(t, folder, "test"))
}
