package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// brokerCommand as the first argument makes this program a broker: a NATS server in a process of its own, as deployed.
const brokerCommand = "broker"

// serveBroker serves until its input ends: a broker does not survive who started it.
func serveBroker(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("broker: want a folder and how files are synced")
	}
	e, err := natsjs.StartEmbedded(natsjs.EmbeddedConfig{StoreDir: args[0], Listen: "127.0.0.1:0", SyncAlways: args[1] == string(syncAlways),
		MaxStore: 16 << 30, MaxMemory: 2 << 30})
	if err != nil {
		return err
	}
	defer e.Shutdown()
	fmt.Fprintln(stdout, e.URL())
	_, err = io.Copy(io.Discard, stdin)
	return err
}

// A syncing says when a broker syncs its files.
type syncing string

const (
	syncAlways syncing = "always" // each message, as deploy/nats sets it
	syncLazily syncing = "lazily" // every two minutes, JetStream's default
)

// A broker is a running one.
type broker struct {
	url string
	end func() error
}

func startBroker(ctx context.Context, l *lab, sync syncing) (*broker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := l.folder()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, brokerCommand, dir, string(sync))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &broker{end: func() error { return errors.Join(input.Close(), cmd.Wait()) }}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the broker did not start: %w", err), b.end())
	}
	b.url = strings.TrimSpace(line)
	return b, nil
}
