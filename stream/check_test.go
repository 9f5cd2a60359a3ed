package stream_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// breaks is one way to spoil a valid message, and what the error must name.
type breaks struct {
	kind, says string
	spoil      func(proto.Message)
}

func on[T proto.Message](f func(T)) func(proto.Message) { return func(m proto.Message) { f(m.(T)) } }

func allBreaks() []breaks {
	return []breaks{
		{"Signed", "key", on(func(m *wire.Signed) { m.Key = m.Key[:31] })},
		{"Signed", "signature", on(func(m *wire.Signed) { m.Signature = append(m.Signature, 1) })},
		{"StageIdentity", "task name", on(func(m *wire.StageIdentity) { m.Task = "a.b" })},
		{"StageIdentity", "key", on(func(m *wire.StageIdentity) { m.Key = nil })},
		{"Task", "task name", on(func(m *wire.Task) { m.Name = strings.Repeat("a", 33) })},
		{"Task", "plan: missing", on(func(m *wire.Task) { m.Plan = nil })},
		{"Task", "rounds", on(func(m *wire.Task) {
			m.Plan.Phases[0].Rounds, m.Plan.Phases[0].RoundsPerUser = m.Plan.Phases[0].Users+1, 1
		})},
		{"Task", "rounds 0", on(func(m *wire.Task) { m.Plan.Phases[0].Rounds = 0 })},
		{"Task", "life", on(func(m *wire.Task) { m.Life = m.Life[1:] })},
		{"Task", "learner_key", on(func(m *wire.Task) { m.LearnerKey = m.LearnerKey[1:] })},
		{"Task", "stage_key", on(func(m *wire.Task) { m.StageKey = nil })},
		{"Task", "suite", on(func(m *wire.Task) { m.Suite = 9 })},
		{"Task", "suite", on(func(m *wire.Task) { m.Suite = 0 })},
		{"Task", "minimum", on(func(m *wire.Task) { m.Plan.Phases[0].Minimum = m.Plan.Phases[0].Cohort + 1 })},
		{"Task", "minimum", on(func(m *wire.Task) { m.Plan.Phases[0].Minimum = 0 })},
		{"Task", "mechanism", on(func(m *wire.Task) { m.Plan.Phases[0].Mechanism = nil })},
		{"Task", "0 phases", on(func(m *wire.Task) { m.Plan.Phases = nil })},
		{"Task", "65 phases", on(func(m *wire.Task) {
			for len(m.Plan.Phases) <= stream.MaxPhases {
				m.Plan.Phases = append(m.Plan.Phases, m.Plan.Phases[0])
			}
		})},
		{"Task", "phases[1]: missing", on(func(m *wire.Task) { m.Plan.Phases = append(m.Plan.Phases[:1:1], nil) })},
		{"Task", "phases[1]: rounds 0", on(func(m *wire.Task) {
			last := proto.CloneOf(m.Plan.Phases[0])
			last.Rounds = 0
			m.Plan.Phases = append(m.Plan.Phases[:1:1], last)
		})},
		{"Task", "smoothing", on(func(m *wire.Task) { m.Plan.Phases[0].Smoothing = -1 })},
		{"Task", "smoothing", on(func(m *wire.Task) { m.Plan.Phases[0].Smoothing = math.NaN() })},
		{"Task", "continuous", on(func(m *wire.Task) { m.Plan.Continuous = 5 })},
		{"Task", "epsilon", on(func(m *wire.Task) { m.Plan.Epsilon = math.NaN() })},
		{"Task", "delta", on(func(m *wire.Task) { m.Plan.Delta = math.Inf(1) })},
		{"Task", "epsilon_budget", on(func(m *wire.Task) { m.Plan.EpsilonBudget = 0 })},
		{"Task", "start_privacy without", on(func(m *wire.Task) { m.Plan.StartPrivacy = &wire.StartPrivacy{Task: "a"} })},
		{"Task", "start_privacy.epsilon", on(func(m *wire.Task) { started(m, &wire.StartPrivacy{Epsilon: -1}) })},
		{"Task", "start_privacy.epsilon", on(func(m *wire.Task) { started(m, &wire.StartPrivacy{Epsilon: math.Inf(1)}) })},
		{"Task", "start_privacy.delta",
			on(func(m *wire.Task) { started(m, &wire.StartPrivacy{Epsilon: 1, Delta: math.NaN()}) })},
		{"Task", "public: 262145 bytes", on(func(m *wire.Task) { m.Public = make([]byte, stream.MaxPublic+1) })},
		{"Round", "task_hash", on(func(m *wire.Round) { m.TaskHash = nil })},
		{"Round", "round 0", on(func(m *wire.Round) { m.Round = 0 })},
		{"Round", "step 0", on(func(m *wire.Round) { m.Step = 0 })},
		{"Round", "point[0]", on(func(m *wire.Round) { m.Point = []float64{math.NaN()} })},
		{"Round", "point[0]", on(func(m *wire.Round) { m.Point = []float64{math.Inf(-1)} })},
		{"Round", "want at most", on(func(m *wire.Round) { m.Point = make([]float64, stream.MaxDim+1) })},
		{"Task", "statistic 3", on(func(m *wire.Task) { m.Plan.Phases[0].Statistic = 3 })},
		{"Task", "smoothing 1: want 0", on(func(m *wire.Task) {
			m.Plan.Phases[0].Statistic, m.Plan.Phases[0].Smoothing = 1,
				1
		})},
		{"Open", "attempt 0", on(func(m *wire.Open) { m.Attempt = 0 })},
		{"Open", "instance", on(func(m *wire.Open) { m.Instance = nil })},
		{"Open", "manifest_hash", on(func(m *wire.Open) { m.ManifestHash = nil })},
		{"Open", "suite", on(func(m *wire.Open) { m.Suite = -1 })},
		{"Claim", "round 0", on(func(m *wire.Claim) { m.Round = 0 })},
		{"Claim", "attempt 0", on(func(m *wire.Claim) { m.Attempt = 0 })},
		{"Claim", "instance", on(func(m *wire.Claim) { m.Instance = append(m.Instance, 0) })},
		{"Batch", "round 0", on(func(m *wire.Batch) { m.Round = 0 })},
		{"Batch", "void batch carries", on(func(m *wire.Batch) { m.Void, m.Users = true, 1 })},
		{"Batch", "void batch carries", on(func(m *wire.Batch) { m.Void, m.Totals = true, []uint64{1} })},
		{"Batch", "without users", on(func(m *wire.Batch) { m.Void, m.Users = false, 0 })},
		{"Batch", "without users", on(func(m *wire.Batch) { m.Void, m.Totals = false, nil })},
		{"Batch", "reason", on(func(m *wire.Batch) { m.Reason = strings.Repeat("x", 65) })},
		{"Batch", "ascending", on(func(m *wire.Batch) {
			m.Rejects = []*wire.Reject{{Reason: "b", Count: 1},
				{Reason: "a", Count: 1}}
		})},
		{"Batch", "ascending", on(func(m *wire.Batch) {
			m.Rejects = []*wire.Reject{{Reason: "a", Count: 1},
				{Reason: "a", Count: 1}}
		})},
		{"Batch", "positive counts", on(func(m *wire.Batch) { m.Rejects = []*wire.Reject{{Reason: "a"}} })},
		{"Close", "attempt 0", on(func(m *wire.Close) { m.Attempt = 0 })},
		{"Close", "batch_hash", on(func(m *wire.Close) { m.BatchHash = nil })},
		{"End", "task_hash", on(func(m *wire.End) { m.TaskHash = nil })},
		{"End", "reason", on(func(m *wire.End) { m.Reason = strings.Repeat("x", 65) })},
		{"Task", "helper_key", on(func(m *wire.Task) { m.HelperKey = make([]byte, 31) })},
		{"Task", "prio3", on(func(m *wire.Task) { m.Plan.Prio3 = strings.Repeat("x", 65) })},
		{"Claim", "open_hash has 0", on(func(m *wire.Claim) { m.OpenHash, m.JoinHash = nil, make([]byte, 32) })},
		{"Batch", "join_hash has 31", on(func(m *wire.Batch) { m.OpenHash, m.JoinHash = make([]byte, 32), make([]byte, 31) })},
		{"Close", "join_hash has 0", on(func(m *wire.Close) { m.OpenHash, m.JoinHash = make([]byte, 32), nil })},
		{"HelperIdentity", "task name", on(func(m *wire.HelperIdentity) { m.Task = "" })},
		{"HelperIdentity", "key", on(func(m *wire.HelperIdentity) { m.Key = nil })},
		{"Join", "round 0", on(func(m *wire.Join) { m.Round = 0 })},
		{"Join", "attempt 0", on(func(m *wire.Join) { m.Attempt = 0 })},
		{"Join", "open_hash", on(func(m *wire.Join) { m.OpenHash = nil })},
		{"Join", "manifest_hash", on(func(m *wire.Join) { m.ManifestHash = nil })},
		{"Join", "instance", on(func(m *wire.Join) { m.Instance = nil })},
		{"Join", "verify_key_hash", on(func(m *wire.Join) { m.VerifyKeyHash = nil })},
		{"Join", "no verify key", on(func(m *wire.Join) { m.KeyCiphertext = nil })},
		{"Join", "suite 4: unknown", on(func(m *wire.Join) { m.Suite = 4 })},
		{"Join", "SUITE_NONE", on(func(m *wire.Join) { m.Suite = wire.Suite_SUITE_NONE })},
		{"Share", "chain", on(func(m *wire.Share) { m.Chain = nil })},
		{"Share", "join_hash", on(func(m *wire.Share) { m.JoinHash = nil })},
		{"Share", "attempt 0", on(func(m *wire.Share) { m.Attempt = 0 })},
		{"Share", "a refusal carries totals",
			on(func(m *wire.Share) { m.Refusal, m.Aggregate = "marked", make([]byte, 16) })},
		{"Share", "a refusal carries totals",
			on(func(m *wire.Share) { m.Refusal, m.Aggregate, m.Users = "marked", nil, 1 })},
		{"Share", "aggregate of 17 bytes", on(func(m *wire.Share) { m.Refusal, m.Aggregate = "", make([]byte, 17) })},
		{"Share", "aggregate of 0 bytes", on(func(m *wire.Share) { m.Refusal, m.Aggregate = "", nil })},
		{"Share", "users 0",
			on(func(m *wire.Share) { m.Refusal, m.Aggregate, m.Users = "", make([]byte, 16), 0 })},
		{"Share", "refusal has 65 bytes", on(func(m *wire.Share) { m.Refusal = strings.Repeat("x", 65) })},
		{"Exchange", "verb 9", on(func(m *wire.Exchange) { m.Verb = 9 })},
		{"Exchange", "verb 0", on(func(m *wire.Exchange) { m.Verb = 0 })},
		{"Exchange", "number 0", on(func(m *wire.Exchange) { m.Verb, m.Number = wire.Verb_VERB_REPLY, 0 })},
		{"Exchange", "number 3", on(func(m *wire.Exchange) { m.Verb, m.Number = wire.Verb_VERB_FINISH, 3 })},
		{"Exchange", "sealed",
			on(func(m *wire.Exchange) { m.Verb, m.Number, m.Plain = wire.Verb_VERB_REQUEST, 1, []byte{1} })},
		{"Exchange", "in clear", on(func(m *wire.Exchange) { m.Verb, m.Number, m.Plain = wire.Verb_VERB_PING, 0, nil })},
		{"Exchange", "open_hash", on(func(m *wire.Exchange) { m.OpenHash = nil })},
		{"Report", "helper_ciphertext", on(func(m *wire.Report) { m.PublicShares, m.HelperCiphertext = nil, []byte{1} })},
		{"Report", "public shares of", on(func(m *wire.Report) {
			m.PublicShares = [][]byte{{1}}
			m.Ids = [][]byte{make([]byte, 16), make([]byte, 16)}
		})},
		{"Report", "a part for the helper", on(func(m *wire.Report) {
			m.Ids, m.PublicShares, m.HelperEncapsulated = m.Ids[:1], [][]byte{{1}}, nil
		})},
		{"Report", "public share of 65 bytes", on(func(m *wire.Report) {
			m.Ids, m.PublicShares = m.Ids[:1], [][]byte{make([]byte, 65)}
			m.HelperEncapsulated, m.HelperCiphertext = []byte{1}, []byte{1}
		})},
		{"Report", "task_hash", on(func(m *wire.Report) { m.TaskHash = nil })},
		{"Report", "0 ids", on(func(m *wire.Report) { m.Ids = nil })},
		{"Report", "id has", on(func(m *wire.Report) { m.Ids[0] = m.Ids[0][:15] })},
		{"Report", "65537 ids", on(func(m *wire.Report) {
			for len(m.Ids) <= stream.MaxBundle {
				m.Ids = append(m.Ids, m.Ids[0])
			}
		})},
	}
}

