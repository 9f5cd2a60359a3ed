package consent_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// taskVector is the body of a Task, which a device reads under a policy.
type taskVector struct {
	Name   string          `json:"name"`
	Policy json.RawMessage `json:"policy,omitempty"`
	Pinned hexed           `json:"pinned,omitempty"` // hash that the device's store has
	Task   hexed           `json:"task"`
	// Zeros counts the zero bytes between Task and Tail, which is the end of the body.
	Zeros   int    `json:"zeros,omitempty"`
	Tail    hexed  `json:"tail,omitempty"`
	Refused string `json:"refused,omitempty"` // number of the check
	Field   string `json:"field,omitempty"`   // that the refusal names
	Terms   *terms `json:"accepted,omitempty"`
}

// check does what a device does with the body of a Task whose signature it has verified.
func (v *taskVector) check() (*consent.Agreement, error) {
	p, err := consent.ParsePolicy(v.Policy)
	if err != nil {
		return nil, err
	}
	body := append(append(bytes.Clone(v.Task), make([]byte, v.Zeros)...), v.Tail...)
	var m wire.Task
	if err := stream.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	hash := stream.HashOf(body)
	var pinned *stream.Hash
	if len(v.Pinned) > 0 {
		pinned = (*stream.Hash)(v.Pinned)
	}
	if err := p.CheckPin(&m, hash, pinned); err != nil {
		return nil, err
	}
	return p.CheckTask(&m, hash)
}

// A changed describes a task that differs in one thing from one of the scene.
type changed struct {
	number, name string // of the check that refuses it; empty: it is accepted
	base         string
	policy       string // in JSON
	change       func(m *wire.Task)
	stored       bool // the store pins it
}

func bases(t *testing.T) map[string]*wire.Task {
	return map[string]*wire.Task{
		"shuffle": provedTask(t, accounting.Shuffle), "pan": provedTask(t, accounting.Pan),
		"shuffle+pan": provedTask(t, accounting.ShufflePan), "practical": practicalTask(t),
		"practical without an intercept": practicalTask(t, "intercept=0"), "adaptive": adaptiveTask(t),
		"split": splitTask(t), "one operator": splitTask(t, ", one: true"), "grants": grantsTask(t), "silos": siloTask(t), "prox": proxTask(t), "interactive": interactiveTask(t),
	}
}

// make returns the vector of a changed task.
func (c changed) make(t *testing.T, all map[string]*wire.Task) taskVector {
	t.Helper()
	m := proto.CloneOf(all[c.base])
	if c.change != nil {
		c.change(m)
	}
	v := taskVector{Name: c.name, Policy: json.RawMessage(c.policy), Refused: c.number, Task: marshal(t, m)}
	if manifest.HasOperators(all[c.base].Plan) && c.number != "P9" && c.number != "P10" { // a task of two operators is pinned by its hash, or keys
		v.Policy = json.RawMessage(strings.Replace(cmp.Or(c.policy, "{PINS}"), "PINS",
			fmt.Sprintf(`"task_hash": "%x"`, stream.HashOf(v.Task)), 1))
		v.Policy = json.RawMessage(strings.Replace(string(v.Policy), "HASH", fmt.Sprintf(`"%x"`, stream.HashOf(v.Task)), 1))
	}
	switch c.number {
	case "P1":
		v.Pinned = make([]byte, stream.HashSize)
	case "P9":
		if hash := stream.HashOf(v.Task); c.stored {
			v.Pinned = hash[:]
		}
	case "B4": // public is the last field
		v.Task = marshal(t, m)
		v.Task = append(v.Task, 9<<3|2, 0x81, 0x80, 0x10) // of 2^18 + 1 bytes
		v.Zeros = stream.MaxPublic + 1
	case "B19": // as many zeros as a start may not have
		v.Task, v.Zeros, v.Tail = longStart(t, m)
	}
	return v
}

// longStart returns the body of a task whose plan has one number more of a start than a point may have.
func longStart(t *testing.T, m *wire.Task) (head []byte, zeros int, tail []byte) {
	const values = stream.MaxDim + 1
	m.Plan.Start, m.Plan.StartHash = make([]float64, values), make([]byte, stream.HashSize)
	body := marshal(t, m)
	mark := append([]byte{16<<3&0x7f | 2 | 0x80, 1}, 0x88, 0x80, 0x80, 0x04) // field 16, of 2^23 + 8 bytes
	at := bytes.Index(body, mark)
	if at < 0 {
		t.Fatal("the start is not where it was looked for")
	}
	at += len(mark)
	return body[:at], 8 * values, body[at+8*values:]
}

