package issuer

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/disk"
)

// TestTwoListsOfAKey: a second process with the same key and a folder of its own is refused, also while nobody has a
// token yet, and the mark says 0: each would sign for the same people.
func TestTwoListsOfAKey(t *testing.T) {
	d := newDesk(t)
	other := filepath.Join(t.TempDir(), "other")
	list, err := OpenList(other, d.keyPath, d.key)
	if !errors.Is(err, disk.ErrHeld) {
		t.Fatalf("a second list of a key is open beside the first: %v", err)
	}
	if list != nil {
		t.Error("a list and an error")
	}
	if status, _ := d.ask("ann", d.blind().Message()); status != 200 {
		t.Fatal(status)
	}
	d.stop()
	if _, err := OpenList(other, d.keyPath, d.key); !errors.Is(err, ErrList) {
		t.Errorf("another list after the first one signed: %v", err)
	}
	must(t, d.start())
}

// TestListOfAnotherVersion: a list of another version is refused with the way out, with people in it or without, and not a
// byte of it is changed.
func TestListOfAnotherVersion(t *testing.T) {
	d := newDesk(t)
	path := filepath.Join(d.dir, listName)
	for _, people := range []int{0, 1} {
		if people > 0 {
			if status, _ := d.ask("ann", d.blind().Message()); status != 200 {
				t.Fatal(status)
			}
		}
		d.stop()
		now, err := os.ReadFile(path)
		must(t, err)
		later := bytes.Replace(now, []byte(listMagic), []byte(listKind+"2\n"), 1)
		must(t, os.WriteFile(path, later, 0o600))
		if err := d.start(); !errors.Is(err, ErrList) || !strings.Contains(err.Error(), "was written by another version of panlearn") {
			t.Errorf("with %d people: %v", people, err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, later) {
			t.Errorf("with %d people: the list was changed", people)
		}
		must(t, os.WriteFile(path, now, 0o600))
		must(t, d.start())
	}
}

// TestMarkOutlivesItsKey: where a key file is away and its mark says that people have their token, no key is made: a
// new mark of 0 would let an older copy of the list pass once the key is back.
func TestMarkOutlivesItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "issuer.key")
	must(t, writeMark(path, 3))
	if _, err := OpenKey(path, "churn"); err == nil {
		t.Error("a key is made over another's mark")
	}
	if n, err := readMark(path + markSuffix); err != nil || n != 3 {
		t.Errorf("the mark is %d, %v", n, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the key was made")
	}
	must(t, writeMark(path, 0)) // a process died before it made the key
	if _, err := OpenKey(path, "churn"); err != nil {
		t.Error(err)
	}
}

// TestSpellingsOfAName: blanks around a name, and control characters in it, make no second person, in a header or from
// a gateway.
func TestSpellingsOfAName(t *testing.T) {
	d := newDesk(t)
	if status, _ := d.ask("ann", d.blind().Message()); status != 200 {
		t.Fatal(status)
	}
	for _, name := range []string{"ann\u00a0", "\u2003ann", "ann\u0085", "a\tnn", strings.Repeat("a", maxPerson+1)} {
		if status, _ := d.ask(name, d.blind().Message()); status != 401 {
			t.Errorf("%q in the header: %d", name, status)
		}
	}
	var b batchBody
	for _, name := range []string{" ann", "ann\n", "ann\x00", "ann\u00a0", ""} {
		b.Requests = append(b.Requests, batchRequest{name, d.blind().Message()})
	}
	body, err := json.Marshal(b)
	must(t, err)
	r, err := http.NewRequest("POST", d.server.URL+"/v1/tasks/churn/grants", strings.NewReader(string(body)))
	must(t, err)
	r.Header.Set("Authorization", "Bearer a-token-of-the-gateway")
	status, text := d.do(r)
	var out batchAnswers
	must(t, json.Unmarshal(text, &out))
	for i, a := range out.Answers {
		if a.Status != 400 {
			t.Errorf("%q of a gateway: %d", b.Requests[i].Person, a.Status)
		}
	}
	if status != 200 || len(out.Answers) != 5 || d.list.Len() != 1 {
		t.Errorf("%d, %d answers, %d people", status, len(out.Answers), d.list.Len())
	}
}
