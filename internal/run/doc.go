// Package run wires the packages together for the commands: from a task file to a plan and a signed Task, from
// committed state to a snapshot, and all roles in one process for the quickstart. It is the one package besides the
// commands that may know everything, and it decides nothing about privacy: noise levels are the accountant's, and
// what may be released is the stage's and the store's business.
package run