func taskVectors(t *testing.T) (out []taskVector) {
	all := bases(t)
	seen := make(map[string]bool)
	for _, list := range [][]changed{accepted, ofPolicy, ofBody, ofPlan, ofMechanism, ofDeclaration, ofPhases} {
		for _, c := range list {
			if c.base == "" {
				c.base = "shuffle"
			}
			v := c.make(t, all)
			if seen[v.Name] {
				t.Errorf("two vectors are named %s", v.Name)
			}
			seen[v.Name] = true
			agreed, err := v.check()
			var refused *consent.RefusedError
			switch {
			case v.Refused != "":
				vectors.Refused(t, v.Name, v.Refused, err)
				if asRefused(err, &refused) {
					v.Field = refused.Field
				}
			case err != nil:
				t.Errorf("%s: %v", v.Name, err)
			default:
				v.Terms = termsOf(agreed)
			}
			out = append(out, v)
		}
	}
	return out
}

func phase(m *wire.Task) *wire.Phase           { return m.Plan.Phases[0] }
func last(m *wire.Task) *wire.Phase            { return m.Plan.Phases[len(m.Plan.Phases)-1] }
func mechanismOf(m *wire.Task) *wire.Mechanism { return m.Plan.Phases[0].Mechanism }
func prox(m *wire.Task) *wire.Prox             { return m.Plan.Phases[0].GetProx() }

// redeclare gives a task the canonical form of another declaration.
func redeclare(text string, set ...string) func(m *wire.Task) {
	return func(m *wire.Task) {
		spec, err := task.Parse([]byte(text), set)
		if err != nil {
			panic(err)
		}
		if m.Declaration, err = spec.Canonical(); err != nil {
			panic(err)
		}
	}
}

// operatorKeys pins both operators.
var operatorKeys = fmt.Sprintf(`{"stage_key": "%x", "helper_key": "%x"}`, public(stageKey), public(helperKey))

var accepted = []changed{
	{name: "shuffle"},
	{name: "pan", base: "pan"},
	{name: "shuffle and pan", base: "shuffle+pan"},
	{name: "two operators", base: "split"},
	{name: "two operators, whose keys are pinned", base: "split", policy: operatorKeys},
	{name: "two operators, pinned by one of the policy's hashes", base: "split",
		policy: `{"task_hashes": [HASH], "forbid_first_use": true}`},
	{name: "two operators, where the policy forbids one", base: "split", policy: `{"forbid_one_operator": true, PINS}`},
	{name: "one operator as both, which nothing forbids", base: "one operator"},
	{name: "two operators, in three rounds of a user", base: "split", change: func(m *wire.Task) {
		f := phase(m)
		f.RoundsPerUser, f.Users, f.Mechanism.FloorTrials = 3, 50, 3*f.Mechanism.FloorTrials
	}},
	{name: "tokens", base: "grants"},
	{name: "practical", base: "practical"},
	{name: "practical without an intercept", base: "practical without an intercept"},
	{name: "adaptive", base: "adaptive"},
	{name: "silos, of whom one phase follows another", base: "silos"},
	{name: "silos that report minimisers", base: "prox"},
	{name: "three rounds of one user", base: "interactive"},
	{name: "constants of a method, which stand behind what else a phase has", base: "interactive", policy: `{"max_epsilon": 9}`,
		change: func(m *wire.Task) {
			f := secondPhase(m)
			f.Again, f.Constants = true, &wire.Phase_Acceleration{Acceleration: &wire.Acceleration{V: 1, Mu: 1, Smoothness: 1}}
		}},
	{name: "three rounds of one user, all of which the policy takes", base: "interactive",
		policy: `{"max_rounds_per_user": 3}`},
	{name: "less epsilon than declared, which the plan keeps", policy: `{"max_epsilon": 4}`},
	{name: "twice, where the policy has the epsilon", policy: `{"max_epsilon": 9}`},
	{name: "no refund", policy: `{"max_epsilon": 9, "max_refunds": 0}`},
	{name: "half of the cohort is honest", policy: `{"honest_fraction": "1/2", "max_epsilon": 9}`},
	{name: "more honest than the plan needs", policy: `{"honest_fraction": "1"}`},
	{name: "a smaller delta", policy: `{"max_delta": 1e-4, "max_epsilon": 9}`},
	{name: "as many as the policy wants", policy: `{"min_cohort": 50}`},
	{name: "one of the policy's tasks", policy: `{"tasks": ["other", "churn"]}`},
	{name: "keys that are pinned", policy: fmt.Sprintf(`{"learner_key": "%x", "stage_key": "%x", "forbid_first_use": true}`,
		public(learnerKey), public(stageKey))},
	{name: "without encryption, which is declared and allowed", policy: `{"allow_plaintext": true}`,
		change: func(m *wire.Task) {
			m.Suite = wire.Suite_SUITE_NONE
			redeclare(proved, "privacy.seal=none")(m)
		}},
	{name: "the hybrid suite", change: func(m *wire.Task) {
		m.Suite = wire.Suite_SUITE_MLKEM768_X25519
		redeclare(proved, "privacy.suite=3")(m)
	}},
	{name: "an envelope in the second phase", change: func(m *wire.Task) { secondPhase(m).Smoothing = 2 }},
	{name: "places", change: func(m *wire.Task) { m.Plan.Places = true }},
	{name: "the longest deadline", change: func(m *wire.Task) { m.Plan.DeadlineMs = 366 * 24 * 3600000 }},
	{name: "a deadline of a round's own, and retention", change: func(m *wire.Task) {
		m.Plan.StaleMs, m.Plan.RetentionMs = m.Plan.DeadlineMs, 3600000
	}},
}

