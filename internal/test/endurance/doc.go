// Package endurance runs one task for very many rounds: the real learner, stage, client, store and broker in one
// process, two users a round, records of old rounds removed as they age. What a round costs must not depend on how
// many came before: not its time, not the reads that it takes, not what the streams hold, and not the memory of
// learner and stage.
//
// A short run counts reads. With PANLEARN_DEEP it is 10^5 rounds, half an hour: memory and records are bounded, and
// the time of each thousand is printed.
package endurance
