// Package split mixes the reports of one cohort between two operators, the leader and the helper, neither of whom can
// read a report: the core of trust split. It is sans-IO: no network, disk, clock or goroutine is in it, and entropy is
// passed in. Field arithmetic and proofs come from circl's Prio3SumVec.
//
// A device shards its counts into two input shares and a public share ([Sharing]). Leader and helper each hold an
// accumulator of one attempt. A report is counted where both open their part of it and Prio3's proof shows that all
// of its counts are in 0..g. At the end each adds one floor Bin(N_f, 1/2) to its own aggregate share, in the field,
// and only then the two shares meet. docs/proofs/split.md states what this promises, proves it, and names for each
// rule here the attack that it stops.
package split
