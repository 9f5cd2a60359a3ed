package device

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A tornStore loses what of a write is behind its first grants, and says so, as a file does when the machine goes down.
type tornStore struct {
	grants.Store
	keeps int
}

// Write implements grants.Store.
func (s tornStore) Write(all []grants.Grant) error {
	return errors.Join(s.Store.Write(all[:min(s.keeps, len(all))]), errors.New("the machine went down"))
}

// TestTokenIsKeptWhereItIsGiven: an event that is given the token of a device of one person finds it in the store after
// a restart, wherever a write was torn before: it may have been charged.
func TestTokenIsKeptWhereItIsGiven(t *testing.T) {
	issuer := granttest.New(t, stream.Hash{3})
	of, token := issuer.Tokens, issuer.Token(1)
	for keeps := range 3 {
		for _, comesAgain := range []bool{true, false} {
			store := grants.NewMemoryStore()
			request := grant.Request{Nonce: [grant.NonceSize]byte(token)}
			if err := store.Write([]grants.Grant{{Key: keptAs(of, ownDraws), Request: request, Drawn: true,
				Token: token}}); err != nil {
				t.Fatal(err)
			}
			with := func(s grants.Store) *granting { return newGranting(grants.Login{}, s, slog.New(slog.DiscardHandler)) }
			one, other := keptAs(of, participation.EventKey("one")), keptAs(of, participation.EventKey("other"))
			if got, err := with(tornStore{store, keeps}).giveOne(of, one, token); err == nil {
				t.Fatalf("a torn write is none: %x", got)
			}
			event := one
			if !comesAgain {
				event = other
			}
			got, err := with(store).giveOne(of, event, token)
			if err != nil || comesAgain && got == nil {
				t.Errorf("%d of a torn write: %x, %v", keeps, got, err)
			}
			known, err := store.Look([]participation.Key{event})
			if err != nil || got != nil && !bytes.Equal(known[0].Token, got) {
				t.Errorf("%d of a torn write, the same event %v: the token is given and not kept: %v", keeps, comesAgain, err)
			}
		}
	}
}
