// Package evaluation measures predictions against labels: how events are ordered (AUC), which classes are taken for which (Confusion), what
// probabilities are worth (Reliability), and how two models differ on the same events (Pair). It knows no model and no data, and has no
// privacy: what it says depends on single events, so it is for whoever may see them.
package evaluation
