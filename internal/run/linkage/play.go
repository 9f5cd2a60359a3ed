package linkage

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/grant/issuer"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// people counts those who take part in the round of an audit.
const people = 16

const name stream.Task = "linkage"

// declaration is the text of a task of People users; suite, issuer's key and number of users are filled in.
const declaration = `
version: 1
name: linkage
events: {format: libsvm}
features: {vector: {dimension: 4, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 8, delta: 1e-3%s}
schedule: {users: %d, cohort: %[2]d, minimum_cohort: %[2]d, rounds: {max: 1}, algorithm: psgd, plan: proved, deadline: 1m}
validation: {off: true}
grants: pass
issuer_key: %s
`

// Config fixes which round is played.
type Config struct {
	Suite  string // privacy.suite of the audited task; empty: the default
	Logger *slog.Logger

	// Tests plant links here.
	source func(grants.Source, grants.Store) grants.Source
	round  func(p *person, of http.RoundTripper) http.RoundTripper
}

// A Report holds what the parties of the round had in common.
type Report struct {
	People int    `json:"people"`
	Pairs  []pair `json:"pairs"`
	Pass   bool   `json:"pass"`
}

// Run plays a round in a folder of its own, which it removes, and audits it. It returns an error where the round could
// not be played to its end.
func Run(ctx context.Context, c Config) (r Report, err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := os.MkdirTemp("", "panlearn-linkage-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	s := &scene{Config: c, dir: dir}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return r, fmt.Errorf("linkage: %w", err)
	}
	if err := s.play(ctx); err != nil {
		return r, fmt.Errorf("linkage: %w", err)
	}
	return s.judge(ctx)
}

// A scene is a round with all its roles, and what they see.
type scene struct {
	Config
	dir            string
	key            *issuer.Key
	conn           *natsjs.Conn // of learner and stage
	learner, stage *seal.Identity
	body           *wire.Task
	hash           stream.Hash
	asks, relays   string // addresses of issuer and relay
	people         []*person
	closers        []func() error

	mu       sync.Mutex
	messages [][]byte // that the broker was given; guarded by mu
}

// A person is one of those who take part, and what others see of that.
type person struct {
	name    string
	device  *device.Device
	kept    *keeping
	key     participation.Key
	atAsker []value // what the issuer sees
	atRelay tap
}

func (s *scene) close() (err error) {
	for _, f := range slices.Backward(s.closers) {
		err = errors.Join(err, f())
	}
	return err
}

func (s *scene) later(f func() error) { s.closers = append(s.closers, f) }

// open starts broker, issuer and relay, and announces the task and its round.
func (s *scene) open(ctx context.Context) (err error) {
	keyFile := filepath.Join(s.dir, "issuer.key")
	if s.key, err = issuer.CreateKey(keyFile, name); err != nil {
		return err
	}
	suite := ""
	if s.Suite != "" {
		suite = ", suite: " + s.Suite
	}
	spec, err := task.Parse(fmt.Appendf(nil, declaration, suite, people, task.IssuerKeyText(s.key.Signer.Public())), nil)
	if err != nil {
		return err
	}
	job, err := run.NewJob(spec)
	if err != nil {
		return err
	}
	if s.body, err = job.Wire(); err != nil {
		return err
	}
	if s.learner, err = seal.NewIdentity(); err == nil {
		s.stage, err = seal.NewIdentity()
	}
	if err != nil {
		return err
	}
	s.body.Version, s.body.Name, s.body.Life = stream.Version, string(name), make([]byte, stream.LifeSize)
	s.body.LearnerKey, s.body.StageKey = s.learner.Public(), s.stage.Public()
	encoded, err := stream.Marshal(s.body)
	if err != nil {
		return err
	}
	s.hash = stream.HashOf(encoded)
	server, err := embedded.Start(embedded.Config{StoreDir: filepath.Join(s.dir, "nats"), Log: s.Logger})
	if err != nil {
		return err
	}
	s.later(func() error { server.Shutdown(); return nil })
	if s.conn, err = server.Connect(natsjs.ConnectConfig{Log: s.Logger}); err != nil {
		return err
	}
	s.later(func() error { s.conn.Close(); return nil })
	if _, err := run.Provision(ctx, s.conn, name, run.Streams{Body: s.body, Replicas: 1,
		MemoryReports: true}); err != nil {
		return err
	}
	relays, err := relay.New(relay.Config{Broker: &watched{Broker: s.conn, s: s}, PerAddress: 8 * people,
		Logger: s.Logger})
	if err != nil {
		return err
	}
	s.later(func() error { relays.Close(); return nil })
	if s.relays, err = s.serve(relays); err != nil {
		return err
	}
	list, err := issuer.OpenList(filepath.Join(s.dir, "issuer"), keyFile, s.key)
	if err != nil {
		return err
	}
	s.later(list.Close)
	handler, err := issuer.NewHandler(issuer.Config{Key: s.key, List: list, Login: issuer.HeaderLogin(loginHeader),
		Proxy:  new(httpaccess.Access),
		Logger: s.Logger})
	if err != nil {
		return err
	}
	if s.asks, err = s.serve(s.seen(handler)); err != nil {
		return err
	}
	if err := s.put(ctx, name.Task())(s.learner.Sign(s.body)); err != nil {
		return err
	}
	point := make([]float64, s.body.Plan.Phases[0].Mechanism.Dim)
	return s.put(ctx, name.Round(1))(s.learner.Sign(manifest.RoundOf(s.hash, 1, 1, point, nil)))
}

const loginHeader = "X-Person"

// put puts a record that the learner signed, unless that failed.
func (s *scene) put(ctx context.Context, subject string) func(signed []byte, err error) error {
	return func(signed []byte, err error) error {
		if err == nil {
			_, err = s.conn.PutOnce(ctx, subject, signed)
		}
		return err
	}
}

