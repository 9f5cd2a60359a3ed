package flow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// brokerFolder in the environment makes the test's own program a broker that keeps its streams there, until its
// input ends.
const brokerFolder, brokerSyncs = "PANLEARN_FLOW_BROKER", "PANLEARN_FLOW_SYNCS"

func TestMain(m *testing.M) {
	if url := os.Getenv(relayBroker); url != "" {
		if err := serveRelay(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir := os.Getenv(brokerFolder)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := serveBroker(dir, os.Getenv(brokerSyncs) != ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveBroker(dir string, syncs bool) error {
	e, err := embedded.Start(embedded.Config{StoreDir: dir, Listen: "127.0.0.1:0", SyncAlways: syncs,
		MaxStore: 16 << 30, MaxMemory: 2 << 30})
	if err != nil {
		return err
	}
	defer e.Shutdown()
	fmt.Println(e.URL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startBroker starts a broker that syncs its files at each message, as deploy/nats sets it, or every two minutes,
// JetStream's default.
func startBroker(b *testing.B, syncs bool) (url string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerFolder+"="+b.TempDir())
	if syncs {
		cmd.Env = append(cmd.Env, brokerSyncs+"=1")
	}
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(input.Close(), cmd.Wait()); err != nil {
			b.Error(err)
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		b.Fatalf("the broker did not start: %v", err)
	}
	return strings.TrimSpace(line)
}
