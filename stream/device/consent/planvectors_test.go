package consent_test

import (
	"bytes"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// ofPlan are plans that cannot be run.
var ofPlan = []changed{
	{number: "M1", name: "a deadline of more than 366 days", change: func(m *wire.Task) {
		m.Plan.DeadlineMs = 366*24*3600000 + 1
	}},
	{number: "M2", name: "a longest deadline below the deadline", change: func(m *wire.Task) { m.Plan.StaleMs = 59999 }},
	{number: "M2", name: "a longest deadline without a deadline", change: func(m *wire.Task) {
		m.Plan.DeadlineMs, m.Plan.StaleMs = 0, 60000
	}},
	{number: "M3", name: "retention of less than an hour", change: func(m *wire.Task) { m.Plan.RetentionMs = 3599999 }},
	{number: "M3", name: "retention of more than ten years", change: func(m *wire.Task) {
		m.Plan.RetentionMs = 10*365*24*3600000 + 1
	}},
	{number: "M4", name: "no trust", change: func(m *wire.Task) { m.Plan.Trust = 0 }},
	{number: "M4", name: "an unknown trust", change: func(m *wire.Task) { m.Plan.Trust = 6 }},
	{number: "M5", name: "nobody is honest", change: func(m *wire.Task) { m.Plan.HonestFraction = "0" }},
	{number: "M5", name: "more than all are honest", change: func(m *wire.Task) { m.Plan.HonestFraction = "3/2" }},
	{number: "M5", name: "no honest fraction", change: func(m *wire.Task) { m.Plan.HonestFraction = "" }},
	{number: "M6", name: "two rounds of moments", base: "practical", change: func(m *wire.Task) {
		phase(m).Rounds, phase(m).Users = 2, 80
	}},
	{number: "M6", name: "the matrix comes first", base: "practical", change: func(m *wire.Task) {
		m.Plan.Phases = m.Plan.Phases[1:]
	}},
	{number: "M6", name: "no gradients after the matrix", base: "practical", change: func(m *wire.Task) {
		m.Plan.Phases = m.Plan.Phases[:2]
	}},
	{number: "M7", name: "a practical plan without moments", base: "practical", change: func(m *wire.Task) {
		m.Plan.Phases = m.Plan.Phases[2:]
	}},
	{number: "M7", name: "a proved plan with moments", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical = nil
	}},
	{number: "M8", name: "a second phase of another dimension", change: func(m *wire.Task) {
		secondPhase(m).Mechanism.Dim = 2
	}},
	{number: "M8", name: "a second phase of another clip norm", change: func(m *wire.Task) {
		secondPhase(m).Mechanism.ClipNorm = 2
	}},
	{number: "M8", name: "a second phase of other scores", change: func(m *wire.Task) {
		secondPhase(m).Mechanism.Scores = 1
	}},
	{number: "M9", name: "moments with scores", base: "practical", change: func(m *wire.Task) {
		phase(m).Mechanism.Scores = 1
	}},
	{number: "M10", name: "users who answer no round", change: func(m *wire.Task) { phase(m).RoundsPerUser = 0 }},
	{number: "M11", name: "more rounds of one user than can be charged", change: func(m *wire.Task) {
		phase(m).Rounds, phase(m).RoundsPerUser, phase(m).Users = 1<<31, 1<<31, 50
	}},
	{number: "M12", name: "too few users for the rounds", change: func(m *wire.Task) { phase(m).Users = 149 }},
	{number: "M13", name: "two of three rounds a user", change: func(m *wire.Task) { phase(m).RoundsPerUser = 2 }},
	{number: "M14", name: "nobody before who could answer again", change: func(m *wire.Task) { phase(m).Again = true }},
	{number: "M14", name: "others answer again", base: "silos", change: func(m *wire.Task) { last(m).Users = 3 }},
	{number: "M15", name: "not all of the users in each of their rounds", base: "interactive",
		change: func(m *wire.Task) { phase(m).Cohort, phase(m).Minimum = 49, 49 }},
	{number: "M16", name: "one of two rounds, of those who answer again", base: "silos", change: func(m *wire.Task) {
		last(m).RoundsPerUser = 1
		last(m).Users, phase(m).Users = 4, 4
		last(m).Cohort, phase(m).Cohort = 4, 4
		last(m).Top = 4
		m.Plan.Silos = 4
	}},
	{number: "M17", name: "several rounds of a user under floors", base: "pan", change: func(m *wire.Task) {
		phase(m).RoundsPerUser, phase(m).Users = 3, 50
	}},
	{number: "M18", name: "a minimiser without prox", change: func(m *wire.Task) { mechanismOf(m).Minimizer = true }},
	{number: "M18", name: "prox without a minimiser", base: "prox", change: func(m *wire.Task) {
		mechanismOf(m).Minimizer = false
	}},
	{number: "M19", name: "gradients after minimisers", base: "prox", change: func(m *wire.Task) {
		f := secondPhase(m)
		f.Constants, f.Mechanism.Minimizer = nil, false
	}},
	{number: "M20", name: "minimisers of single users", base: "prox", change: func(m *wire.Task) { m.Plan.Silos = 0 }},
	{number: "M21", name: "prox of no weight", base: "prox", change: func(m *wire.Task) { prox(m).Weight = 0 }},
	{number: "M22", name: "a step of prox above 1/weight", base: "prox", change: func(m *wire.Task) {
		prox(m).StepSize = 4.1
	}},
	{number: "M23", name: "no steps of prox", base: "prox", change: func(m *wire.Task) { prox(m).Steps = 0 }},
	{number: "M23", name: "too many steps of prox", base: "prox", change: func(m *wire.Task) {
		prox(m).Steps = 1<<14 + 1
	}},
	{number: "M24", name: "another clip norm of minimisers", base: "prox", change: func(m *wire.Task) {
		mechanismOf(m).ClipNorm = 1
	}},
	{number: "M25", name: "minimisers with scores", base: "prox",
		change: func(m *wire.Task) { mechanismOf(m).Scores = 1 }},
	{number: "M26", name: "minimisers with a ridge", base: "prox", change: func(m *wire.Task) { m.Plan.Ridge = 1 }},
	{number: "M26", name: "minimisers that are smoothed", base: "prox", change: func(m *wire.Task) {
		phase(m).Smoothing = 1
	}},
	{number: "M27", name: "a largest cohort in a plan that ends", change: func(m *wire.Task) { phase(m).Top = 50 }},
	{number: "M27", name: "an adaptive plan without a largest cohort", base: "adaptive", change: func(m *wire.Task) {
		last(m).Top = 0
	}},
	{number: "M28", name: "a largest cohort above what noise is planned for", base: "adaptive",
		change: func(m *wire.Task) { last(m).Top = 81 }},
	{number: "M28", name: "a largest cohort below the minimum", base: "adaptive", change: func(m *wire.Task) {
		last(m).Top = 39
	}},
	{number: "M42", name: "noise that is planned for more than 2^32 users", base: "adaptive", change: func(m *wire.Task) {
		last(m).Cohort = 1<<32 + 1
	}},
	{number: "M52", name: "more users than can be counted", change: func(m *wire.Task) {
		phase(m).Users = math.MaxUint64
		phase(m).RoundsPerUser, phase(m).Rounds = 1, 1<<62
		f := secondPhase(m)
		f.Rounds, f.Users = 3, 150
		phase(m).Minimum = 1
		phase(m).Rounds = 368934881474191032 // of 50 users each, and 15 more in the last
	}},
	{number: "M53", name: "an unknown unit", change: func(m *wire.Task) { m.Plan.Unit = 2 }},
	{number: "M54", name: "a radius above 1", change: func(m *wire.Task) { m.Plan.Radius = 1.5 }},
	{number: "M54", name: "a radius that is no number", change: func(m *wire.Task) { m.Plan.Radius = math.NaN() }},
	{number: "M55", name: "a window without trust local", change: func(m *wire.Task) {
		mechanismOf(m).Window = 8
		mechanismOf(m).Coin = 1 << 23
		mechanismOf(m).Trials += mechanismOf(m).Trials % 2
	}},
	{number: "M55", name: "no window under trust local", base: "silos", change: func(m *wire.Task) {
		mechanismOf(m).Window = 0
	}},
	{number: "M56", name: "a cohort of more than all silos", base: "silos", change: func(m *wire.Task) {
		m.Plan.Silos = 1
	}},
	{number: "M57", name: "several rounds of not all silos", base: "silos", change: func(m *wire.Task) {
		m.Plan.Silos = 3
	}},
	{number: "M58", name: "other units in the second phase", base: "silos", change: func(m *wire.Task) {
		last(m).Mechanism.Units = 13
	}},
	{number: "M59", name: "more features than a report has room for", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical.Features = stream.MaxDim
	}},
	{number: "M60", name: "a practical plan of an unknown loss", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical.Loss.Name = "cubic"
	}},
	{number: "M60", name: "a practical plan of no features", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical.Features = 0
	}},
	{number: "M60", name: "a practical plan without a bound", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical.Bound = 0
	}},
	{number: "M60", name: "a practical plan of labels of no range", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical.LabelLow = m.Plan.Practical.LabelHigh
	}},
	{number: "M61", name: "moments of another dimension", base: "practical", change: func(m *wire.Task) {
		mechanismOf(m).Dim++
	}},
	{number: "M62", name: "a practical plan of infinite noise", base: "practical", change: func(m *wire.Task) {
		m.Plan.Practical.Unit = math.Inf(1)
	}},
	{number: "M63", name: "a start of another dimension", change: func(m *wire.Task) {
		m.Plan.Start, m.Plan.StartHash = make([]float64, 2), make([]byte, 32)
	}},
	{number: "M64", name: "a start outside of the set", change: func(m *wire.Task) {
		m.Plan.Set = &wire.Set{Radius: 5}
		m.Plan.Start, m.Plan.StartHash = []float64{0, 6, 0}, make([]byte, 32)
	}},
	{number: "M65", name: "users who would answer for ever", base: "interactive", change: func(m *wire.Task) {
		m.Plan.Continuous = wire.Continuous_CONTINUOUS_CONSTANT
	}},
	{number: "M66", name: "a practical plan that goes on otherwise", base: "practical", change: func(m *wire.Task) {
		m.Plan.Continuous = wire.Continuous_CONTINUOUS_DECAYING
	}},
}

