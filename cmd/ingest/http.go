package main

import (
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/rundevice"
	"github.com/panlearn/panlearn/stream/device/httpgateway"
)

// A gateway holds the values of the --http flags.
type gateway struct {
	address, tokenFile string
	noToken            bool
	rate               float64
	waiting            int
}

func (g *gateway) flags(flags *pflag.FlagSet) {
	flags.StringVar(&g.address, "http", "",
		"take events at this `ADDR` instead of --data: a port of 127.0.0.1, or host:port")
	flags.StringVar(&g.tokenFile, "http-token", "", "`FILE` with the token that requests to --http carry")
	flags.BoolVar(&g.noToken, "http-no-token", false, "let every process of this machine publish, without a token; on loopback only")
	flags.Float64Var(&g.rate, "http-rate", httpgateway.DefaultRate, "events a second that --http takes")
	flags.IntVar(&g.waiting, "http-waiting", httpgateway.DefaultMaxWaiting,
		"most events without an outcome that --http holds; at least as many as a round takes from here")
}

// declare listens. The caller has the listener then.
func (g *gateway) declare(p *publisher) (h rundevice.HTTPConfig, err error) {
	switch {
	case p.data != "" || p.live || p.format != "":
		return h, cli.Usagef("--http excludes --data, --live and --format: events come as JSON, each with a key")
	case g.noToken && g.tokenFile != "":
		return h, cli.Usagef("--http-token and --http-no-token exclude each other")
	case !g.noToken && g.tokenFile == "":
		return h, cli.Usagef("--http: name a file with --http-token, or say --http-no-token on loopback")
	case !(g.rate > 0 && g.rate <= 1e6):
		return h, cli.Usagef("--http-rate %v: want a number in (0, 1e6]", g.rate)
	case g.waiting < 1 || g.waiting > 1<<20:
		return h, cli.Usagef("--http-waiting %d: want 1 to 2^20", g.waiting)
	}
	h.NoToken, h.Rate, h.Waiting = g.noToken, g.rate, g.waiting
	if g.tokenFile != "" {
		if h.Token, err = cli.ReadToken("--http-token", g.tokenFile); err != nil {
			return h, err
		}
	}
	if h.Listener, err = cli.Listen("--http", g.address); err != nil {
		return h, err
	}
	if err := h.Validate(p.state); err != nil {
		h.Listener.Close()
		return h, cli.Usage(err)
	}
	return h, nil
}