var ofPolicy = []changed{
	{number: "P1", name: "another task is pinned"},
	{number: "P2", name: "no pin, and first use is forbidden", policy: `{"forbid_first_use": true}`},
	{number: "P2", name: "one key alone is no pin", policy: fmt.Sprintf(`{"forbid_first_use": true, "stage_key": "%x"}`,
		public(stageKey))},
	{number: "P3", name: "a name that the policy does not list", policy: `{"tasks": ["other"]}`},
	{number: "P4", name: "another task hash", policy: fmt.Sprintf(`{"task_hash": "%064x"}`, 1)},
	{number: "P5", name: "none of the task hashes", policy: fmt.Sprintf(`{"task_hashes": ["%064x"]}`, 1)},
	{number: "P6", name: "another learner", policy: fmt.Sprintf(`{"learner_key": "%x"}`, public(stageKey))},
	{number: "P7", name: "another stage", policy: fmt.Sprintf(`{"stage_key": "%x"}`, public(learnerKey))},
	{number: "P9", name: "two operators, pinned by nobody", base: "split"},
	{number: "P9", name: "two operators, pinned by the store alone", base: "split", stored: true},
	{number: "P9", name: "two operators, of whom the leader is pinned", base: "split",
		policy: fmt.Sprintf(`{"stage_key": "%x"}`, public(stageKey))},
	{number: "P9", name: "two operators, of whom the helper is pinned", base: "split",
		policy: fmt.Sprintf(`{"helper_key": "%x"}`, public(helperKey))},
	{number: "P9", name: "two operators, of whom the leader is pinned beside the learner", base: "split",
		policy: fmt.Sprintf(`{"learner_key": "%x", "stage_key": "%x"}`, public(learnerKey), public(stageKey))},
	{number: "P10", name: "another helper", base: "split",
		policy: fmt.Sprintf(`{"stage_key": "%x", "helper_key": "%x"}`, public(stageKey), public(learnerKey))},
	{number: "P8", name: "no encryption", change: func(m *wire.Task) { m.Suite = wire.Suite_SUITE_NONE }},
}

