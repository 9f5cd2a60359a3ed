// Package evaluation measures predictions against labels: how events are ordered (AUC), which classes are
// taken for which (Confusion), how far probabilities can be relied on (Reliability), and how two models
// differ on the same events (Pair). It knows no model and no data, and gives no privacy: its figures depend
// on single events, so they are for people who may see the events.
package evaluation
