package natsjs

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests that are parallel wait, and compute little
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// Session returns a channel that is closed when the present connection is lost.
func Session(c *Conn) <-chan struct{} { return c.requests.standing().Done() }

// DirectGet begins the subjects of direct gets.
const DirectGet = directGet

// Learn asks the servers for their certificates' ends.
func (c *Certificates) Learn() { c.learn() }