func (s *scene) serve(h http.Handler) (address string, err error) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server, err := (httpaccess.Listening{HTTP: at}).Server(h)
	if err != nil {
		return "", errors.Join(err, at.Close())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(at) // ends with Close
	}()
	s.later(func() error { err := server.Close(); <-done; return err })
	return "http://" + at.Addr().String(), nil
}

// seen keeps what an issuer sees of each person: the request without its address and time, and the answer.
func (s *scene) seen(of http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil {
			http.Error(w, "no body", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := &answered{ResponseWriter: w}
		of.ServeHTTP(answer, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.people {
			if p.name == r.Header.Get(loginHeader) {
				p.atAsker = append(p.atAsker, value{"the request", text(r)}, value{"the message", body},
					value{"the answer", answer.body})
			}
		}
	})
}

// answered keeps the body of an answer.
type answered struct {
	http.ResponseWriter
	body []byte
}

func (a *answered) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return a.ResponseWriter.Write(b)
}

// text returns a request's line and headers. Where it was sent to differs from run to run alone.
func text(r *http.Request) []byte {
	out := []byte(r.Method + " " + r.URL.RequestURI() + "\n")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		out = fmt.Appendf(out, "%s: %q\n", name, r.Header[name])
	}
	return out
}

// watched keeps the messages that the broker is given.
type watched struct {
	relay.Broker
	s *scene
}

// Publish implements stream.ReportWriter.
func (w *watched) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	w.s.mu.Lock()
	for _, r := range reports {
		w.s.messages = append(w.s.messages, append([]byte(r.Subject+" "+hex.EncodeToString(r.ID[:])+" "), r.Data...))
	}
	w.s.mu.Unlock()
	return w.Broker.Publish(ctx, reports)
}

// keeping keeps a device's token, which the stage sees in the report that it opens.
type keeping struct {
	grants.Store

	mu    sync.Mutex
	drawn grant.Request // guarded by mu
	token []byte        // guarded by mu
}

// Write implements grants.Store.
func (k *keeping) Write(all []grants.Grant) error {
	k.mu.Lock()
	for _, g := range all {
		if g.Token != nil {
			k.token = g.Token
		} else if k.token == nil {
			k.drawn = g.Request
		}
	}
	k.mu.Unlock()
	return k.Store.Write(all)
}

// A tap keeps what a relay sees of one device: requests with their bodies. The responses are the broker's and the
// stage's.
type tap struct {
	http.RoundTripper

	mu   sync.Mutex
	seen []value // guarded by mu
	ask  []value // likewise: of requests for places
}

// RoundTrip implements http.RoundTripper.
func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	t.mu.Lock()
	t.seen = append(t.seen, value{"a request", text(r)}, value{"what was posted", body})
	if r.Method == http.MethodPost && filepath.Base(r.URL.Path) == "places" {
		t.ask = append(t.ask, value{"a request for a place", body})
	}
	t.mu.Unlock()
	return t.RoundTripper.RoundTrip(r)
}

// play has everybody take part, over the relay, and waits for the batch.
func (s *scene) play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	reader, err := s.conn.Reader(ctx, name)
	if err != nil {
		return err
	}
	mixer, err := stage.New(stage.Config{Task: name, Records: s.conn, Reports: reader, PlaceServer: s.conn,
		Identity:   s.stage,
		LearnerKey: s.learner.Public(), Limits: s.conn.Limits(), Logger: s.Logger})
	if err != nil {
		return err
	}
	for range people {
		p, err := s.join()
		if err != nil {
			return err
		}
		s.later(p.device.Close)
		s.mu.Lock()
		s.people = append(s.people, p)
		s.mu.Unlock()
	}
	failed := make(chan error, people+1)
	group.Go(func() {
		if err := mixer.Run(ctx); err != nil && ctx.Err() == nil {
			failed <- err
		}
	})
	for i, p := range s.people {
		group.Go(func() {
			o, err := p.device.Publish(ctx, p.key, convex.Example{Index: []int32{int32(i % 4)}, Value: []float64{1}, Label: 1})
			if err == nil && o.State != participation.Counted {
				err = fmt.Errorf("somebody is %v: %w", o.State, o.Refused)
			}
			failed <- err
		})
	}
	for range people {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// join makes the device of a person.
func (s *scene) join() (*person, error) {
	random := grant.NewRequest().Nonce
	p := &person{name: "person-" + hex.EncodeToString(random[:12]), kept: &keeping{Store: grants.NewMemoryStore()},
		key: participation.EventKey("me"), atRelay: tap{RoundTripper: &http.Transport{}}}
	var by http.RoundTripper = &p.atRelay
	if s.round != nil {
		by = s.round(p, by)
	}
	way, err := relayclient.New(relayclient.Config{URL: s.relays, HTTP: by, Log: s.Logger})
	if err != nil {
		return nil, err
	}
	s.later(func() error { way.Close(); return nil })
	var source grants.Source = grants.Login{URL: s.asks + "/v1/tasks/" + string(name) + "/grant",
		Authorize: func(r *http.Request) { r.Header.Set(loginHeader, p.name) }}
	if s.source != nil {
		source = s.source(source, p.kept)
	}
	p.device, err = device.New(device.Settings{Task: name, Transport: way, Store: participation.NewMemoryStore(),
		Source: "events",
		Grants: source, GrantStore: p.kept, Logger: s.Logger,
		Policy: consent.Policy{LearnerKey: consent.Fingerprint(s.learner.Public()),
			StageKey: consent.Fingerprint(s.stage.Public())}})
	return p, err
}
