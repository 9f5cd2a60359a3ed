package stream

// VoidRoundLost is the reason of a void Batch whose round the stage claimed before, and of which the broker shows
// neither claim nor attempt: it was restored to a time before the round, and the learner announced the round again.
// Nobody was asked for a report on it since.
const VoidRoundLost = "claimed before, and the broker lost the round"
