package vectors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checks holds, by number, words that are in the error of that check and in no other error.
var checks = map[string]string{
	// The record.
	"S1":  `decode (Signed|Task|Round|Open|Claim|Close|End): malformed`,
	"S2":  `wire version \d+, this program speaks 1`,
	"S3":  `not the canonical encoding`,
	"S4":  `decode Signed: (key|signature) has \d+ bytes`,
	"S5":  `signed as another kind of message`,
	"S6":  `signed with another key than the pinned one`,
	"S7":  `the signature does not verify`,
	"S8":  `^signed by .* which is not its learner_key`,
	"S9":  `^task ".*": want "`,
	"S10": `^subject .* holds KIND_`,
	"S11": `^task_hash [0-9a-f]{64}: want`,
	"S12": `^suite SUITE_.*: want the task's`,
	"S13": `^manifest_hash [0-9a-f]{64}: want`,
	"S14": `^public key has \d+ bytes|^public key of`,
	"S15": `^places_ms \d+: want 0, the plan has no places`,
	"S17": `^open_hash [0-9a-f]{64} of round \d+, attempt \d+: want`,
	"S18": `^public_key is that of its Open`,
	"S16": `^open_hash of \d+ bytes, join_hash of \d+: want both under trust split`,
	// The content of a body.
	"B1":  `decode Task: task name`,
	"B2":  `plan: missing`,
	"B3":  `continuous -?\d+: unknown`,
	"B4":  `public: \d+ bytes, want at most`,
	"B5":  `learner_key has \d+ bytes`,
	"B6":  `life has \d+ bytes`,
	"B7":  `stage_key has \d+ bytes`,
	"B8":  `suite -?\d+: unknown`,
	"B9":  `plan has \d+ phases`,
	"B10": `plan.phases\[\d+\]: rounds 0: want at least 1`,
	"B11": `cohort \d+, minimum \d+: want 1 <= minimum <= cohort`,
	"B12": `mechanism: missing`,
	"B13": `smoothing .*: want a finite number of at least 0`,
	"B14": `statistic -?\d+: unknown`,
	"B15": `smoothing .*: want 0 where no gradient is reported`,
	"B16": `rounds \d+: want at most users`,
	"B17": `plan.start_privacy without plan.start`,
	"B18": `plan.start_hash has \d+ bytes`,
	"B19": `plan.start of \d+ values`,
	"B20": `plan.start\[\d+\]: not finite`,
	"B21": `plan.start_privacy.task has \d+ bytes`,
	"B22": `plan.start_privacy.(epsilon|delta) .*: want a finite number, at least 0`,
	"B23": `plan.epsilon .*: want a positive finite number`,
	"B24": `plan.delta .*: want a positive finite number`,
	"B25": `plan.epsilon_budget .*: want a positive finite number`,
	"B26": `decode (Round|Open|Claim|Close|Join|End): task_hash has \d+ bytes`,
	"B27": `decode (Round|Open|Claim|Close|Join): round 0`,
	"B28": `decode Round: step 0`,
	"B29": `decode Round: point of \d+ values`,
	"B30": `decode Round: point\[\d+\]: not finite`,
	"B31": `decode (Open|Claim|Close|Join): attempt 0`,
	"B32": `decode (Open|Claim|Close|Join): manifest_hash has \d+ bytes`,
	"B33": `decode (Open|Claim|Join): instance has \d+ bytes`,
	"B34": `decode Close: batch_hash has \d+ bytes`,
	"B35": `decode End: reason has \d+ bytes`,
	"B36": `helper_key has \d+ bytes`,
	"B37": `plan.prio3 has \d+ bytes`,
	"B39": `decode Join: (open_hash|verify_key_hash) has \d+ bytes`,
	"B40": `decode Join: no verify key`,
	"B41": `decode Join: suite SUITE_NONE: two operators`,
	"B42": `issuer_key has \d+ bytes: want 342`,
	"B38": `decode (Claim|Close): (open|join)_hash has \d+ bytes`,
	// Pins, and checks of a policy before the plan is read.
	"P1":  `^refused: task hash .* which this state folder pins`,
	"P2":  `^refused: task hash .* pinned by nobody`,
	"P3":  `^refused: task is .*: want one of the policy's tasks`,
	"P4":  `^refused: task hash .*, which the policy pins`,
	"P5":  `^refused: task hash .* task_hashes list`,
	"P6":  `^refused: learner_key`,
	"P7":  `^refused: stage_key`,
	"P8":  `^refused: suite is none: reports would not be encrypted`,
	"P9":  `^refused: pin of both operators`,
	"P10": `^refused: helper_key`,
	// Whether a plan can be run.
	"M1":  `task: plan: deadline_ms \d+: want at most`,
	"M2":  `task: plan: stale_ms`,
	"M3":  `task: plan: retention_ms`,
	"M4":  `task: plan: trust \d+: unknown`,
	"M5":  `task: plan: plan: honest_fraction`,
	"M6":  `statistic \d+ in \d+ rounds, \d+ a user`,
	"M7":  `moments come first in a practical plan, and in no other`,
	"M8":  `dim \d+, clip_norm .*, scores \d+: want those of the first phase of gradients`,
	"M9":  `scores \d+: want 0 in a round of moments`,
	"M10": `rounds \d+, rounds_per_user \d+: want at least 1`,
	"M11": `rounds of one user in all phases of a stint`,
	"M12": `users \d+: want at least rounds \d+ times cohort`,
	"M13": `rounds_per_user \d+: want 1, or all \d+ rounds`,
	"M14": `again: want a phase before it`,
	"M15": `cohort \d+: want all \d+ users, who answer each`,
	"M16": `want all \d+ rounds, in a stint of \d+ phases`,
	"M17": `want 1 under floors`,
	"M18": `minimizer (true|false): want it in the phases of prox`,
	"M19": `prox: want it in all phases, or in none`,
	"M20": `prox: want reports of organisations about rows`,
	"M21": `prox: weight .*: want a positive finite number`,
	"M22": `prox: step_size .*: want a positive number of at most 1/weight`,
	"M23": `prox: steps \d+: want 1 to`,
	"M24": `prox: clip_norm .* of the mechanism`,
	"M25": `prox: scores \d+: want 0`,
	"M26": `prox: smoothing .*: want none of them`,
	"M27": `top \d+: want a largest cohort in the last phase`,
	"M28": `minimum \d+, top \d+, cohort \d+: want gradients`,
	"M29": `mechanism: coin_bits`,
	"M30": `mechanism: dim \d+: want 1 to|Dim = \d+ is outside`,
	"M31": `mechanism: scores \d+: want at most`,
	"M32": `mechanism: max_bundle`,
	"M33": `ClipNorm = .* is outside`,
	"M34": `Levels = \d+ is outside`,
	"M35": `params: Trials = \d+ is above`,
	"M36": `params: FloorTrials = \d+ is above`,
	"M37": `Units = \d+ is above`,
	"M38": `Window = \d+ is odd or above`,
	"M39": `Window = \d+ with Trials`,
	"M40": `mechanism: params: coin`,
	"M41": `mixer: Cohort = \d+ is outside`,
	"M42": `mixer: Planned = \d+ is outside`,
	"M43": `mixer: MaxBundle = \d+ is above`,
	"M44": `mixer: a top-up`,
	"M45": `can make a total of 2\^63`,
	"M46": `task: plan: .*honest fraction .* is below one user`,
	"M47": `honest fraction .*: want 1 under trust local`,
	"M48": `p .*, trials per user \d+: want 0.5 and an even number under local`,
	"M49": `trials per user \d+: want 0 under pan`,
	"M50": `floor trials \d+: want 0 under shuffle`,
	"M51": `want totals below 2\^60`,
	"M52": `the phases have more users or rounds than can be counted`,
	"M53": `plan: unit \d+: unknown`,
	"M54": `plan: radius .*: want a share`,
	"M55": `window \d+: want one under trust local`,
	"M56": `cohort \d+, the last \d+: want at most the \d+ silos`,
	"M57": `of several rounds: want all \d+ silos`,
	"M58": `units \d+: want those of all phases`,
	"M59": `plan: practical: \d+ features: want at most`,
	"M60": `plan: practical: (loss|\d+ features, want|\d+ indicators|bound|intercept|clip|ridge|no users|labels)`,
	"M61": `dimension \d+, want \d+ of so many features`,
	"M62": `practical: unit .*: want a finite number`,
	"M63": `plan: start of \d+ values`,
	"M64": `plan: start: outside the set`,
	"M65": `plan: endless with rounds_per_user`,
	"M66": `plan: continuous .*: want .* in practical plans`,
	"M67": `want 0.5 and one less than a power of two under split`,
	"M68": `two operators share at most \d+ bits`,
	"M69": `task: prio3 ".*": (this program shares reports by|want none)`,
	"M70": `task: helper_key of \d+ bytes`,
	"M71": `helper_key is the stage_key`,
	"M72": `task: suite SUITE_.*: want SUITE_MLKEM768_X25519 under trust split`,
	"M73": `task: issuer_key: want an RSA-2048 key`,
	"M74": `task: issuer_key: want none where organisations report`,
	// Whether the plan is the declared one.
	"D1":  `^refused: declaration is not readable`,
	"D2":  `^refused: public is`,
	"D3":  `^refused: declaration: name`,
	"D4":  `^refused: plan.trust is`,
	"D5":  `^refused: plan.unit is`,
	"D6":  `^refused: plan.radius is`,
	"D7":  `^refused: plan.honest_fraction is`,
	"D8":  `^refused: suite is SUITE_`,
	"D9":  `^refused: plan.epsilon_budget is`,
	"D10": `^refused: plan.start_hash is`,
	"D11": `^refused: plan.silos is`,
	"D12": `^refused: plan.delta is`,
	"D13": `^refused: plan is practical: `,
	"D14": `^refused: operators is`,
	"D15": `^refused: issuer_key is`,
	"D16": `^refused: privacy.operators.one is`,
	// Phase by phase: what is reported, and what it costs.
	"F1":  `^refused: plan.phases\[\d+\].prox is a report of a minimiser`,
	"F2":  `^refused: plan.phases\[\d+\].prox is report`,
	"F3":  `^refused: plan.phases\[\d+\].prox.step_size`,
	"F4":  `^refused: plan.phases\[\d+\].mechanism.dim`,
	"F5":  `^refused: plan.phases\[\d+\].mechanism.clip_norm`,
	"F6":  `^refused: plan.phases\[\d+\].mechanism.scores`,
	"F7":  `^refused: plan.phases\[\d+\].minimum .*min_cohort`,
	"F8":  `^refused: plan.phases\[\d+\].minimum .*own_share`,
	"F9":  `^refused: plan.phases\[\d+\].rounds_per_user`,
	"F10": `^refused: plan.phases\[\d+\]: epsilon`,
	"F11": `^refused: plan.phases\[\d+\] is not accountable`,
	// A round.
	"R1":  `is of another task: task_hash`,
	"R2":  `contradicts its task: step`,
	"R3":  `contradicts its task: number of values of the point`,
	"R4":  `contradicts its task: frame`,
	"R5":  `contradicts its task: deadline_ms \d+, the plan says 0$|contradicts its task: deadline_ms \d+, the plan says 0:`,
	"R6":  `contradicts its task: deadline_ms \d+, the plan says \d+ to`,
	"R7":  `contradicts its task: cohort \d+, the plan says the phase's`,
	"R8":  `contradicts its task: cohort \d+, the plan says \d+ to`,
	"R9":  `^refused: round \d+: manifest hash`,
	"R10": `^refused: round \d+: point`,
	"R11": `^refused: round \d+: step`,
	"R12": `^refused: round \d+: frame is another`,
	// Its frame.
	"G1":  `frame: center: \d+ numbers`,
	"G2":  `frame: scale: \d+ numbers`,
	"G3":  `frame: center \d+: .*, want at most`,
	"G4":  `frame: center \d+: .*, want 0 in a task without intercept`,
	"G5":  `frame: scale \d+:`,
	"G6":  `frame: intercept:`,
	"G7":  `frame: bound:`,
	"G8":  `frame: clip:`,
	"G9":  `frame: smoothing: `,
	"G10": `frame: whitener: \d+ numbers`,
	"G11": `frame: whitener \d+:`,
	"G12": `frame: label center:`,
	"G13": `frame: label scale: .*, want 1e-12`,
	"G14": `frame: label weight:`,
	"G15": `frame: label scale .*: want one in a round of the matrix alone`,
	"G16": `frame: whitener: want none for`,
	"G17": `frame: smoothing .*: want 0 for`,
	// What else may keep an event from joining.
	"A1": `^refused: participation \d+ of an event: epsilon`,
	"A2": `^refused: total epsilon`,
	"A3": `^refused: total delta`,
	// Records that are not signed.
	"L1": `not the record of a lease that this program reads`,
	"L2": `not a request for places that this program reads`,
	"L3": `not an answer about places that this program reads`,
	"L4": `^subject .*(not one of ours|unknown form|want positive decimal numbers|want an instance in hexadecimal|task name)`,
	"L5": `^not the state of a task that this program reads`,
	"L6": `^the body is no answer that this program reads`,
}

