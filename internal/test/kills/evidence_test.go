package kills

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// evidence holds what is left when the task has ended: on the broker, on the disks, and as printed.
type evidence struct {
	standing   map[string]stream.Message // by subject
	seen       map[string][]byte         // by the witness
	task       *wire.Task
	end        *wire.End
	rounds     map[uint64]*round
	publishers []publisher
	status     statedir.Status
	ledger     ledger
}

// A ledger is the document that learner ledger prints.
type ledger struct {
	statedir.LedgerReport
	Entries, Chain []statedir.LedgerEntry
}

// A round holds the records about one round.
type round struct {
	announced *wire.Round
	opens     int
	claim     *wire.Claim
	batch     *wire.Batch
	closes    []*wire.Close
}

// A publisher holds what its store holds and its last life printed.
type publisher struct {
	name    string
	rows    []participation.Record
	summary device.Summary
	block   uint64 // rows of each of its events, of which rows has one each
	left    uint64 // rows at the end of its file that fill no block
}

// collect reads everything. The commands have ended; the broker runs.
func (f *fleet) collect(w *witness) *evidence {
	f.t.Helper()
	conn, err := natsjs.Connect(natsjs.ConnectConfig{URL: f.broker.URL()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	e := &evidence{standing: map[string]stream.Message{}, seen: w.book, rounds: map[uint64]*round{}}
	e.records(f.t, conn)
	block := int(max(1, e.task.Plan.Phases[0].Mechanism.Units))
	if f.all {
		block = f.rows
	}
	for i := range f.publishers {
		e.publishers = append(e.publishers, f.publisher(i, block))
	}
	decode(f.t, f.ask("status", f.path("state")), &e.status)
	decode(f.t, f.ask("ledger", f.path("state")), &e.ledger)
	return e
}

// get reads a record into its message, if it is there, and insists on its signer.
func get[M proto.Message](t testing.TB, e *evidence, conn *natsjs.Conn, subject string, key []byte, into M) (M, bool) {
	t.Helper()
	m, err := conn.Get(t.Context(), subject)
	if errors.Is(err, stream.ErrNotFound) {
		return into, false
	}
	if err == nil {
		_, err = seal.Verify(m.Data, key, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	e.standing[subject] = m
	return into, true
}

func (e *evidence) records(t testing.TB, conn *natsjs.Conn) {
	t.Helper()
	m, err := conn.Get(t.Context(), name.Stage())
	if err != nil {
		t.Fatal(err)
	}
	stage, err := seal.VerifyStage(m.Data, &wire.StageIdentity{})
	if err != nil {
		t.Fatal(err)
	}
	e.standing[m.Subject] = m
	if m, err = conn.Get(t.Context(), name.Task()); err != nil {
		t.Fatal(err)
	}
	var signed wire.Signed
	if err := stream.Unmarshal(m.Data, &signed); err != nil {
		t.Fatal(err)
	}
	e.task, _ = get(t, e, conn, name.Task(), signed.Key, &wire.Task{})
	learner := e.task.LearnerKey
	e.end, _ = get(t, e, conn, name.End(), learner, &wire.End{})
	for r := uint64(1); ; r++ {
		one := &round{}
		var found bool
		if one.announced, found = get(t, e, conn, name.Round(stream.Round(r)), learner, &wire.Round{}); !found {
			return
		}
		e.rounds[r] = one
		if claim, found := get(t, e, conn, name.Claim(stream.Round(r)), stage, &wire.Claim{}); found {
			one.claim = claim
		}
		if batch, found := get(t, e, conn, name.Batch(stream.Round(r)), stage, &wire.Batch{}); found {
			one.batch = batch
		}
		for a := uint64(1); ; a++ {
			if _, found := get(t, e, conn, name.Open(stream.Round(r), stream.Attempt(a)), stage, &wire.Open{}); !found {
				break
			}
			one.opens++
			if c, found := get(t, e, conn, name.Close(stream.Round(r), stream.Attempt(a)), stage, &wire.Close{}); found {
				one.closes = append(one.closes, c)
			}
		}
	}
}

// publisher reads a publisher's store and what its last life printed.
func (f *fleet) publisher(i, block int) publisher {
	f.t.Helper()
	r := f.roles[3+i]
	p := publisher{name: r.Name, block: uint64(block), left: uint64(f.rows % block)}
	out, err := r.Stdout()
	if err != nil {
		f.t.Fatal(err)
	}
	if len(out) > 0 { // who is interrupted before a row was looked at prints nothing
		decode(f.t, out, &p.summary)
	}
	source, err := filepath.Abs(f.data(i))
	if err != nil {
		f.t.Fatal(err)
	}
	keys := make([]participation.Key, f.rows/block)
	for i := range keys {
		keys[i] = participation.RowKey(source, int64(i*block))
	}
	if f.all {
		keys[0] = participation.EventKey("all rows of a silo")
	}
	store, err := filestore.Open(filestore.Path(f.devices(i), name))
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	if p.rows, err = store.Read(keys); err != nil {
		f.t.Fatal(err)
	}
	return p
}

// ask returns the output of a question to the command learner about a state folder.
func (f *fleet) ask(question, dir string) []byte {
	f.t.Helper()
	args := []string{question, "--state", dir}
	if question != "snapshot" {
		args = append(args, "--json")
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, programs.Learner, args...).Output()
	if err != nil {
		f.t.Fatalf("learner %s: %v", question, err)
	}
	return out
}

func decode(t testing.TB, doc []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(doc, into); err != nil {
		t.Fatalf("%v in %q", err, doc)
	}
}
