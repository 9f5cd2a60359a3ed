package device_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const vectorFolder = "../../docs/vectors"

// hexed is bytes as hexadecimal text.
type hexed []byte

func (h hexed) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexed) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// reportVector is one message without encryption: for clients in other languages (docs/how-to/clients.md).
type reportVector struct {
	Name      string       `json:"name"`
	Task      stream.Task  `json:"task"`
	TaskHash  hexed        `json:"task_hash"`
	Round     uint64       `json:"round"`
	Attempt   uint64       `json:"attempt"`
	Open      hexed        `json:"open"` // hash of the body of its Open
	Dim       int          `json:"dim"`
	ClipNorm  float64      `json:"clip_norm"`
	Levels    uint32       `json:"levels"`
	Trials    uint32       `json:"trials"`
	Coin      uint32       `json:"coin"`
	Users     []userVector `json:"users"`
	Plaintext hexed        `json:"plaintext,omitempty"`
	Report    hexed        `json:"report,omitempty"`
	Subject   string       `json:"subject,omitempty"`
	MessageID hexed        `json:"message_id,omitempty"`
}

// userVector is one user's part of a message: the words are all that its randomizer draws.
type userVector struct {
	ID    hexed     `json:"id"`
	Words []string  `json:"words"`
	X     []float64 `json:"x"`
}

// A tape notes what a generator draws.
type tape struct {
	rand.Source
	words []string
}

func (t *tape) Uint64() uint64 {
	w := t.Source.Uint64()
	t.words = append(t.words, fmt.Sprintf("%016x", w))
	return w
}

// A replay draws words again.
type replay []string

func (r *replay) Uint64() uint64 {
	w, err := strconv.ParseUint((*r)[0], 16, 64)
	if err != nil {
		panic(err)
	}
	*r = (*r)[1:]
	return w
}

func (v *reportVector) params() randomizer.Params {
	return randomizer.Params{Dim: v.Dim, ClipNorm: v.ClipNorm, Levels: v.Levels, Trials: v.Trials,
		Coin: randomizer.Coin(v.Coin)}
}

// fill encodes the users, from their words if they have any, and makes the message of them.
func (v *reportVector) fill(t *testing.T) {
	t.Helper()
	v.Plaintext = nil
	ids := make([][16]byte, len(v.Users))
	for i := range v.Users {
		u := &v.Users[i]
		ids[i] = [16]byte(u.ID)
		var source rand.Source
		again := replay(u.Words)
		noted := &tape{Source: rand.NewChaCha8([32]byte(bytes.Repeat([]byte{byte(i), byte(v.Dim)}, 16)))}
		if source = &again; len(u.Words) == 0 {
			source = noted
		}
		sum, err := randomizer.NewVectorSum(v.params(), source)
		must(t, err)
		counts, err := sum.Encode(nil, u.X)
		must(t, err)
		v.Plaintext = v.params().Pack(v.Plaintext, counts)
		if len(again) > 0 {
			t.Errorf("%s: %d words of user %d are left", v.Name, len(again), i)
		}
		u.Words = append(u.Words, noted.words...)
	}
	c := seal.Context{Attempt: v.Attempt, StageKey: make([]byte, stream.KeySize)}
	r, err := seal.Seal(wire.Suite_SUITE_NONE, c, stream.Hash(v.TaskHash), ids, v.Plaintext)
	must(t, err)
	v.Report, err = stream.Marshal(r)
	must(t, err)
	id := device.MessageID(ids[0], participation.Attempt{Number: stream.Attempt(v.Attempt), Open: stream.Hash(v.Open)})
	v.Subject, v.MessageID = v.Task.Report(stream.Round(v.Round), stream.Attempt(v.Attempt)), id[:]
}

func reportVectors() []reportVector {
	hash, open := stream.HashOf([]byte("panlearn report vectors")), stream.HashOf([]byte("an Open"))
	id := func(i byte) hexed {
		h := stream.HashOf([]byte{i})
		return h[:16]
	}
	return []reportVector{
		{Name: "one user", Task: "churn", TaskHash: hash[:], Round: 1, Attempt: 1, Open: open[:], Dim: 3, ClipNorm: 1,
			Levels: 4, Trials: 11, Coin: 1 << 23,
			Users: []userVector{{ID: id(1), X: []float64{0, -0.5, 0}}}},
		{Name: "a bundle of two users", Task: "a9a", TaskHash: hash[:], Round: 12, Attempt: 300, Open: open[:], Dim: 5,
			ClipNorm: 2, Levels: 9,
			Trials: 600, Coin: 1 << 23, Users: []userVector{{ID: id(7), X: []float64{1, 2, 3, 4, 5}},
				{ID: id(8), X: []float64{-0.5, 0, 0.25, 0, 0}}}},
		{Name: "no noise of the device, a plaintext of more than 127 bytes", Task: "pan", TaskHash: hash[:], Round: 2,
			Attempt: 1, Open: open[:], Dim: 260, ClipNorm: 0.5,
			Levels: 31, Coin: 1 << 23, Users: []userVector{{ID: id(3), X: make([]float64, 260)}}},
	}
}

func readVectors(t *testing.T) (file []byte, v []reportVector) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(vectorFolder, "report.json"))
	must(t, err)
	must(t, json.Unmarshal(file, &v))
	return file, v
}

