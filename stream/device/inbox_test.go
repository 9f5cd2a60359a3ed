package device

import "testing"

// A loop that took the token when it had room, and has none when it takes events, is signalled again: no event has to
// wait until the next one comes.
func TestInboxKeepsItsTokenForWhoHasNoRoom(t *testing.T) {
	q := newInbox(2)
	if err := q.put(t.Context(), &event{}); err != nil {
		t.Fatal(err)
	}
	<-q.ready
	if got := q.take(0); got != nil {
		t.Fatalf("took %d events, want none", len(got))
	}
	select {
	case <-q.ready:
	default:
		t.Error("an event waits, and no token says so")
	}
	q.take(1)
	q.take(0)
	select {
	case <-q.ready:
		t.Error("a token, and no event waits")
	default:
	}
}
