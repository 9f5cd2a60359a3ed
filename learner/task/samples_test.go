package task

import "strings"

const plain = `
version: 1
name: demo
events: {format: csv, columns: [age, job, url, y]}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: job, kind: categorical, vocabulary: [a, b]}
    - {column: url, kind: hashed, buckets: 4}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

const sparse = `
version: 1
name: demo
events: {format: libsvm}
features: {vector: {dimension: 10, min: 0, max: 1, max_nonzeros: 3}}
label: {positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

const regression = `
version: 1
name: demo
events: {format: jsonl}
features: {columns: [{column: x, kind: numeric, min: 0, max: 1}]}
label: {column: y, min: 0, max: 10}
model: {loss: squared, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

const digits = `
version: 1
name: demo
events: {format: libsvm}
features: {vector: {dimension: 10, min: 0, max: 1}}
label: {classes: [a, b, c]}
model: {loss: softmax, radius: 5, class_weights: [1, 2, 3]}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

const counts = `
version: 1
name: demo
events: {format: jsonl}
features: {columns: [{column: x, kind: numeric, min: 0, max: 1}]}
label: {column: y, max: 40}
model: {loss: poisson, score_bound: 4, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

const derived = `
version: 1
name: demo
events: {format: jsonl}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: pay, kind: numeric, scale: standard, mean: 3000, std: 1000, hidden: true}
    - {column: age, kind: bucketed, edges: [25, 35, 60]}
    - {column: job, kind: categorical, vocabulary: [a, b], unknown: drop}
    - {column: url, kind: hashed, buckets: 4, hidden: true}
  crosses: [{columns: [job, url], buckets: 8}, {columns: [age, job, url]}]
  polynomial: {columns: [age, pay], degree: 2}
  fourier: {columns: [age, pay], dimension: 6, gamma: 0.5, seed: 1}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

const gaps = `
version: 1
name: demo
events: {format: csv, header: true}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100, missing: {tokens: ["?", -1], fill: 40, indicator: true}}
    - {column: age, kind: bucketed, edges: [25, 35], missing: {tokens: ["?", -1]}}
    - {column: job, kind: categorical, vocabulary: [a, b], missing: {tokens: [NA], word: a}}
    - {column: soil, kind: onehot-group, columns: [soil1, soil2], missing: {tokens: [NA]}}
    - {column: tax, kind: numeric, marks: [$, ','], scale: log, unit: 12.5, mean: 1.5, std: 2, missing: {indicator: true}}
    - {column: notes, kind: text, buckets: 64, words: 20, missing: {tokens: [none]}}
    - {column: hour, field: at, part: hour, kind: hats, knots: [0, 8, 18, 24]}
    - {column: day, field: at, part: weekday, kind: bucketed, edges: [2, 3, 4, 5, 6, 7]}
    - {column: pay, kind: hats, knots: [0, 1000, 2500.5], missing: {tokens: ["?"]}}
    - {column: burden, field: tax, over: pay, kind: numeric, min: 0, max: 2, marks: [$], missing: {tokens: ["?"]}}
  crosses: [{columns: [job, age]}, {columns: [soil, job]}, {columns: [soil], number: tax}]
label: {column: y, min: 0, max: 10}
model: {loss: squared, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`

const scaled = `
version: 1
name: demo
events: {format: libsvm}
features: {vector: {dimension: 2, min: 0, max: 1}, scales: [1, 0.5]}
label: {positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

var (
	pan = strings.Replace(plain, "delta: 1e-6", "delta: 1e-6, trust: pan", 1)
	svm = strings.Replace(plain, "loss: logistic", "loss: hinge", 1)
)

var growth = strings.Replace(regression, "max: 10}", "max: 10, scale: log, unit: 0.5}", 1)

// samples are good files of every kind.
var samples = []string{plain, sparse, regression, digits, counts, pan, svm, derived, gaps, scaled, growth}
