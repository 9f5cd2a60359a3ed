package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// serve is the environment that makes the test's program a broker: half of all file descriptors are its own then.
const serve = "PANLEARN_FLEET_BROKER"

// A reading holds the broker's figures of itself: messages from and to clients since its last start.
type reading struct {
	In, Out, BytesIn, BytesOut int64
	Clients                    int
	CPU                        time.Duration
	Resident                   int64 // bytes
	At                         time.Time
}

// A broker is a NATS server in a process of its own, with the settings of the embedded one.
type broker struct {
	t   *testing.T
	url string
	in  io.WriteCloser
	out *json.Decoder
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), serve+"="+t.TempDir()), os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	b := &broker{t: t, in: in, out: json.NewDecoder(out)}
	must(t, b.out.Decode(&b.url))
	return b
}

func (b *broker) ask(what string, answer any) {
	b.t.Helper()
	_, err := fmt.Fprintln(b.in, what)
	must(b.t, err)
	must(b.t, b.out.Decode(answer))
}

func (b *broker) read() (r reading) {
	b.t.Helper()
	b.ask("read", &r)
	return r
}

// restart ends the broker and starts it again on what it stored, and returns a reading every 250 ms for a time, or
// until so many clients are back.
func (b *broker) restart(watch time.Duration, clients int) (all []reading) {
	b.t.Helper()
	b.ask(fmt.Sprintf("restart %v %d", watch, clients), &all)
	return all
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(serve); dir != "" {
		runBroker(dir)
		return
	}
	os.Exit(m.Run())
}

func newServer(dir string, port int) *server.Server {
	s, err := server.NewServer(&server.Options{ServerName: "panlearn", Host: "127.0.0.1", Port: port, NoSigs: true,
		NoLog: true, JetStream: true,
		StoreDir: dir, DisableJetStreamBanner: true, SyncAlways: true})
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		panic("the broker did not start")
	}
	return s
}

func runBroker(dir string) {
	s := newServer(dir, server.RANDOM_PORT)
	out := json.NewEncoder(os.Stdout)
	say := func(v any) {
		if err := out.Encode(v); err != nil {
			os.Exit(1)
		}
	}
	say(s.ClientURL())
	port := s.Addr().(interface{ String() string }).String()
	port = port[strings.LastIndex(port, ":")+1:]
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "read" {
			say(readingOf(s))
			continue
		}
		var watch string
		var clients, number int
		if _, err := fmt.Sscanf(lines.Text()+" "+port, "restart %s %d %d", &watch, &clients, &number); err != nil {
			panic(err)
		}
		d, err := time.ParseDuration(watch)
		if err != nil {
			panic(err)
		}
		s.Shutdown()
		s.WaitForShutdown()
		s = newServer(dir, number)
		var all []reading
		for end := time.Now().Add(d); time.Now().Before(end); <-time.After(250 * time.Millisecond) {
			if all = append(all, readingOf(s)); all[len(all)-1].Clients >= clients {
				break
			}
		}
		say(all)
	}
	s.Shutdown()
}

func readingOf(s *server.Server) reading {
	v, err := s.Varz(nil)
	if err != nil {
		panic(err)
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return reading{In: v.InMsgs, Out: v.OutMsgs, BytesIn: v.InBytes, BytesOut: v.OutBytes, Clients: v.Connections,
		Resident: v.Mem, At: time.Now(),
		CPU: time.Duration(used.Utime.Nano() + used.Stime.Nano())}
}