func TestCheckRefuses(t *testing.T) {
	for i, b := range allBreaks() {
		m := rapid.Custom(func(t *rapid.T) proto.Message { return valid(t, b.kind) }).Example(i)
		if err := stream.Check(m); err != nil {
			t.Fatalf("before: %v", err)
		}
		b.spoil(m)
		if err := stream.Check(m); err == nil || !strings.Contains(err.Error(), b.says) {
			t.Errorf("%s: want an error with %q, got: %v", b.kind, b.says, err)
		}
		data, err := stream.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Unmarshal(data, m.ProtoReflect().New().Interface()); err == nil {
			t.Errorf("%s that wants %q: decoded", b.kind, b.says)
		}
	}
}

func TestCheckSubject(t *testing.T) {
	task := stream.Task("churn")
	right := map[string]func(r stream.Round, a stream.Attempt) string{
		"StageIdentity": func(stream.Round, stream.Attempt) string { return task.Stage() }, "Task": func(stream.Round,
			stream.Attempt) string {
			return task.Task()
		},
		"End": func(stream.Round, stream.Attempt) string { return task.End() }, "Round": func(r stream.Round,
			_ stream.Attempt) string {
			return task.Round(r)
		},
		"Claim": func(r stream.Round, _ stream.Attempt) string { return task.Claim(r) }, "Batch": func(r stream.Round,
			_ stream.Attempt) string {
			return task.Batch(r)
		},
		"Open": task.Open, "Close": task.Close, "Join": task.Join,
		"HelperIdentity": func(stream.Round, stream.Attempt) string { return task.Helper() },
		"Share":          func(r stream.Round, _ stream.Attempt) string { return task.Share(r) },
		"Exchange":       func(stream.Round, stream.Attempt) string { return task.Prepare([16]byte{7}) },
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(right))).Draw(t, "kind")
		m := valid(t, kind)
		r, a := stream.Round(1), stream.Attempt(1)
		if m, ok := m.(interface{ GetRound() uint64 }); ok {
			r = stream.Round(m.GetRound())
		}
		if m, ok := m.(interface{ GetAttempt() uint64 }); ok {
			a = stream.Attempt(m.GetAttempt())
		}
		if err := stream.CheckSubject(right[kind](r, a), m); err != nil {
			t.Fatal(err)
		}
		for other, subject := range right {
			if other != kind && stream.CheckSubject(subject(r, a), m) == nil {
				t.Fatalf("%s is accepted on %s", kind, subject(r, a))
			}
		}
		if s := right[kind](r%(math.MaxUint64)+1, a); s != right[kind](r, a) && stream.CheckSubject(s, m) == nil {
			t.Fatalf("%s of round %d is accepted on %s", kind, r, s)
		}
		if s := right[kind](r, a%(math.MaxUint64)+1); s != right[kind](r, a) && stream.CheckSubject(s, m) == nil {
			t.Fatalf("%s of attempt %d is accepted on %s", kind, a, s)
		}
		if stream.CheckSubject(task.Report(r, a), valid(t, "Report")) == nil {
			t.Fatal("a report is no record")
		}
	})
}

// started has a task begin with a model that states so much.
func started(m *wire.Task, of *wire.StartPrivacy) {
	m.Plan.Start, m.Plan.StartHash, m.Plan.StartPrivacy = []float64{0}, make([]byte, stream.HashSize), of
}
