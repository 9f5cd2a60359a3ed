package client

// MessageID is the message id of the message with that first report id, for an attempt.
var MessageID = messageID