// ofMechanism are plans whose randomizer cannot be run.
var ofMechanism = []changed{
	{number: "M29", name: "coins on another grid", change: func(m *wire.Task) { mechanismOf(m).CoinBits = 23 }},
	{number: "M30", name: "no dimension", change: func(m *wire.Task) { mechanismOf(m).Dim = 0 }},
	{number: "M30", name: "too many dimensions", change: func(m *wire.Task) { mechanismOf(m).Dim = stream.MaxDim + 1 }},
	{number: "M31", name: "nothing but scores", change: func(m *wire.Task) { mechanismOf(m).Scores = 3 }},
	{number: "M32", name: "bundles of nobody", change: func(m *wire.Task) { mechanismOf(m).MaxBundle = 0 }},
	{number: "M32", name: "bundles that are too large", change: func(m *wire.Task) {
		mechanismOf(m).MaxBundle = stream.MaxBundle + 1
	}},
	{number: "M33", name: "a clip norm of 0", change: func(m *wire.Task) { mechanismOf(m).ClipNorm = 0 }},
	{number: "M33", name: "a huge clip norm", change: func(m *wire.Task) { mechanismOf(m).ClipNorm = 1e31 }},
	{number: "M34", name: "no levels", change: func(m *wire.Task) { mechanismOf(m).Levels = 0 }},
	{number: "M35", name: "too many trials", change: func(m *wire.Task) { mechanismOf(m).Trials = 1<<31 + 1 }},
	{number: "M36", name: "too many trials in a floor", base: "pan", change: func(m *wire.Task) {
		mechanismOf(m).FloorTrials = 1<<44 + 1
	}},
	{number: "M37", name: "more units than the lattice has steps", base: "silos", change: func(m *wire.Task) {
		mechanismOf(m).Units = 1 << 60
	}},
	{number: "M38", name: "an odd window", base: "silos", change: func(m *wire.Task) { mechanismOf(m).Window++ }},
	{number: "M39", name: "a window with a biased coin", base: "silos", change: func(m *wire.Task) {
		mechanismOf(m).Coin = 1 << 22
	}},
	{number: "M40", name: "a coin that never falls", change: func(m *wire.Task) { mechanismOf(m).Coin = 0 }},
	{number: "M40", name: "a coin that always falls", change: func(m *wire.Task) { mechanismOf(m).Coin = 1 << 24 }},
	{number: "M41", name: "a round of more than 2^32 users", change: func(m *wire.Task) {
		phase(m).Cohort, phase(m).Users = 1<<32+1, 1<<40
		mechanismOf(m).Trials = 1
	}},
	{number: "M43", name: "bundles of more than a cohort", change: func(m *wire.Task) { mechanismOf(m).MaxBundle = 51 }},
	{number: "M44", name: "a top-up of too many trials", change: func(m *wire.Task) {
		phase(m).Cohort, phase(m).Users, phase(m).Minimum = 1<<30, 3<<30, 1
		mechanismOf(m).Trials = 1 << 20
	}},
	{number: "M45", name: "totals of 2^63", change: func(m *wire.Task) {
		phase(m).Cohort, phase(m).Users, phase(m).Minimum = 1<<32, 3<<32, 1<<32
		mechanismOf(m).Trials = 1 << 31
		mechanismOf(m).Levels = 1 << 29
	}},
	{number: "M46", name: "a share of less than one user", change: func(m *wire.Task) {
		m.Plan.HonestFraction = "1/51"
	}},
	{number: "M47", name: "trust local that relies on others", base: "silos", change: func(m *wire.Task) {
		m.Plan.HonestFraction = "1/2"
	}},
	{number: "M48", name: "a biased coin under trust local", base: "silos", change: func(m *wire.Task) {
		for _, f := range m.Plan.Phases {
			f.Mechanism.Window, f.Mechanism.Coin = 0, 1<<22
		}
	}},
	{number: "M49", name: "trials of a report under pan", base: "pan", change: func(m *wire.Task) {
		mechanismOf(m).Trials = 10
	}},
	{number: "M49", name: "no trials under shuffle", change: func(m *wire.Task) { mechanismOf(m).Trials = 0 }},
	{number: "M50", name: "a floor under shuffle", change: func(m *wire.Task) { mechanismOf(m).FloorTrials = 100 }},
	{number: "M50", name: "no floor under pan", base: "pan", change: func(m *wire.Task) {
		mechanismOf(m).FloorTrials = 0
	}},
	{number: "M49", name: "trials of a report under split", base: "split", change: func(m *wire.Task) {
		mechanismOf(m).Trials = 10
	}},
	{number: "M50", name: "no floor under split", base: "split", change: func(m *wire.Task) {
		mechanismOf(m).FloorTrials = 0
	}},
	{number: "M67", name: "a biased coin under split", base: "split", change: func(m *wire.Task) {
		mechanismOf(m).Coin = 1 << 22
	}},
	{number: "M67", name: "levels of 2^k under split", base: "split", change: func(m *wire.Task) {
		mechanismOf(m).Levels++
	}},
	{number: "M68", name: "more bits than are shared", base: "split", change: func(m *wire.Task) {
		mechanismOf(m).Dim, mechanismOf(m).Levels = 1<<20, 1<<17-1
	}},
	{number: "M69", name: "another Prio3", base: "split", change: func(m *wire.Task) { m.Plan.Prio3 = "draft-18" }},
	{number: "M69", name: "no Prio3 under split", base: "split", change: func(m *wire.Task) { m.Plan.Prio3 = "" }},
	{number: "M69", name: "Prio3 under pan", base: "pan", change: func(m *wire.Task) { m.Plan.Prio3 = "draft-14" }},
	{number: "M70", name: "no helper", base: "split", change: func(m *wire.Task) { m.HelperKey = nil }},
	{number: "M70", name: "a helper under shuffle", change: func(m *wire.Task) { m.HelperKey = m.StageKey }},
	{number: "M71", name: "one operator under two names", base: "split", change: func(m *wire.Task) {
		m.HelperKey = m.StageKey
	}},
	{number: "M72", name: "reports to two operators in clear", base: "split",
		policy: `{"allow_plaintext": true, PINS}`,
		change: func(m *wire.Task) { m.Suite = wire.Suite_SUITE_NONE }},
	{number: "M72", name: "reports to two operators under X25519", base: "split", change: func(m *wire.Task) {
		m.Suite = wire.Suite_SUITE_X25519
	}},
	{number: "M73", name: "an issuer key of another exponent", base: "grants", change: func(m *wire.Task) {
		m.IssuerKey[len(m.IssuerKey)-1] = 3
	}},
	{number: "M73", name: "an issuer key as rsaEncryption", base: "grants", change: func(m *wire.Task) {
		copy(m.IssuerKey[17:], "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")
	}},
	{number: "M73", name: "an issuer key of an even modulus", base: "grants", change: func(m *wire.Task) {
		m.IssuerKey[len(m.IssuerKey)-6] &^= 1
	}},
	{number: "M73", name: "an issuer key of 2,047 bits", base: "grants",
		change: func(m *wire.Task) { m.IssuerKey[81] &= 0x7f }},
	{number: "M74", name: "tokens of organisations", base: "silos", change: func(m *wire.Task) {
		m.IssuerKey = bytes.Clone(vectorIssuer())
	}},
	{number: "M51", name: "totals of 2^60", change: func(m *wire.Task) {
		phase(m).Cohort, phase(m).Users, phase(m).Minimum = 1<<31, 3<<31, 1<<31
		mechanismOf(m).Trials = 1 << 29
	}},
}

