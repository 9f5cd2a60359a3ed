// Package run makes a task file ready: from its declaration to a plan and the body of a signed Task, and from a stored
// Task back to its algorithm; and it has what the commands share, a connection that waits for its broker and the
// streams of a task. The packages below it wire the roles together for the commands. None of them decides anything
// about privacy: noise levels are the accountant's, and what may be released is the stage's and the store's business.
package run
