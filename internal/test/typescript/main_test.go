package typescript

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/test/procs"
)

var programs *procs.Programs

func TestMain(m *testing.M) { os.Exit(procs.Main(m, &programs)) }

// client returns the folder of the device and the path of node. Where node or the packages are missing that
// package-lock.json pins, it says so and skips.
func client(t *testing.T) (folder, node string) {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", "..", "clients", "typescript"))
	if err != nil {
		t.Fatal(err)
	}
	if node, err = exec.LookPath("node"); err == nil {
		_, err = os.Stat(filepath.Join(folder, "node_modules", "typescript", "package.json"))
	}
	if err != nil {
		const what = "the device in TypeScript: it needs node, and `npm ci` in clients/typescript"
		fmt.Printf("NOT RUN: %s: %s\n", t.Name(), what)
		t.Skip("NOT RUN: " + what)
	}
	return folder, node
}

// npm runs a script of the client's package.json.
func npm(t *testing.T, folder string, script string) string {
	t.Helper()
	command := exec.Command("npm", "run", "--silent", script)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("npm run %s: %v\n%s", script, err, out)
	}
	return string(out)
}

// TestClient runs the tests of the package: all vectors of docs/vectors among them.
func TestClient(t *testing.T) {
	folder, _ := client(t)
	t.Logf("%s", npm(t, folder, "test"))
}