// respell puts another text into a declaration, which has it once.
func respell(old, other string) func(m *wire.Task) {
	return func(m *wire.Task) {
		if bytes.Count(m.Declaration, []byte(old)) != 1 {
			panic(fmt.Sprintf("%s does not stand once in %s", old, m.Declaration))
		}
		m.Declaration = bytes.Replace(m.Declaration, []byte(old), []byte(other), 1)
	}
}

// ofDeclaration are plans that are not the declared ones.
var ofDeclaration = []changed{
	{number: "D1", name: "no declaration", change: func(m *wire.Task) { m.Declaration = nil }},
	{number: "D1", name: "a blank in the declaration", change: func(m *wire.Task) {
		m.Declaration = append(m.Declaration, ' ')
	}},
	{number: "D1", name: "an unknown key in the declaration", change: func(m *wire.Task) {
		m.Declaration = append([]byte(`{"more":1,`), m.Declaration[1:]...)
	}},
	{number: "D1", name: "a declared number that no task file has", change: respell(`"max_bits":0`, `"max_bits":1`)},
	{number: "D1", name: "a declared duration in another spelling", change: respell(`"deadline":"1m0s"`,
		`"deadline":"60s"`)},
	{number: "D1", name: "a default that is written out", change: respell(`"max_line":`, `"skip_lines":0,"max_line":`)},
	{number: "D1", name: "a scale that does not keep zero", change: respell(`"scale":"raw"`, `"scale":"unit"`)},
	{number: "D2", name: "a public file that nobody declared", change: func(m *wire.Task) { m.Public = []byte("{}") }},
	{number: "D3", name: "another name in the declaration", change: func(m *wire.Task) { m.Name = "other" }},
	{number: "D4", name: "another trust than declared", change: redeclare(proved, "privacy.trust=shuffle+pan")},
	{number: "D5", name: "another unit than declared", change: func(m *wire.Task) { m.Plan.Unit = wire.Unit_UNIT_USER }},
	{number: "D6", name: "another radius than declared", change: func(m *wire.Task) { m.Plan.Radius = 0.5 }},
	{number: "D7", name: "another honest fraction than declared", change: func(m *wire.Task) {
		m.Plan.HonestFraction = "0.9"
	}},
	{number: "D8", name: "another encryption than declared", policy: `{"allow_plaintext": true}`,
		change: func(m *wire.Task) { m.Suite = wire.Suite_SUITE_NONE }},
	{number: "D9", name: "a higher budget than declared", change: func(m *wire.Task) { m.Plan.EpsilonBudget = 4.1 }},
	{number: "D10", name: "a start that is not declared", change: func(m *wire.Task) {
		m.Plan.Set = &wire.Set{Radius: 5}
		m.Plan.Start, m.Plan.StartHash = make([]float64, 3), make([]byte, 32)
	}},
	{number: "D11", name: "other silos than declared", base: "silos", change: redeclare(silos, "silo.count=3")},
	{number: "D12", name: "a higher delta than declared", change: func(m *wire.Task) { m.Plan.Delta = 0.002 }},
	{number: "D14", name: "operators that are not declared", base: "split",
		change: redeclare(proved, "privacy.trust=split")},
	{number: "D14", name: "another helper than declared", base: "split", change: func(m *wire.Task) {
		m.HelperKey = make([]byte, stream.KeySize)
	}},
	{number: "D14", name: "operators who have changed places", base: "split", change: func(m *wire.Task) {
		m.StageKey, m.HelperKey = m.HelperKey, m.StageKey
	}},
	{number: "D15", name: "tokens that are not declared",
		change: func(m *wire.Task) { m.IssuerKey = bytes.Clone(vectorIssuer()) }},
	{number: "D15", name: "no tokens, where they are declared", base: "grants",
		change: func(m *wire.Task) { m.IssuerKey = nil }},
	{number: "D15", name: "another issuer than declared", base: "grants",
		change: func(m *wire.Task) { m.IssuerKey[100] ^= 1 }},
	{number: "D15", name: "an issuer that the declaration does not name", base: "grants",
		change: redeclare(proved, "grants=pass")},
	{number: "D16", name: "one operator, which the policy forbids", base: "one operator",
		policy: `{"forbid_one_operator": true, PINS}`},
	{number: "D13", name: "a proved plan, where a practical one is declared", base: "practical",
		change: func(m *wire.Task) {
			m.Plan.Practical, m.Plan.Phases = nil, m.Plan.Phases[2:]
		}},
}

