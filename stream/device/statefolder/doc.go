// Package statefolder opens what a device keeps on a disk: the participations of its task and the ledger of all tasks of
// the same users, in one folder (package filestore).
//
// It refuses a folder that has forgotten something: a folder older than the one that this machine wrote last, and, if a
// policy bounds totals, a ledger that is missing or behind the participations beside it. Users who took part since would
// take part again, or what they paid elsewhere would not count.
//
// What a caller owes: Close, after the device has ended. A folder is in no backup, and on a disk of its own machine.
package statefolder
