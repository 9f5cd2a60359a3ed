package issuer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/panlearn/panlearn/stream/grant"
)

// TestOneNameOnePerson: a name is one person however Unicode composes it, over the header and for a gateway; names that
// are no UTF-8 are nobody's.
func TestOneNameOnePerson(t *testing.T) {
	d := newDesk(t)
	composed, apart := norm.NFC.String("Zo\u00eb \uac00"), norm.NFD.String("Zo\u00eb \uac00")
	if composed == apart {
		t.Fatal("there is but one form")
	}
	if status, _ := d.ask(composed, d.blind().Message()); status != http.StatusOK {
		t.Errorf("the first: %d", status)
	}
	if status, _ := d.ask(apart, d.blind().Message()); status != http.StatusConflict {
		t.Errorf("the same name, composed otherwise: %d, want 409", status)
	}
	blinded, err := grant.ParseRequest(d.blind().Message(), grant.KeyID(d.key.Signer.Public()))
	must(t, err)
	if _, err := d.list.take(apart, blinded); err != errOther {
		t.Errorf("of a gateway: %v, want ErrOther", err)
	}
	if status, _ := d.ask("Zoe", d.blind().Message()); status != http.StatusOK {
		t.Errorf("another name: %d", status)
	}
	if status, _ := d.ask("Zo\xff", d.blind().Message()); status != http.StatusUnauthorized {
		t.Errorf("no UTF-8: %d, want 401", status)
	}
	if d.list.Len() != 2 {
		t.Errorf("%d people, want 2", d.list.Len())
	}
}

// TestAskedTooOften: who is logged in may ask so often in a window, whatever for; then neither a good request nor a bad
// one is looked at until it ends. Others are not kept from asking.
func TestAskedTooOften(t *testing.T) {
	d := newDesk(t)
	h := d.server.Config.Handler.(*Handler)
	now := time.Now()
	h.turns.now = func() time.Time { return now }
	message := d.blind().Message()
	for range mostAsked - 1 {
		if status, _ := d.ask("ann", []byte("no request")); status != http.StatusUnprocessableEntity {
			t.Fatalf("%d", status)
		}
	}
	if status, _ := d.ask("ann", message); status != http.StatusOK {
		t.Errorf("the last of the window: %d", status)
	}
	status, body := d.ask("ann", message)
	if status != http.StatusTooManyRequests || !strings.Contains(string(body), errOften.Error()) {
		t.Errorf("one more: %d %s, want 429", status, body)
	}
	if status, _ := d.ask("bob", d.blind().Message()); status != http.StatusOK {
		t.Errorf("another person: %d", status)
	}
	now = now.Add(window)
	if status, _ := d.ask("ann", message); status != http.StatusOK {
		t.Errorf("in the next window: %d", status)
	}
}
