package task

import (
	"errors"
	"strings"
	"testing"
)

// mustParse parses a file that the test knows to be good.
func mustParse(t testing.TB, file string, sets ...string) *Spec {
	t.Helper()
	s, err := Parse([]byte(file), sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStrictness: every mistake is refused with the dotted path of the field, and with the value where there is
// one.
func TestStrictness(t *testing.T) {
	for _, c := range []struct {
		file, old, new string // the file with old replaced by new
		path, value    string // of the refusal
	}{
		{plain, "version: 1", "version: 2", "version", "2"},
		{plain, "version: 1", "", "version", "0"},
		{plain, "name: demo", "name: Demo", "name", "Demo"},
		{plain, "name: demo", "name: " + strings.Repeat("x", 33), "name", "xxx"},
		{plain, "name: demo", "nmae: demo", "nmae", ""},
		{plain, "name: demo", "name: demo\nname: demo", "name", ""},
		{plain, "name: demo", "name: null", "name", "null"},
		{plain, "name: demo", "name: &a demo", "", "anchors"},
		{plain, "name: demo", "name: !!str demo", "", "tags"},
		{plain, "name: demo", "name: [demo]", "name", "a list"},
		{plain, "format: csv", "format: xml", "events.format", "xml"},
		{plain, "format: csv", "format: csv, header: true", "events.columns", "age"},
		{plain, "format: csv", "format: csv, header: yes", "events.header", "yes"},
		{plain, "format: csv", "format: csv, max_line: 0.5", "events.max_line", "0.5"},
		{plain, "format: csv", "format: csv, max_line: -1", "events.max_line", "-1"},
		{plain, "format: csv", "format: csv, max_line: '80'", "events.max_line", "80"},
		{plain, "format: csv", "format: csv, separator: ab", "events.separator", "ab"},
		{plain, "format: csv", "format: csv, separator: ' '", "events.separator", " "},
		{plain, "format: csv", "format: csv, skip_lines: -1", "events.skip_lines", "-1"},
		{plain, "[age, job, url, y]", "[age, job, url, y, age]", "events.columns.4", "age"},
		{plain, "[age, job, url, y]", "[age, job, y]", "features.columns.2.column", "url"},
		{plain, "[age, job, url, y]", "[age, job, url]", "label.column", "y"},
		{plain, "[age, job, url, y]", "age", "events.columns", "age"},
		{plain, "column: url", "column: job", "features.columns.2.column", "job"},
		{plain, "kind: hashed", "kind: hash", "features.columns.2.kind", "hash"},
		{plain, "max: 100", "max: 0", "features.columns.0.max", "0"},
		{plain, "max: 100", "max: .inf", "features.columns.0.max", ".inf"},
		{plain, "max: 100", "max: .nan", "features.columns.0.max", ".nan"},
		{plain, "max: 100", "max: NaN", "features.columns.0.max", "NaN"},
		{plain, "max: 100", "max: 1e999", "features.columns.0.max", "1e999"},
		{plain, "max: 100", "max: 1e200", "features.columns.0.max", "1e+200"},
		{plain, "max: 100", "max: 100, scale: logs", "features.columns.0.scale", "logs"},
		{plain, "max: 100", "max: 100, scale: log", "features.columns.0.max", "100"},
		{plain, "max: 100", "max: 100, unit: 2", "features.columns.0.unit", "2"},
		{plain, "min: 0, max: 100", "scale: standard, std: 1, unit: 2", "features.columns.0.unit", "2"},
		{plain, "min: 0, max: 100", "scale: log, std: 1", "features.columns.0.unit", "0"},
		{plain, "min: 0, max: 100", "scale: log, std: 1, unit: -1", "features.columns.0.unit", "-1"},
		{plain, "min: 0, max: 100", "scale: log, unit: 2", "features.columns.0.std", "0"},
		{plain, "min: 0, max: 100", "scale: log, unit: 2, std: 1, mean: 2000", "features.columns.0.mean", "2000"},
		{plain, "min: 0, max: 100", "scale: log, unit: 2, std: 1, missing: {fill: 1e9}", "features.columns.0.missing.fill",
			"1e+09"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1, 2], unit: 2", "features.columns.0.unit", "2"},
		{sparse, "min: 0, max: 1,", "min: 0, max: 1, scale: log,", "features.vector.scale", "log"},
		{plain, "max: 100", "max: 100, buckets: 3", "features.columns.0.buckets", "3"},
		{plain, "max: 100", "max: 100, vocabulary: [a]", "features.columns.0.vocabulary", "a"},
		{plain, "max: 100", "max: 100, unknown: drop", "features.columns.0.unknown", "drop"},
		{plain, "min: 0, max: 100", "scale: raw", "features.columns.0.max", "0"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: indicator, max: 1", "features.columns.0.max", "1"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: indicator, scale: raw", "features.columns.0.scale", "raw"},
		{sparse, "min: 0, max: 1,", "kind: indicators,", "features.vector.kind", "indicators"},
		{sparse, "min: 0, max: 1,", "kind: indicator, min: -1,", "features.vector.min", "-1"},
		{sparse, "min: 0, max: 1,", "kind: indicator, max: 1,", "features.vector.max", "1"},
		{sparse, "min: 0, max: 1,", "kind: indicator, scale: unit,", "features.vector.scale", "unit"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: onehot-group, columns: [age]", "features.columns.0.columns", "age"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: onehot-group, columns: [age, size]", "features.columns.0.columns.1",
			"size"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: onehot-group, columns: [age, age]", "features.columns.0.columns.1",
			"age"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: onehot-group, columns: [age, job]", "features.columns.0.columns.1",
			"job"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: onehot-group, columns: [age, y]", "label.column", "y"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: onehot-group, min: 1, columns: [age, y]", "features.columns.0.min",
			"1"},
		{plain, "max: 100", "max: 100, columns: [age]", "features.columns.0.columns", "age"},
		{plain, "max: 100", "max: 100, marks: ['']", "features.columns.0.marks.0", ""},
		{plain, "max: 100", "max: 100, marks: [$, $]", "features.columns.0.marks.1", "$"},
		{plain, "max: 100", "max: 100, marks: [.]", "features.columns.0.marks.0", "."},
		{plain, "max: 100", "max: 100, marks: [a-b]", "features.columns.0.marks.0", "a-b"},
		{plain, "max: 100", "max: 100, marks: [E]", "features.columns.0.marks.0", "E"},
		{plain, "max: 100", "max: 100, marks: [a, b, c, d, f, g, h, i, j]", "features.columns.0.marks", "9 texts"},
		{plain, "[a, b]", "[a, b], marks: [$]", "features.columns.1.marks", "$"},
		{plain, `["0"]`, `["0"], marks: [$]`, "label.marks", "$"},
		{regression, "max: 10}", "max: 10, marks: [1]}", "label.marks.0", "1"},
		{plain, "max: 100", "max: 100, words: 3", "features.columns.0.words", "3"},
		{plain, "kind: hashed, buckets: 4", "kind: text", "features.columns.2.buckets", "0"},
		{plain, "kind: hashed, buckets: 4", "kind: text, buckets: 4, words: 2000", "features.columns.2.words", "2000"},
		{plain, "kind: hashed, buckets: 4", "kind: text, buckets: 4, marks: [$]", "features.columns.2.marks", "$"},
		{derived, "kind: hashed, buckets: 4, hidden: true", "kind: text, buckets: 4", "features.crosses.0.columns.1", "url"},
		{plain, "max: 100", "max: 100, field: url", "features.columns.0.field", "url"},
		{plain, "max: 100", "max: 100, part: hour", "features.columns.0.field", ""},
		{plain, "max: 100", "max: 100, part: hour, field: when", "features.columns.0.field", "when"},
		{plain, "max: 100", "max: 100, part: minute, field: url", "features.columns.0.part", "minute"},
		{plain, "max: 100", "max: 100, part: hour, field: url, marks: [$]", "features.columns.0.marks", "$"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: indicator, part: hour, field: url", "features.columns.0.part",
			"hour"},
		{plain, "max: 100", "max: 100, part: hour, field: y", "label.column", "y"},
		{plain, "max: 100", "max: 100, knots: [1, 2]", "features.columns.0.knots", "1"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats", "features.columns.0.knots", "0 numbers"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1]", "features.columns.0.knots", "1 numbers"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1, 1]", "features.columns.0.knots.1", "1"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1, .inf]", "features.columns.0.knots.1", ".inf"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1, 2], edges: [1]", "features.columns.0.edges", "1"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1, 2], missing: {indicator: true}",
			"features.columns.0.missing.indicator", "true"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: hats, knots: [1, 2], hidden: true", "features.columns.0.hidden",
			"true"},
		{derived, "kind: bucketed, edges: [25, 35, 60]", "kind: hats, knots: [25, 35, 60]",
			"features.crosses.1.columns.0", "age"},
		{plain, "max: 100", "max: 100, missing: {fill: 101}", "features.columns.0.missing.fill", "101"},
		{plain, "max: 100", "max: 100, missing: {fill: blank}", "features.columns.0.missing.fill", "blank"},
		{plain, "max: 100", "max: 100, missing: {tokens: [' ']}", "features.columns.0.missing.tokens.0", " "},
		{plain, "max: 100", "max: 100, missing: {tokens: [a, a]}", "features.columns.0.missing.tokens.1", "a"},
		{plain, "max: 100", "max: 100, missing: {word: a}", "features.columns.0.missing.word", "a"},
		{plain, "max: 100", "max: 100, missing: {words: [a]}", "features.columns.0.missing.words", ""},
		{plain, "max: 100", "max: 100, missing: null", "features.columns.0.missing", "null"},
		{plain, "kind: numeric, min: 0, max: 100", "kind: indicator, missing: {fill: 0.5}", "features.columns.0.missing.fill",
			"0.5"},
		{plain, "[a, b]", "[a, b], missing: {tokens: [b]}", "features.columns.1.missing.tokens.0", "b"},
		{plain, "[a, b]", "[a, b], missing: {word: c}", "features.columns.1.missing.word", "c"},
		{plain, "[a, b]", "[a, b], missing: {fill: 0}", "features.columns.1.missing.fill", "0"},
		{plain, "[a, b]", "[a, b], missing: {indicator: true}", "features.columns.1.missing.indicator", "true"},
		{plain, "buckets: 4", "buckets: 4, missing: {tokens: [x]}", "features.columns.2.missing.tokens", "x"},
		{derived, "std: 1000,", "std: 1000, missing: {indicator: true},", "features.columns.1.missing.indicator", "true"},
		{plain, "[a, b]", "[a, b, a]", "features.columns.1.vocabulary.2", "a"},
		{plain, "[a, b]", "[]", "features.columns.1.vocabulary", ""},
		{plain, "[a, b]", "[a, '*'], unknown: other", "features.columns.1.vocabulary.1", "*"},
		{plain, "[a, b]", "[a], unknown: maybe", "features.columns.1.unknown", "maybe"},
		{plain, "[a, b]", "[a], min: 1", "features.columns.1.min", "1"},
		{plain, "buckets: 4", "buckets: 0", "features.columns.2.buckets", "0"},
		{plain, "buckets: 4", "buckets: 99999999", "features.columns.2.buckets", "99999999"},
		{plain, "buckets: 4", "buckets: 1048575", "features.columns.2", "url"},
		{plain, "column: y", "column: age", "label.column", "age"},
		{plain, `["0"]`, `["0", "+1.0"]`, "label.negative.1", "+1.0"},
		{plain, `["0"]`, `[]`, "label.negative", ""},
		{plain, `["0"]`, `["0"], max: 3`, "label.max", "3"},
		{plain, `["0"]`, `["0"], unit: 3`, "label.unit", "3"},
		{regression, "max: 10}", "max: 10, unit: 3}", "label.unit", "3"},
		{regression, "max: 10}", "max: 10, scale: log}", "label.unit", "0"},
		{regression, "max: 10}", "max: 10, scale: log, unit: -1}", "label.unit", "-1"},
		{regression, "max: 10}", "max: 10, scale: standard}", "label.scale", "standard"},
		{regression, "{column: y, min: 0, max: 10}", "{column: y, min: 1, max: 1.0000000000000002, scale: log, unit: 1e-10}",
			"label.max", ""},
		{plain, "loss: logistic", "loss: hinged", "model.loss", "hinged"},
		{plain, "loss: logistic", "loss: logistic, level: 0.5", "model.level", "0.5"},
		{plain, "loss: logistic", "loss: hinge, width: 0.5", "model.width", "0.5"},
		{plain, "loss: logistic", "loss: hinge, algorithm: pagd", "model.algorithm", ""},
		{plain, "loss: logistic", "loss: smoothed-hinge", "model.width", "0"},
		{plain, "loss: logistic", "loss: logistic, score_bound: 3", "model.score_bound", "3"},
		{plain, "loss: logistic", "loss: logistic, class_weights: [1, 2, 3]", "model.class_weights", "[1 2 3]"},
		{plain, "loss: logistic", "loss: logistic, class_weights: [1, 0]", "model.class_weights.1", "0"},
		{plain, "loss: logistic", "loss: logistic, label_noise: 0.5", "model.label_noise", "0.5"},
		{plain, "loss: logistic", "loss: logistic, label_noise: -0.1", "model.label_noise", "-0.1"},
		{plain, "loss: logistic", "loss: hinge, label_noise: 0.1", "model.label_noise", "0.1"},
		{plain, "loss: logistic", "loss: logistic, label_noise: 0.4, class_weights: [1, 3]", "model.label_noise", "0.4"},
		{plain, "loss: logistic", "loss: logistic, ridge: -1", "model.ridge", "-1"},
		{plain, "loss: logistic", "loss: logistic, set: cube", "model.set", "cube"},
		{plain, "loss: logistic", "loss: logistic, set: box", "model.radius", "5"},
		{plain, "radius: 5", "set: box, min: 1, max: 1", "model.max", "1"},
		{plain, "loss: logistic", "loss: logistic, min: -1", "model.min", "-1"},
		{plain, "loss: logistic", "loss: logistic, set: l1, max: 1", "model.max", "1"},
		{plain, "loss: logistic", "loss: softmax", "label.positive", "1"},
		{plain, "loss: logistic", "loss: poisson, score_bound: 4", "label.positive", "1"},
		{plain, "loss: logistic", "loss: poisson, score_bound: 301", "model.score_bound", "301"},
		{regression, "loss: squared", "loss: huber", "model.width", "0"},
		{regression, "loss: squared", "loss: quantile", "model.level", "0"},
		{regression, "loss: squared", "loss: quantile, level: 1", "model.level", "1"},
		{regression, "loss: squared", "loss: squared, class_weights: [1, 2]", "model.class_weights", "[1 2]"},
		{regression, "loss: squared", "loss: squared, label_noise: 0.1", "model.label_noise", "0.1"},
		{regression, "loss: squared", "loss: poisson, score_bound: 4, radius: 1", "model.radius", ""},
		{counts, "max: 40", "min: 1, max: 40", "label.min", "1"},
		{counts, "max: 40", "max: 40.5", "label.max", "40.5"},
		{counts, "max: 40", "max: 0.5", "label.max", "0.5"},
		{counts, "max: 40", "max: 40, scale: raw", "label.scale", "raw"},
		{counts, "score_bound: 4, ", "", "model.score_bound", "0"},
		{digits, "[a, b, c]", "[a]", "label.classes", "a"},
		{digits, "[a, b, c]", "[a, b, 1, '1.0']", "label.classes.3", "1.0"},
		{digits, "[a, b, c]", "[a, b, c], max: 3", "label.max", "3"},
		{digits, "[1, 2, 3]", "[1, 2]", "model.class_weights", "[1 2]"},
		{digits, "dimension: 10", "dimension: 1000000", "label.classes", "3 labels"},
		{plain, "loss: logistic", "loss: squared", "label.positive", "1"},
		{plain, "radius: 5", "radius: 0", "model.radius", "0"},
		{plain, "radius: 5", "radius: 5, clip_norm: -1", "model.clip_norm", "-1"},
		{plain, "radius: 5", "radius: five", "model.radius", "five"},
		{plain, "epsilon: 1", "epsilon: 0", "privacy.epsilon", "0"},
		{plain, "epsilon: 1", "epsilon: {max: 1}", "privacy.epsilon", "a mapping"},
		{plain, "delta: 1e-6", "delta: 1", "privacy.delta", "1"},
		{plain, "delta: 1e-6", "delta: 1e-6, honest_fraction: 1.1", "privacy.honest_fraction", "1.1"},
		{plain, "delta: 1e-6", "delta: 1e-6, honest_fraction: 0", "privacy.honest_fraction", "0"},
		{plain, "delta: 1e-6", "delta: 1e-6, honest_fraction: 1e-9", "privacy.honest_fraction", "1e-9"},
		{plain, "delta: 1e-6", "delta: 1e-6, honest_fraction: 1/0", "privacy.honest_fraction", "1/0"},
		{plain, "delta: 1e-6", "delta: 1e-6, coin: biased", "privacy.coin", "biased"},
		{plain, "delta: 1e-6", "delta: 1e-6, max_bits: -1", "privacy.max_bits", "-1"},
		{plain, "delta: 1e-6", "delta: 1e-6, max_bits: 1", "privacy.max_bits", "1"},
		{plain, "epsilon: 1", "epsilon: 61", "privacy.epsilon", "61"},
		{plain, "delta: 1e-6", "delta: 1e-6, profile: best", "privacy.profile", "best"},
		{plain, "delta: 1e-6", "delta: 1e-6, seal: tls", "privacy.seal", "tls"},
		{plain, "users: 1000", "users: 0", "schedule.users", "0"},
		{plain, "users: 1000", "users: 1e3", "schedule.users", "1e3"},
		{plain, "users: 1000", "users: 1000, algorithm: adam", "schedule.algorithm", "adam"},
		{plain, "users: 1000", "users: 1000, algorithm: pgd", "schedule.algorithm", "pgd"},
		{plain, "users: 1000", "users: 1000, algorithm: psgd, interactive: true", "schedule.algorithm", "psgd"},
		{plain, "users: 1000", "users: 1000, algorithm: pagd-restarts", "schedule.algorithm", "pagd-restarts"},
		{plain, "users: 1000", "users: 1000, continuous: forever", "schedule.continuous", "forever"},
		{plain, "users: 1000", "users: 1000, continuous: epochs, algorithm: psgd", "schedule.algorithm", "psgd"},
		{plain, "users: 1000", "users: 1000, continuous: decaying, algorithm: pagd", "schedule.algorithm", "pagd"},
		{plain, "users: 1000", "users: 1000, continuous: decaying, interactive: true", "schedule.interactive", "true"},
		{pan, "users: 1000", "users: 1000, interactive: true", "schedule.interactive", "true"},
		{svm, "users: 1000", "users: 1000, algorithm: pagd", "schedule.algorithm", "pagd"},
		{plain, "users: 1000", "users: 1000, cohort: 1001", "schedule.cohort", "1001"},
		{plain, "users: 1000", "users: 1000, cohort: 10, minimum_cohort: 11", "schedule.minimum_cohort", "11"},
		{plain, "users: 1000", "users: 1000, rounds: {max: -1}", "schedule.rounds.max", "-1"},
		{strings.Replace(plain, "plan: proved", "plan: practical", 1), "users: 1000",
			"users: 1000, continuous: adaptive, rounds: {max: 5}", "schedule.rounds.max", "5"},
		{plain, "users: 1000", "users: 1000, rounds: {min: 1}", "schedule.rounds.min", ""},
		{plain, "users: 1000", "users: 1000, deadline: 60", "schedule.deadline", "60"},
		{plain, "users: 1000", "users: 1000, deadline: -1s", "schedule.deadline", "-1s"},
		{plain, "loss: logistic", "loss: logistic, smoothness: -1", "model.smoothness", "-1"},
		{plain, "loss: logistic", "loss: hinge, smoothness: 1", "model.smoothness", "1"},
		{plain, "name: demo", "name: demo\nnorm_bound: 9", "norm_bound", "9"},
		{plain, "name: demo", "name: demo\nnorm_bound: -1", "norm_bound", "-1"},
		{plain, "name: demo", "name: demo\nintercept: -.inf", "intercept", "-.inf"},
		{plain, "max: 100", "max: 100, mean: 3", "features.columns.0.mean", "3"},
		{plain, "max: 100", "max: 100, std: 3", "features.columns.0.std", "3"},
		{plain, "max: 100", "max: 100, clip: 3", "features.columns.0.clip", "3"},
		{plain, "max: 100", "max: 100, scale: standard, std: 1", "features.columns.0.max", "100"},
		{plain, "min: 0, max: 100", "scale: standard", "features.columns.0.std", "0"},
		{plain, "min: 0, max: 100", "scale: standard, std: -1", "features.columns.0.std", "-1"},
		{plain, "min: 0, max: 100", "scale: standard, std: 1, clip: -1", "features.columns.0.clip", "-1"},
		{plain, "min: 0, max: 100", "scale: standard, std: 1, min: 1", "features.columns.0.min", "1"},
		{plain, "max: 100", "max: 1e-101", "features.columns.0.max", "1e-101"},
		{plain, "max: 100", "max: 100, edges: [1]", "features.columns.0.edges", "1"},
		{plain, "max: 100", "max: 100, hidden: true", "features.columns.0.hidden", "true"},
		{plain, "buckets: 4", "buckets: 4, edges: [1]", "features.columns.2.edges", "1"},
		{plain, "kind: hashed, buckets: 4", "kind: bucketed", "features.columns.2.edges", ""},
		{plain, "kind: hashed, buckets: 4", "kind: bucketed, edges: [1, 2, 2]", "features.columns.2.edges.2", "2"},
		{derived, "[job, url]", "[job]", "features.crosses.0.columns", "job"},
		{derived, "[job, url]", "[job, job]", "features.crosses.0.columns.1", "job"},
		{derived, "[job, url]", "[job, pay]", "features.crosses.0.columns.1", "pay"},
		{derived, "[job, url]", "[job, salary]", "features.crosses.0.columns.1", "salary"},
		{derived, "buckets: 8", "buckets: -1", "features.crosses.0.buckets", "-1"},
		{derived, "buckets: 8}", "buckets: 8}, {columns: [job, url]}", "features.crosses.1.columns", "job, url"},
		{derived, "buckets: 8", "buckets: 1048570", "features", "1048618"},
		{derived, "buckets: 4", "buckets: 1000000", "features.crosses.1.columns", "age, job, url"},
		{derived, "degree: 2", "degree: 4", "features.polynomial.degree", "4"},
		{derived, "degree: 2", "degree: 2, interactions: true", "features.polynomial.interactions", ""},
		{derived, "columns: [age, pay], degree", "columns: [], degree", "features.polynomial.columns", ""},
		{derived, "columns: [age, pay], degree", "columns: [age, job], degree", "features.polynomial.columns.1", "job"},
		{derived, "columns: [age, pay], degree", "columns: [age, age], degree", "features.polynomial.columns.1", "age"},
		{derived, "columns: [age, pay], dimension", "dimension", "features.fourier.columns", ""},
		{derived, "dimension: 6", "dimension: 0", "features.fourier.dimension", "0"},
		{derived, "dimension: 6", "dimension: 5000000", "features.fourier.dimension", "5000000"},
		{derived, "gamma: 0.5", "gamma: 0", "features.fourier.gamma", "0"},
		{derived, "seed: 1", "seed: -1", "features.fourier.seed", "-1"},
		{derived, "seed: 1}", "seed: 1}\n  scales: [1, 2]", "features.scales", "2 numbers"},
		{derived, "seed: 1}", "seed: 1}\n  precondition: {second_moments: [1, 2], damping: 0.1}",
			"features.precondition.second_moments", "2 numbers"},
		{scaled, "[1, 0.5]", "[1, 0]", "features.scales.1", "0"},
		{scaled, "[1, 0.5]", "[1, 1e13]", "features.scales.1", "1e+13"},
		{scaled, "scales: [1, 0.5]", "scales: [1, 0.5], precondition: {second_moments: [1, 1], damping: 1}",
			"features.precondition", ""},
		{scaled, "scales: [1, 0.5]", "precondition: {second_moments: [1, -1], damping: 1}",
			"features.precondition.second_moments.1", "-1"},
		{scaled, "scales: [1, 0.5]", "precondition: {second_moments: [1, 1]}", "features.precondition.damping", "0"},
		{scaled, "max: 1}", "max: 1, hidden: true}", "features.vector.hidden", "true"},
		{scaled, "scales: [1, 0.5]", "crosses: [{columns: [a, b]}]", "features.crosses", "1"},
		{scaled, "scales: [1, 0.5]", "polynomial: {columns: [a, b], degree: 2}", "features.polynomial", ""},
		{scaled, "scales: [1, 0.5]", "fourier: {columns: [a], dimension: 3, gamma: 1}", "features.fourier.columns", "a"},
		{sparse, "dimension: 10", "dimension: 0", "features.vector.dimension", "0"},
		{sparse, "max_nonzeros: 3", "max_nonzeros: 11", "features.vector.max_nonzeros", "11"},
		{sparse, "min: 0", "min: 0.5", "features.vector.min", "0.5"},
		{sparse, "min: 0, max: 1", "min: -2, max: -1", "features.vector.max", "-1"},
		{sparse, "min: 0", "min: -1, scale: unit", "features.vector.scale", "unit"},
		{sparse, "min: 0", "min: 0, scale: symmetric", "features.vector.scale", "symmetric"},
		{sparse, "format: libsvm", "format: jsonl", "features", ""},
		{sparse, "format: libsvm", "format: libsvm, header: true", "events.header", "true"},
		{sparse, "format: libsvm", "format: libsvm, separator: ';'", "events.separator", ";"},
		{sparse, "format: libsvm", "format: libsvm, columns: [a]", "events.columns", "a"},
		{sparse, "format: libsvm", "format: idx, skip_lines: 1", "events.skip_lines", "1"},
		{sparse, "format: libsvm", "format: libsvm, key: id", "events.key", "id"},
		{sparse, `label: {`, `label: {column: y, `, "label.column", "y"},
		{regression, "min: 0, max: 10", "min: 0, max: 0", "label.max", "0"},
		{regression, "min: 0, max: 10", "min: 0, max: 10, scale: logs", "label.scale", "logs"},
		{regression, "min: 0, max: 10", `min: 0, max: 10, negative: ["0"]`, "label.negative", "0"},
		{regression, "column: y, ", "", "label.column", ""},
		{regression, "columns: [{", "columns: [[{", "", "YAML"},
	} {
		mustParse(t, c.file) // each case is one mistake in a good file
		file := strings.Replace(c.file, c.old, c.new, 1)
		if file == c.file {
			t.Fatalf("%q is not in the file", c.old)
		}
		_, err := Parse([]byte(file), nil)
		var field *FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s -> %s: got %v, want a *FieldError", c.old, c.new, err)
			continue
		}
		if field.Path != c.path || !strings.Contains(err.Error(), c.value) && !(field.Absent && field.Value == c.value) {
			t.Errorf("%s -> %s: got %q, want path %q and value %q", c.old, c.new, err, c.path, c.value)
		}
		if field.Want == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s -> %s: want one line that says what would be accepted, got %q", c.old, c.new, err)
		}
	}
}

