// Package dashboard is the live page of `learner run --http` and `learner quickstart --http`.
//
// A Board collects the events of a learner's observers. Every method except Save takes a lock for a moment and does
// nothing slow, so that no reader of the page can delay the learner. Handler serves the page: complete HTML at /, and
// its changes at /events, as server-sent events. Both come from the same templates, so the page shows the same without
// JavaScript.
//
// What it shows is public: rounds, counts, noise, epsilon as an upper bound, and the released model. It keeps a bounded
// history, which Config.Record keeps over a restart. It fetches nothing from elsewhere.
//
// Steps that a caller owes:
//
//  1. New, and Board.Observer to the learner.
//  2. Broker, and one of Stages and Opened, about once a second; Save after them.
//  3. Stop with the learner's final error, before the server is stopped, so that an open page shows it. Save once more.
//  4. Handler with a channel that closes when the server stops, because a stream of events does not end by itself.
package dashboard
