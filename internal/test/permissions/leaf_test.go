package permissions

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// silence bounds the wait of a client behind a leaf node for an answer that may not come. An answer that takes longer is
// missed; what an attack leaves on the broker is not.
const silence = 3 * time.Second

// A leaf is a server near the devices, connected to a broker as one of its publishers.
type leaf struct {
	*broker
	url   string
	inbox string
}

// leafAddress returns an address for the links of leaf nodes.
func leafAddress(t *testing.T) string {
	t.Helper()
	ports, err := procs.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

// behind connects a client to the leaf node, as anybody may who reaches it, with the publisher's inbox.
func (l *leaf) behind(t *testing.T, s *scene) *client {
	t.Helper()
	c := &client{inbox: l.inbox, violated: make(chan string, 1000)}
	var err error
	if c.nc, err = nats.Connect(l.url, nats.Name(publisher), nats.CustomInboxPrefix(l.inbox)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.nc.Close)
	own := s.of("$JS.API.DIRECT.GET." + task.Name(stream.Rounds) + "." + task.Round(98)) // which nobody else requests
	c.across = func() {
		t.Helper()
		if _, err := c.nc.Request(own, nil, patience); err != nil {
			t.Fatalf("a request that every device makes: %v", err)
		}
	}
	c.mine = func(subject string) bool { return subject == own || strings.HasPrefix(subject, l.inbox+".") }
	eventually(t, "the leaf node has its link", func() bool {
		_, err := c.nc.Request(own, nil, time.Second)
		return err == nil
	})
	return c
}

// safeLeaf returns a leaf node of a publisher, as learner site leaf writes it, on a site.
func safeLeaf(t *testing.T) *leaf {
	t.Helper()
	at := leafAddress(t)
	b, site := operatedWithLeaves(t, at)
	dir, err := site.Leaf(publisher, "tls://"+at)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, filepath.Join(dir, "leaf.conf"))
	return &leaf{broker: b, url: "nats://" + s.Addr().String(), inbox: b.raw(t, publisher).inbox}
}

// openLeaf returns a leaf node of a broker without authentication.
func openLeaf(t *testing.T) *leaf {
	t.Helper()
	const domains = "default_js_domain: { \"$G\": \"\" }\n"
	at := leafAddress(t)
	b := start(t, write(t, "jetstream: enabled\nleafnodes { listen: \""+at+"\" }\n"+domains), func(string) natsjs.ConnectConfig {
		return natsjs.ConnectConfig{}
	})
	s := startServer(t, write(t, "leafnodes { remotes: [ { url: \"nats://"+at+"\" } ] }\n"+domains))
	return &leaf{broker: b, url: "nats://" + s.Addr().String(), inbox: "_INBOX_leaf"}
}

// TestAttacksThroughALeaf: what a publisher cannot do on a site, nobody can who is behind its leaf node. What attacks a
// broker without authentication works from behind a leaf node of such a broker, too.
func TestAttacksThroughALeaf(t *testing.T) {
	worked := 0
	for _, p := range []struct {
		leaf  *leaf
		falls bool
	}{{openLeaf(t), true}, {safeLeaf(t), false}} {
		scenes := map[string]*scene{}
		for _, a := range attacks() {
			if a.role != publisher || p.falls && a.control != onOpen {
				continue
			}
			at := or(a.scene, a.name)
			if scenes[at] == nil {
				scenes[at] = p.leaf.scene(t)
				scenes[at].falls = p.falls
			}
			c := p.leaf.behind(t, scenes[at])
			if got := a.try(t, scenes[at], c); got != p.falls {
				t.Errorf("%s, from behind a leaf node: worked %t, want %t", a.name, got, p.falls)
			} else if got {
				worked++
			}
			c.nc.Close()
		}
	}
	if worked < 20 {
		t.Errorf("%d attacks work on the control", worked)
	}
}

// TestMatrixThroughALeaf: who is behind a publisher's leaf node may write and read what the publisher may, for every
// subject that the streams hold, in every task.
func TestMatrixThroughALeaf(t *testing.T) {
	l := safeLeaf(t)
	for range 2 {
		s := l.scene(t)
		direct, c := s.raw(t, publisher), l.behind(t, s)
		for of := range writers {
			for _, pattern := range s.task.Subjects(of) {
				subject := strings.ReplaceAll(strings.ReplaceAll(pattern, ">", "1.1"), "*", "1")
				want := slices.Contains(writers[of], publisher)
				if a, b := writable(t, direct, subject), writable(t, c, subject); a != want || b != want {
					t.Errorf("%s: may be written directly %t, through the leaf node %t, want %t", subject, a, b, want)
				}
				if of == stream.Reports {
					continue
				}
				if a, b := readable(t, direct, s.task.Name(of), subject), readable(t, c, s.task.Name(of), subject); a != b {
					t.Errorf("%s: may be read directly %t, through the leaf node %t", subject, a, b)
				}
			}
		}
	}
}