// Numbers returns the numbers of the checks that an error is known by: of a refusal of the list exactly one.
func Numbers(err error) (out []string) {
	for number, text := range checks {
		if regexp.MustCompile(text).MatchString(err.Error()) {
			out = append(out, number)
		}
	}
	return out
}

// Refused fails the test unless an error is the refusal by the check of this number, and no other.
func Refused(t *testing.T, name, number string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: accepted, want a refusal by %s", name, number)
		return
	}
	if got := Numbers(err); len(got) != 1 || got[0] != number {
		t.Errorf("%s: refused by %v, want %s: %v", name, got, number, err)
	}
}

// listed finds the checks in the page: a number at the beginning of a point of a list, and the functions at its end.
var listed = regexp.MustCompile("(?ms)^- \\*\\*([A-Z][0-9]+)\\*\\* (.*?)(?:\n\n|\n- |\\z)")

// Page returns the numbers of the page's checks, with the page's text about each. root is the folder of the module.
func Page(t *testing.T, root string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/refusals.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for part := range strings.SplitSeq("\n"+string(text), "\n- ") {
		if m := listed.FindStringSubmatch("- " + part); m != nil {
			if out[m[1]] != "" {
				t.Errorf("%s stands in the page twice", m[1])
			}
			out[m[1]] = m[2]
		}
	}
	return out
}

// Known returns the numbers of the table.
func Known() (out []string) {
	for number := range checks {
		out = append(out, number)
	}
	return out
}

// sources are the folders whose functions the page may name.
var sources = []string{"learner/task", "stream", "stream/seal", "stream/manifest", "stream/device/consent", "randomizer",
	"randomizer/accounting", "shuffle", "learner/convex", "learner/practical", "learner/report", "stream/relay/relayhttp"}

// HasFunction reports whether there is a function, or a method of a type, of this name: check, or Type.check. code is
// what Code returns.
func HasFunction(code, name string) bool {
	text := `(?m)^func ` + regexp.QuoteMeta(name) + `\(`
	if of, method, ok := strings.Cut(name, "."); ok {
		text = `(?m)^func \([a-z]+ \*?` + of + `\) ` + method + `\(`
	}
	return regexp.MustCompile(text).MatchString(code)
}

// Code returns the code of the folders whose functions the page may name, without tests. root is the folder of the
// module.
func Code(t *testing.T, root string) string {
	t.Helper()
	var out strings.Builder
	for _, folder := range sources {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(code)
		}
	}
	return out.String()
}
