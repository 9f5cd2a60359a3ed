package natsjs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// TestConnectWaits: a program that starts before its broker is connected when that is there, and gives up with its
// context alone.
func TestConnectWaits(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	config := natsjs.ConnectConfig{URL: "nats://" + address}
	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := natsjs.ConnectWait(short, config); !errors.Is(err, natsjs.ErrUnreachable) {
		t.Errorf("when time is over: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := natsjs.ConnectWait(ended, config); !errors.Is(err, context.Canceled) {
		t.Errorf("when cancelled: %v", err)
	}
	var wrong *natsjs.ConfigError
	if _, err := natsjs.ConnectWait(t.Context(), natsjs.ConnectConfig{URL: config.URL, TLSCert: "a.pem"}); !errors.As(err,
		&wrong) {
		t.Errorf("a configuration that cannot work: %v", err)
	}
	var log bytes.Buffer
	config.URL = "nats://me:hush@" + address // the server requires no login
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	connected := make(chan *natsjs.Conn)
	go func() {
		c, err := natsjs.ConnectWait(t.Context(), config)
		if err != nil {
			t.Error(err)
		}
		connected <- c
	}()
	start(t, embedded.Config{Listen: address})
	if c := <-connected; c != nil {
		if got := c.String(); got != "the broker at nats://me:xxxxx@"+address {
			t.Errorf("it calls itself %s", got)
		}
		c.Close()
	}
	if strings.Count(log.String(), "waiting") > 1 {
		t.Errorf("it is told again and again: %s", log.String())
	}
}
