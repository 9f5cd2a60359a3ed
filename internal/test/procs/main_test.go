package procs

import (
	"os"
	"testing"
)

var programs *Programs

func TestMain(m *testing.M) { os.Exit(Main(m, &programs)) }
