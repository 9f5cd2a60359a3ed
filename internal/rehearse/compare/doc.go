// Package compare makes the table in which to choose how a task is run: a line for each way to learn what it
// declares, over who adds the noise, what is protected, how often a row is asked and by which method. Each
// line is planned as a run would be, and its accuracy is predicted by simulation with the same seeds and the
// same rows as all others, so that differences are paired. One line is recommended, by a rule that is a pure
// function of the lines: see recommend.
//
// It promises that a line with overrides in Set, or for the task as it is, does the same as the task with
// these overrides, and that the simulated noise is the noise for all units, whatever the number of simulated
// rows. It chooses by data: these must be public, or paid for elsewhere; without data rows are made up from
// the declaration, a rough guide.
//
// The caller's steps: New, which plans; Run, which simulates; Table.Print.
package compare