// TestRefusesOddDocuments: mistakes in the structure of a file are refused as well.
func TestRefusesOddDocuments(t *testing.T) {
	for _, file := range []string{
		"", "[]", "3", "version: 1\n---\nversion: 1", "a: [", "\x00", "? [a]\n: b", "<<: {a: b}", "a: *b", "version:",
		strings.Repeat("[", 100), strings.Repeat("- ", 100), plain + strings.Repeat(" ", maxFile),
	} {
		if s, err := Parse([]byte(file), nil); err == nil {
			t.Errorf("accepted %q as %+v", shorten(file), s)
		}
	}
}

// TestAbsentKeysAreNamed checks that an error calls an absent key missing, and not 0, and shows the value of a
// key that is there.
func TestAbsentKeysAreNamed(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"epsilon: 1, ", "", "task: privacy.epsilon is not given: want a number > 0"},
		{"epsilon: 1", "epsilon: 0", "task: privacy.epsilon = 0: want a number > 0"},
		{"loss: logistic", "loss: smoothed-hinge", "task: model.width is not given: want a number > 0"},
		{"[a, b]", "[]", "task: features.columns.1.vocabulary: want at least one word"},
	} {
		file := strings.Replace(plain, c.old, c.new, 1)
		if file == plain {
			t.Fatalf("no %q in the file", c.old)
		}
		if _, err := Parse([]byte(file), nil); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.new, err, c.want)
		}
	}
}
