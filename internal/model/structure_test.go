package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/model/onnx"
)

// TestONNXStructure checks the files themselves, without a runtime: names are defined once and before they are used,
// constants have as many entries as their shapes say, inputs are the declared columns, outputs those of the loss.
func TestONNXStructure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, theta := drawTask(t)
		snapshot, p := released(t, spec, theta...)
		data, err := snapshot.ONNX()
		if err != nil {
			t.Fatal(err)
		}
		var m onnx.ModelProto
		if err := (proto.UnmarshalOptions{}).Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		requireKnown(t, m.ProtoReflect().GetUnknown())
		again, err := snapshot.ONNX()
		if err != nil || !slices.Equal(data, again) {
			t.Fatalf("written twice, it differs: %v", err)
		}
		defined := map[string]bool{}
		define := func(name string) {
			if name == "" || defined[name] {
				t.Fatalf("%q is defined twice", name)
			}
			defined[name] = true
		}
		for _, in := range m.Graph.Input {
			define(in.Name)
		}
		for _, c := range m.Graph.Initializer {
			define(c.Name)
			size := 1
			for _, n := range c.Dims {
				size *= int(n)
			}
			if got := len(c.DoubleData) + len(c.Int64Data) + len(c.StringData); got != size {
				t.Fatalf("constant %s has shape %v and %d entries", c.Name, c.Dims, got)
			}
		}
		for _, n := range m.Graph.Node {
			for _, name := range n.Input {
				if !defined[name] {
					t.Fatalf("node %s uses %s before it is defined", n.Name, name)
				}
			}
			for _, name := range n.Output {
				define(name)
			}
		}
		var want []string
		if v := spec.Features.Vector; v != nil {
			want = []string{"vector"}
		}
		want = append(want, spec.Schema().Columns...)
		if got := names(m.Graph.Input); !slices.Equal(got, want) {
			t.Fatalf("inputs %v, want %v", got, want)
		}
		want = []string{"score", "prediction"}
		if p.Features.Classification() {
			want = []string{"score", "probability", "label"}
			if strings.HasSuffix(spec.Model.Loss, "hinge") {
				want = []string{"score", "label"}
			}
		}
		for i, out := range m.Graph.Output {
			if !defined[out.Name] || i >= len(want) || strings.TrimPrefix(out.Name, "output_") != want[i] {
				t.Fatalf("outputs %v, want %v", names(m.Graph.Output), want)
			}
		}
	})
}

func requireKnown(t fataler, unknown []byte) {
	t.Helper()
	if len(unknown) > 0 {
		t.Fatalf("%d bytes of unknown fields", len(unknown))
	}
}

func names(values []*onnx.ValueInfoProto) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.Name)
	}
	return out
}

// TestONNXMetadata: the privacy statement travels inside, for programs and for people.
func TestONNXMetadata(t *testing.T) {
	snapshot, _ := released(t, parsed(t, words), 1, 2, 3, 4)
	data, err := snapshot.ONNX()
	if err != nil {
		t.Fatal(err)
	}
	var m onnx.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range m.MetadataProps {
		got[p.Key] = p.Value
	}
	var statement Statement
	if err := json.Unmarshal([]byte(got["privacy"]), &statement); err != nil || statement != snapshot.Privacy {
		t.Errorf("privacy is %+v, %v, want %+v", statement, err, snapshot.Privacy)
	}
	delete(got, "privacy")
	for key, want := range map[string]string{"task": "words", "task_hash": snapshot.TaskHash.String(), "loss": "logistic",
		"round":         "2",
		"model_version": "2", "format_version": "1", "classes": `["<=50K",">50K"]`, "probabilities": "of the model"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("other metadata: %v", got)
	}
	for _, part := range []string{"epsilon 1,", "delta 1e-06", "trust shuffle", snapshot.Privacy.Unit, "600 users"} {
		if !strings.Contains(m.DocString, part) {
			t.Errorf("%q is not in %q", part, m.DocString)
		}
	}
	if m.ModelVersion != 2 || m.Graph.Name != "words" || m.ProducerName != "panlearn" {
		t.Errorf("version %d, graph %q, producer %q", m.ModelVersion, m.Graph.Name, m.ProducerName)
	}
}

// TestONNXRefuses what no input can be: a field that is read as a number and as a word.
func TestONNXRefuses(t *testing.T) {
	file := strings.Replace(words, `    - {column: kind,`,
		"    - {column: age, kind: hashed, buckets: 2}\n    - {column: kind,", 1)
	snapshot, _ := released(t, parsed(t, file), 1, 2, 3, 4, 5, 6)
	_, err := snapshot.ONNX()
	if err == nil || !strings.Contains(err.Error(), `column "age" is a number and a word`) ||
		!strings.Contains(err.Error(), "json or npy") {
		t.Errorf("%v", err)
	}
	file = strings.Replace(words, `kind: categorical, vocabulary: ["a<b", "c&d"], unknown: drop`, "kind: text, buckets: 2",
		1)
	snapshot, _ = released(t, parsed(t, file), 1, 2, 3, 4)
	if _, err := snapshot.ONNX(); err == nil || !strings.Contains(err.Error(), `"kind#0" is of kind text`) ||
		!strings.Contains(err.Error(), "json or npy") {
		t.Errorf("%v", err)
	}
	file = strings.Replace(words, `column: age, kind: numeric`, "column: hour, field: age, part: hour, kind: numeric", 1)
	snapshot, _ = released(t, parsed(t, file), 1, 2, 3, 4)
	if _, err := snapshot.ONNX(); err == nil || !strings.Contains(err.Error(), `column "hour" is part of a date`) ||
		!strings.Contains(err.Error(), "json or npy") {
		t.Errorf("%v", err)
	}
}

func TestProbabilitiesOf(t *testing.T) {
	spec := parsed(t, words)
	for _, c := range []struct {
		loss    string
		weights []float64
		clips   bool
		want    Probabilities
	}{
		{"logistic", nil, false, OfModel},
		{"logistic", nil, true, Uncalibrated},
		{"logistic", []float64{2, 1}, false, Uncalibrated},
		{"logistic", []float64{2, 2}, false, OfModel},
		{"softmax", []float64{1, 1, 3}, false, Uncalibrated},
		{"softmax", nil, false, OfModel},
		{"hinge", nil, false, ""},
		{"squared", nil, true, ""},
	} {
		spec.Model.Loss, spec.Model.ClassWeights = c.loss, c.weights
		if got := ProbabilitiesOf(spec, c.clips); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
