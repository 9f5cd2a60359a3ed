// Experiments repeats the experiments of Lowy and Razaviyayn, Private Federated Learning Without a Trusted
// Server: Optimal Algorithms for Convex Losses, ICLR 2023, Section 6, on public data and with noise that
// meets the printed epsilon; docs/measured/experiments.md has the tables.
//
//	go run ./learner/research/experiments mnist50 -o FILE      images as 50 principal components, for deploy/tasks/mnist-silos.yaml
//	go run ./learner/research/experiments mnist [-seeds K] [-o PREFIX] FILE
//	go run ./learner/research/experiments resque-private [-seeds K]      private ReSQue beside noisy SGD, docs/proofs/resque.md
//	go run ./learner/research/experiments insurance|obesity|... [-seeds K] [-o PREFIX]
//	go run ./learner/research/experiments resque [-o FILE]     rounds of parallel queries, for docs/proofs/resque.md, of rows that are made up
//	go run ./learner/research/experiments people [-seeds K] [-of N-RIDGE] [-only TEXT,TEXT] [sizes|crossovers|radius|bounds|crossed|runs]
//
// Data are read from $PANLEARN_DATA, or from -data. A study prints its tables, and draws them to
// PREFIX-N-M.svg.
//
// people is another experiment, on simulated people: from how many of them on, and from how many rows of
// each, methods that hide a whole person have less noise than one that takes a person as one row, and what
// they lose in runs (docs/proofs/curator.md, From how many people on).
//
// Private lines go through the system's planner, accountant and randomizer; baselines without a proof, which
// the system does not have, are here alone. Step sizes and clip norms are chosen by trying on the training
// rows: as in the paper, no epsilon covers that. Nothing here serves anybody: seeds are known.
package main
