package typescript

import (
	"os"
	"testing"

	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/internal/test/procs"
)

var programs *procs.Programs

func TestMain(m *testing.M) { os.Exit(procs.Main(m, &programs)) }

// built holds whether dist/ is what the sources make.
var built bool

// build makes dist/, once for all tests, and returns the client's folder.
func build(t *testing.T) string {
	t.Helper()
	folder, _ := nodejs.Client(t)
	if !built {
		nodejs.Run(t, folder, "build")
		built = true
	}
	return folder
}

// TestClient runs the tests of the package as `npm test` does, all vectors of docs/vectors among them.
func TestClient(t *testing.T) {
	folder := build(t)
	nodejs.Run(t, folder, "build:test")
	t.Logf("%s", nodejs.Run(t, folder, "test:built"))
}
