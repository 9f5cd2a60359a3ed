package stream

// VoidRoundLost is the reason of a void Batch for a round that the stage claimed before, if the broker shows neither
// claim nor attempt: the broker was restored to a time before the round, and the learner announced the round again. No
// report on it was requested since.
const VoidRoundLost = "claimed before, and the broker lost the round"
