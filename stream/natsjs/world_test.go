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

// Session ends when the connection that stands now is lost.
func (c *Conn) Session() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Done()
}

// DirectGet begins the subjects of direct gets.
const DirectGet = directGet

// LearnExpiries asks the servers for their certificates' ends.
func (c *Conn) LearnExpiries() { c.learnExpiries() }
