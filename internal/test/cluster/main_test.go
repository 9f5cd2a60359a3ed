package cluster

import (
	"os"
	"testing"

	"github.com/panlearn/panlearn/internal/test/procs"
)

var programs *procs.Programs

func TestMain(m *testing.M) { os.Exit(procs.Main(m, &programs)) }
