package kills

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// replay lets an undisturbed learner read the batches on the broker, from an empty folder, and lists where
// its disk, or the output about it, differs from the killed one's.
func (f *fleet) replay(e *evidence) (differences []string) {
	f.t.Helper()
	broker := f.batches(e)
	dir := filepath.Join(f.dir, "undisturbed")
	f.learn(dated{broker, e.standing}, e.task, dir, e.end.LastRound)
	for _, m := range broker.Dump() {
		_, s, _ := stream.StreamOf(m.Subject)
		if m.Subject == name.Round(stream.Round(e.end.LastRound+1)) {
			continue // of a task that was finished
		}
		if s == stream.Rounds && !bytes.Equal(e.standing[m.Subject].Data, m.Data) {
			differences = append(differences, m.Subject+" is not what an undisturbed learner announces")
		}
	}
	if f.endless { // which the undisturbed one was not asked to finish
		return append(differences, f.learnedAs(dir)...)
	}
	differences = append(differences, f.sameAs(dir)...)
	early := filepath.Join(f.dir, "early")
	f.learn(dated{f.batches(e), e.standing}, e.task, early, e.end.LastRound-1)
	if got := f.sameDisk(early); len(got) != 2 {
		differences = append(differences, fmt.Sprintf("a learner that lacks the last batch differs in %q only", got))
	}
	return differences
}

// sameAs compares what is on disk and what is printed.
func (f *fleet) sameAs(dir string) (differences []string) {
	differences = f.sameDisk(dir)
	for _, question := range []string{"snapshot", "ledger", "status", "history"} {
		if !bytes.Equal(f.ask(question, f.path("state")), f.ask(question, dir)) {
			differences = append(differences, "learner "+question+" prints another text")
		}
	}
	return differences
}

// keep copies the folder of a learner that was just killed, the first time that there is something in it.
func (f *fleet) keep(c state.Checkpoint) {
	f.t.Helper()
	if f.kept != "" || c.IsZero() {
		return
	}
	f.kept = f.path("kept")
	if err := os.Mkdir(f.kept, 0o700); err != nil {
		f.t.Fatal(err)
	}
	files, err := os.ReadDir(f.path("state"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, file := range files {
		if !file.Type().IsRegular() {
			continue // the control socket
		}
		data, err := os.ReadFile(filepath.Join(f.path("state"), file.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(f.kept, file.Name()), data, 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// goOn runs the command itself from the folder that was kept, on the broker of the campaign, and lists where
// it does not arrive at the same state.
func (f *fleet) goOn() (differences []string) {
	f.t.Helper()
	if f.kept == "" {
		f.t.Log("NOT RUN: going on from an older copy: every kill of the learner came before its first commit")
		return nil
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	p := programs.Process(f.t, "older", programs.Learner, "run", "-f", f.path("task.yaml"), "--nats", f.broker.URL(),
		"--state", f.kept,
		"--identity", f.path("learner.key"), "--exit-when-done", "--accept-rollback")
	if err := p.Start(); err != nil {
		f.t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); err != nil || exit != (procs.Exit{}) {
		return []string{fmt.Sprintf("a learner on an older copy of the folder: %v, %v", exit, err)}
	}
	return f.sameAs(f.kept)
}

// batches returns a broker that holds the stage's key and the batches, with the sequences that they have.
func (f *fleet) batches(e *evidence) *memory.Broker {
	f.t.Helper()
	broker, err := memory.New(memory.Config{})
	if err != nil {
		f.t.Fatal(err)
	}
	var batches []stream.Message
	for _, m := range e.standing {
		if _, s, err := stream.StreamOf(m.Subject); err == nil && s == stream.Batches {
			batches = append(batches, m)
		}
	}
	slices.SortFunc(batches, func(a, b stream.Message) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, m := range append([]stream.Message{e.standing[name.Stage()]}, batches...) {
		if _, err := broker.PutOnce(f.t.Context(), m.Subject, m.Data); err != nil {
			f.t.Fatal(err)
		}
	}
	return broker
}

// dated has the times at which the broker of the campaign stored its records.
type dated struct {
	*memory.Broker
	standing map[string]stream.Message
}

// Get implements stream.Records.
func (d dated) Get(ctx context.Context, subject string) (stream.Message, error) {
	m, err := d.Broker.Get(ctx, subject)
	if at := d.standing[subject].Time; !at.IsZero() {
		m.Time = at
	}
	return m, err
}

// learn runs a learner on a task that is planned already, from an empty folder, until it has committed a round.
func (f *fleet) learn(broker stream.Records, task *wire.Task, dir string, last uint64) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	identity, err := seal.LoadIdentity(f.path("learner.key"))
	if err != nil {
		f.t.Fatal(err)
	}
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	s, err := service.New(service.Config{Task: name, Records: broker, Store: store, Identity: identity,
		Prepare: func() (*wire.Task, error) { return task, nil }, Observer: service.Observer{Applied: func(a service.Applied) {
			if a.Round == last {
				cancel()
			}
		}},
		Snapshots: service.Retention{Rounds: 1, Newest: 30}}) // as a task that ends has it
	if err != nil {
		f.t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		f.t.Fatalf("the undisturbed learner: %v", err)
	}
	if c, err := store.Load(f.t.Context()); err != nil || c.Cursor.Round != last {
		f.t.Fatalf("the undisturbed learner stands at round %d, want %d: %v", c.Cursor.Round, last, err)
	}
}

// sameDisk compares the checkpoints and ledgers of the killed and the undisturbed learner.
func (f *fleet) sameDisk(other string) (differences []string) {
	mine, myLedger := f.disk(f.path("state"))
	theirs, theirLedger := f.disk(other)
	if !bytes.Equal(mine, theirs) {
		differences = append(differences, "the checkpoint is not that of an undisturbed learner")
	}
	if !slices.Equal(myLedger, theirLedger) {
		differences = append(differences, "the ledger is not that of an undisturbed learner")
	}
	return differences
}

func (f *fleet) disk(dir string) (checkpoint []byte, ledger []state.Entry) {
	f.t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	c, err := store.Load(f.t.Context())
	if err == nil {
		checkpoint, err = c.MarshalBinary()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for entry, err := range store.Ledger(f.t.Context()) {
		if err != nil {
			f.t.Fatal(err)
		}
		ledger = append(ledger, entry)
	}
	return checkpoint, ledger
}
