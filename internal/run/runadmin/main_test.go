package runadmin

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// holds names the folder that this program holds as a learner does, where a test runs it again.
const holds = "PANLEARN_TEST_HOLDS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holds); dir != "" {
		holdFolder(dir)
	}
	goleak.VerifyTestMain(m)
}

// holdFolder holds a folder, and does not return.
func holdFolder(dir string) {
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err == nil {
		listener, _, listening := statedir.ListenControl(dir)
		if err = listening; err == nil {
			fmt.Println("holds")
			err = (&http.Server{Handler: statedir.ControlHandler(store, new(service.Finisher), service.NewHistory(store))}).Serve(listener) //nolint:gosec // for a test
		}
	}
	fmt.Println(err)
	os.Exit(1)
}