// ofPhases are plans that ask for something else than what is declared, or that cost too much.
var ofPhases = []changed{
	{number: "F1", name: "minimisers of people", base: "prox", change: func(m *wire.Task) {
		redeclare(silos, "validation.off=false")(m)
	}},
	{number: "F2", name: "minimisers whose rounding errors are not known", base: "prox", change: func(m *wire.Task) {
		prox(m).StepSize = 1e-9
	}},
	{number: "F3", name: "a step of prox that is too long for the loss", base: "prox", change: func(m *wire.Task) {
		prox(m).StepSize *= 1.01
	}},
	{number: "F4", name: "another dimension than declared", change: func(m *wire.Task) { mechanismOf(m).Dim = 2 }},
	{number: "F5", name: "another clip norm than declared", change: func(m *wire.Task) { mechanismOf(m).ClipNorm = 0.5 }},
	{number: "F5", name: "moments of another norm", base: "practical", change: func(m *wire.Task) {
		mechanismOf(m).ClipNorm *= 0.5
	}},
	{number: "F6", name: "one score, where two are declared", change: func(m *wire.Task) {
		redeclare(proved, "validation.off=false", "validation.weight=0.25")(m)
		mechanismOf(m).Dim, mechanismOf(m).Scores, mechanismOf(m).ClipNorm = 5, 1, convex.Norm([]float64{1, 0.25})
	}},
	{number: "F7", name: "a minimum below the policy's", policy: `{"min_cohort": 51}`},
	{number: "F8", name: "a minimum below the policy's share", base: "adaptive", policy: `{"own_share": 0.6}`},
	{number: "F9", name: "more rounds of a user than the policy takes", base: "interactive",
		policy: `{"max_rounds_per_user": 2}`},
	{number: "F10", name: "less epsilon than the plan costs", policy: `{"max_epsilon": 3.9}`},
	{number: "F10", name: "half of the trials", change: func(m *wire.Task) { mechanismOf(m).Trials /= 2 }},
	{number: "F10", name: "twice the levels", change: func(m *wire.Task) { mechanismOf(m).Levels *= 2 }},
	{number: "F10", name: "a cohort of half as many", change: func(m *wire.Task) {
		phase(m).Cohort, phase(m).Minimum = 25, 25
	}},
	{number: "F10", name: "a lie about epsilon", change: func(m *wire.Task) {
		m.Plan.Epsilon, mechanismOf(m).Trials = 0.1, 1
	}},
	{number: "F10", name: "a costly second phase", change: func(m *wire.Task) { secondPhase(m).Mechanism.Trials /= 2 }},
	{number: "F10", name: "smaller floors", base: "pan", change: func(m *wire.Task) { mechanismOf(m).FloorTrials /= 4 }},
	{number: "F10", name: "half of the cohort is dishonest", policy: `{"honest_fraction": "0.5"}`},
	{number: "F10", name: "a delta of the policy's", policy: `{"max_delta": 1e-6}`},
	{number: "F10", name: "three rounds at the price of one", change: func(m *wire.Task) {
		phase(m).RoundsPerUser, phase(m).Users = 3, 50
	}},
	{number: "F11", name: "so few whom the policy relies on that none is left", policy: `{"honest_fraction": "1/51"}`},
	{number: "F10", name: "a second phase that is not paid for", change: func(m *wire.Task) {
		f := secondPhase(m)
		f.Mechanism = proto.CloneOf(f.Mechanism)
		f.Mechanism.Levels++
	}},
}
