package device_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/stream/device"
	tokens "github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A login is an issuer behind the login of one person, who has a token of it.
type login struct {
	t      *testing.T
	signer *grant.Signer
	given  []byte // message
	silent time.Duration

	mu   sync.Mutex
	when []time.Duration // since began; guarded by mu
	from time.Time
}

func newLogin(t *testing.T) *login {
	return &login{t: t, signer: granttest.Signer(t), from: time.Now()}
}

// OnePerson implements tokens.Personal.
func (*login) OnePerson() {}

// Sign implements tokens.Source.
func (l *login) Sign(ctx context.Context, asks []tokens.Ask) ([]tokens.Answer, error) {
	if err := device.Until(ctx, l.from.Add(l.silent)); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]tokens.Answer, len(asks))
	for i, a := range asks {
		l.when = append(l.when, time.Since(l.from))
		if l.given != nil && !slices.Equal(l.given, a.Message) {
			out[i].Refused = true
			continue
		}
		l.given = a.Message
		blinded, err := grant.ParseRequest(a.Message, grant.KeyID(l.signer.Public()))
		must(l.t, err)
		out[i].Signature, err = l.signer.Sign(blinded)
		must(l.t, err)
	}
	return out, nil
}

func (l *login) asked() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.when)
}

// TestFirstEventHasTheToken: of events that came while the issuer was silent the first one has the token.
func TestFirstEventHasTheToken(t *testing.T) {
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 9, cohort: 1, sealed: true, grants: true})
			at := newLogin(t)
			at.silent = time.Minute
			w.play(t.Context(), func(ctx context.Context) {
				config := w.config(participation.NewMemoryStore())
				config.Grants, config.GrantStore = at, tokens.NewMemoryStore()
				cl := w.client(config)
				var group sync.WaitGroup
				for i := range 20 {
					group.Go(func() {
						o, err := cl.Publish(ctx, participation.EventKey(strconv.Itoa(i)), example(1))
						if (o.State == participation.Counted) != (i == 0) {
							t.Errorf("event %d: %v, refused %v, %v", i, o.State, o.Refused, err)
						}
					})
					time.Sleep(time.Second)
				}
				group.Wait()
				must(t, cl.Close())
			})
		})
	}
}

// TestTokenOfAPersonAtAgreement: a device of one person asks the issuer once, when it has agreed to the task: whether
// events come, when, and how many, shows in no request. The first event has the token, over restarts; another one is
// refused, and charged nothing.
func TestTokenOfAPersonAtAgreement(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		events []string
	}{
		"no event": {}, "one at once": {0, []string{"a"}}, "one after an hour": {time.Hour, []string{"a"}},
		"three after a minute": {time.Minute, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 9, cohort: 1, sealed: true, grants: true})
				at := newLogin(t)
				store, kept := participation.NewMemoryStore(), tokens.NewMemoryStore()
				start := func() *device.Device {
					config := w.config(store)
					config.Grants, config.GrantStore = at, kept
					cl := w.client(config)
					_, err := cl.Agreement(t.Context())
					must(t, err)
					return cl
				}
				w.play(t.Context(), func(ctx context.Context) {
					cl := start()
					agreed := time.Since(at.from)
					publish := func(key string) device.Outcome {
						o, err := cl.Publish(ctx, participation.EventKey(key), example(1))
						if o.Refused == nil {
							must(t, err)
						}
						return o
					}
					time.Sleep(c.after)
					for i, key := range c.events {
						o := publish(key)
						if want := i == 0; (o.State == participation.Counted) != want || want == (o.Refused != nil) {
							t.Errorf("event %d: %v, refused %v", i, o.State, o.Refused)
						}
					}
					time.Sleep(time.Minute)
					must(t, cl.Close())
					cl = start() // nobody is asked again
					if len(c.events) > 0 {
						if o := publish("another"); o.State == participation.Counted {
							t.Error("a second event has the token after a restart")
						}
					}
					time.Sleep(time.Minute)
					must(t, cl.Close())
					if got := at.asked(); !slices.Equal(got, []time.Duration{agreed}) {
						t.Errorf("asked at %v, agreed at %v", got, agreed)
					}
				})
			})
		})
	}
}
