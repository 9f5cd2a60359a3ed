package pipeline

import (
	"context"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/run/runrelay"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// reach publishes over the connection or, where the client is to have none, through a relay that has it.
func (c Config) reach(ctx context.Context, name stream.Task, conn conn) (sent device.Summary, err error) {
	if !c.Relay {
		return c.publish(ctx, name, conn)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return sent, err
	}
	relayed, serve, err := runrelay.Local(listener, conn, c.Logger, name)
	if err != nil {
		listener.Close()
		return sent, err
	}
	defer relayed.Close()
	client, err := relayclient.New(relayclient.Config{URL: "http://" + listener.Addr().String(), Log: c.Logger})
	if err != nil {
		listener.Close()
		return sent, err
	}
	group, running := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(running)
	group.Go(func() error { return serve(serving) })
	group.Go(func() (err error) {
		defer stop()
		defer client.Close()
		sent, err = c.publish(running, name, client)
		return err
	})
	return sent, group.Wait()
}