var ofBody = []changed{
	{number: "B1", name: "a name in capitals", change: func(m *wire.Task) { m.Name = "Churn" }},
	{number: "B1", name: "a name of 33 letters", change: func(m *wire.Task) {
		m.Name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	}},
	{number: "B1", name: "no name", change: func(m *wire.Task) { m.Name = "" }},
	{number: "B2", name: "no plan", change: func(m *wire.Task) { m.Plan = nil }},
	{number: "B3", name: "goes on in an unknown way", change: func(m *wire.Task) { m.Plan.Continuous = 5 }},
	{number: "B4", name: "a public file that is too long"},
	{number: "B5", name: "a short learner key", change: func(m *wire.Task) { m.LearnerKey = m.LearnerKey[1:] }},
	{number: "B6", name: "no life", change: func(m *wire.Task) { m.Life = nil }},
	{number: "B7", name: "a long stage key", change: func(m *wire.Task) { m.StageKey = append(m.StageKey, 0) }},
	{number: "B36", name: "a short helper key", base: "split", change: func(m *wire.Task) { m.HelperKey = m.HelperKey[1:] }},
	{number: "B42", name: "a short issuer key", base: "grants", change: func(m *wire.Task) { m.IssuerKey = m.IssuerKey[1:] }},
	{number: "B37", name: "a long name of Prio3", base: "split", change: func(m *wire.Task) {
		m.Plan.Prio3 = strings.Repeat("x", 65)
	}},
	{number: "B8", name: "no suite", change: func(m *wire.Task) { m.Suite = 0 }},
	{number: "B8", name: "an unknown suite", change: func(m *wire.Task) { m.Suite = 4 }},
	{number: "B9", name: "no phase", change: func(m *wire.Task) { m.Plan.Phases = nil }},
	{number: "B9", name: "65 phases", change: func(m *wire.Task) {
		for range 64 {
			secondPhase(m)
		}
	}},
	{number: "B10", name: "no rounds", change: func(m *wire.Task) { phase(m).Rounds = 0 }},
	{number: "B11", name: "a minimum above the cohort", change: func(m *wire.Task) { phase(m).Minimum = 51 }},
	{number: "B11", name: "a minimum of nobody", change: func(m *wire.Task) { phase(m).Minimum = 0 }},
	{number: "B12", name: "no mechanism", change: func(m *wire.Task) { phase(m).Mechanism = nil }},
	{number: "B13", name: "smoothing is no number", change: func(m *wire.Task) { phase(m).Smoothing = math.NaN() }},
	{number: "B13", name: "smoothing of minus zero", change: func(m *wire.Task) {
		phase(m).Smoothing = math.Copysign(0, -1)
	}},
	{number: "B14", name: "an unknown statistic", change: func(m *wire.Task) { phase(m).Statistic = 3 }},
	{number: "B15", name: "moments that are smoothed", base: "practical", change: func(m *wire.Task) {
		phase(m).Smoothing = 1
	}},
	{number: "B16", name: "more rounds than users", change: func(m *wire.Task) { phase(m).Users = 2 }},
	{number: "B17", name: "a start's privacy without a start", change: func(m *wire.Task) {
		m.Plan.StartPrivacy = &wire.StartPrivacy{}
	}},
	{number: "B18", name: "the hash of no start", change: func(m *wire.Task) { m.Plan.StartHash = make([]byte, 32) }},
	{number: "B18", name: "a start without its hash", change: func(m *wire.Task) { m.Plan.Start = make([]float64, 3) }},
	{number: "B19", name: "a start that is too long"},
	{number: "B20", name: "a start that is no number", change: start(math.NaN(), &wire.StartPrivacy{})},
	{number: "B20", name: "a start that is infinite", change: start(math.Inf(1), &wire.StartPrivacy{})},
	{number: "B21", name: "a start of a task with 65 letters", change: start(0, &wire.StartPrivacy{
		Task: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})},
	{number: "B22", name: "a start of negative epsilon", change: start(0, &wire.StartPrivacy{Epsilon: -1})},
	{number: "B22", name: "a start of infinite delta", change: start(0, &wire.StartPrivacy{Delta: math.Inf(1)})},
	{number: "B23", name: "no epsilon", change: func(m *wire.Task) { m.Plan.Epsilon = 0 }},
	{number: "B24", name: "delta is no number", change: func(m *wire.Task) { m.Plan.Delta = math.NaN() }},
	{number: "B25", name: "an infinite budget", change: func(m *wire.Task) { m.Plan.EpsilonBudget = math.Inf(1) }},
}

// start gives a plan a start of three numbers, of which one is v.
func start(v float64, of *wire.StartPrivacy) func(m *wire.Task) {
	return func(m *wire.Task) {
		m.Plan.Start, m.Plan.StartHash, m.Plan.StartPrivacy = []float64{0, v, 0}, make([]byte, 32), of
	}
}
