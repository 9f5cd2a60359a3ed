// Command webservice is an application whose users' events are learned from, and never collected: copy it, and put what
// your users do in the place of the body that it takes. Each signed-in user posts one event, and may ask what became of
// it. What panlearn needs of a service is in main and in service.go.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
)

func main() {
	url := flag.String("nats", "nats://127.0.0.1:4222", "`URL` of the broker")
	task := flag.String("task", "quickstart", "`NAME` of the task")
	pin := flag.String("pin", "", "the task's `HASH`; empty: that of the task that is seen first")
	folder := flag.String("state", "./devices", "`DIR` that remembers who took part")
	listen := flag.String("http", "127.0.0.1:8080", "`ADDR` of the service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, log, natsjs.ConnectConfig{URL: *url, Log: log}, device.Config{Task: stream.Task(*task),
		Folder: *folder, Pin: *pin, TrustFirstUse: *pin == "", Logger: log}, *listen); err != nil {
		log.Error("webservice", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, log *slog.Logger, broker natsjs.ConnectConfig, c device.Config, listen string) error {
	conn, err := natsjs.ConnectWait(ctx, broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.Transport = conn
	dev, err := device.Open(ctx, c) // waits for the task, and agrees to it
	if err != nil {
		return err
	}
	defer dev.Close()
	server := &http.Server{Addr: listen, Handler: service(dev), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	log.Info("serving", "http", listen)
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}
