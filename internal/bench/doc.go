// Command bench measures how fast the parts and the whole are, as ratios. An absolute time holds on one machine and one
// day; a ratio to a yardstick that is measured right beside it, in the same run, holds longer: the pipeline over the raw
// broker, arithmetic over a copy of the same bytes, a round over one round trip to the broker.
//
//	go run ./internal/bench           the table
//	go run ./internal/bench --json    the same for machines
//	go run ./internal/bench --quick   a smoke run: every part once, figures that mean little
//
// Everything that is measured is what is deployed: a broker in a process of its own, learner, stage and gateway on
// connections of their own, participation and state on disk. Each figure is a median over repetitions, and each ratio the median of
// ratios of neighbours in time, with the least and the greatest beside it. docs/performance.md says what the figures mean.
package main