func TestReportVectors(t *testing.T) {
	want := reportVectors()
	for i := range want {
		want[i].fill(t)
	}
	text, err := json.MarshalIndent(want, "", "  ")
	must(t, err)
	text = append(text, '\n')
	if golden.Updating() {
		must(t, os.WriteFile(filepath.Join(vectorFolder, "report.json"), text, 0o644))
	}
	file, stored := readVectors(t)
	if !bytes.Equal(file, text) {
		t.Errorf("report.json is not what the inputs give; look at the difference after go test -run ReportVectors -update")
	}
	for _, v := range stored {
		again := v
		again.fill(t) // from the words
		var r wire.Report
		must(t, stream.Unmarshal(v.Report, &r))
		if !bytes.Equal(again.Report, v.Report) || !bytes.Equal(r.Ciphertext, v.Plaintext) {
			t.Errorf("%s: report %x, stored %x", v.Name, again.Report, v.Report)
		}
	}
}

// TestClientSendsTheVector checks the vectors against a device: a Device that draws the words of the first vector
// puts its bytes on the broker, except the report id, which is random.
func TestClientSendsTheVector(t *testing.T) {
	_, vectors := readVectors(t)
	v := vectors[0]
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 40, deadline: time.Minute})
		if got := v.params(); got != w.params {
			t.Fatalf("the task has %v, the vector %v", w.params, got)
		}
		c := w.config(participation.NewMemoryStore())
		words := replay(v.Users[0].Words)
		c.Entropy = &words
		hash := w.announce(t.Context(), 1)
		w.put(t.Context(), w.name.Stage(), w.stage, &wire.StageIdentity{Version: stream.Version, Task: string(w.name),
			Key: w.stage.Public()})
		w.put(t.Context(), w.name.Open(1, 1), w.stage, w.openMessage(1, 1, hash))
		cl := w.client(c)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		// The point of round 1 is (0.1, 0, -1): the logistic loss has the slope -1/2 there, exactly, on every machine.
		e := convex.Example{Index: []int32{1}, Value: []float64{1}, Label: 1}
		_, _ = cl.Publish(ctx, participation.EventKey("one"), e) // sent; nobody collects it
		agreement, err := cl.Agreement(t.Context())
		must(t, err)
		must(t, cl.Close())
		if len(words) > 0 {
			t.Errorf("%d words were not drawn", len(words))
		}
		gradient := make([]float64, 3)
		agreement.Phases[0].Reports.Loss.Gradient(gradient, w.round(1, 1).Point, e)
		if !slices.Equal(gradient, v.Users[0].X) {
			t.Errorf("the event has the gradient %v, the vector is of %v", gradient, v.Users[0].X)
		}
		sent := 0
		for _, m := range w.broker.Dump() {
			if m.Stream != stream.Reports {
				continue
			}
			sent++
			var r wire.Report
			must(t, stream.Unmarshal(m.Data, &r))
			own := v
			own.Users = []userVector{{ID: r.Ids[0], X: gradient, Words: v.Users[0].Words}}
			own.Task, own.TaskHash = w.name, w.hash[:]
			var signed wire.Signed
			opened, err := w.broker.Get(t.Context(), w.name.Open(1, 1))
			must(t, err)
			must(t, stream.Unmarshal(opened.Data, &signed))
			hash := stream.HashOf(signed.Body)
			own.Open = hash[:]
			own.fill(t)
			if !bytes.Equal(r.Ciphertext, v.Plaintext) || !bytes.Equal(m.Data, own.Report) || m.Subject != own.Subject ||
				!bytes.Equal(m.ID[:], own.MessageID) {
				t.Errorf("sent %x on %s under %x, want %x on %s under %x", m.Data, m.Subject, m.ID, own.Report, own.Subject,
					own.MessageID)
			}
		}
		if sent != 1 {
			t.Errorf("%d reports were sent, want 1", sent)
		}
	})
}

// TestPythonEncodes runs the script of docs/vectors, which shares no code with this module, on the inputs alone, and
// compares what it makes of them.
func TestPythonEncodes(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Println("NOT RUN: reports as Python encodes them: no python3")
		t.Log("NOT RUN: reports as Python encodes them: no python3")
		return
	}
	script := filepath.Join(vectorFolder, "encode_report.py")
	results := map[string][]string{
		"randomizer.json": {"position", "counts", "packed"},
		"report.json":     {"plaintext", "report", "subject", "message_id"},
	}
	for file, keys := range results {
		data, err := os.ReadFile(filepath.Join(vectorFolder, file))
		must(t, err)
		var want, inputs []map[string]any
		must(t, json.Unmarshal(data, &want))
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		must(t, decoder.Decode(&inputs))
		for _, v := range inputs {
			for _, key := range keys {
				delete(v, key)
			}
		}
		in, err := json.Marshal(inputs)
		must(t, err)
		run := exec.CommandContext(t.Context(), python, "-I", "-B", script, "--encode")
		run.Stdin = bytes.NewReader(in)
		var out, errs bytes.Buffer
		run.Stdout, run.Stderr = &out, &errs
		if err := run.Run(); err != nil {
			t.Fatalf("%s: %v: %s", file, err, &errs)
		}
		var got []map[string]any
		must(t, json.Unmarshal(out.Bytes(), &got))
		if len(got) != len(want) || len(want) == 0 {
			t.Fatalf("%s: %d results of %d vectors", file, len(got), len(want))
		}
		for i, v := range want {
			for _, key := range keys {
				if fmt.Sprint(got[i][key]) != fmt.Sprint(v[key]) || v[key] == nil {
					t.Errorf("%s: %s: %s is %v in Python, %v here", file, v["name"], key, got[i][key], v[key])
				}
			}
		}
	}
	// What the documents tell to run.
	if out, err := exec.CommandContext(t.Context(), python, "-I", "-B", script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
