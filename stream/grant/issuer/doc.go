// Package issuer is the reference issuer of grants: it signs one blinded message for each person of a task, whom the
// application's login names, and remembers of whom it did so.
//
// It promises that a person gets one signature: what was signed for whom is synced before an answer leaves, the same
// message gets the same signature again, and another one of the same person is refused. It sees neither nonce nor
// signature of a token, so that it does not know which report is whose. It keeps no name: a person is an HMAC under a key
// that follows from the private one.
//
// What is remembered is a list in the issuer's folder; how long it is stands in a mark beside the key, on another disk if
// the operator wants. An issuer whose list is missing, or shorter than its mark, does not start: it would sign a second
// time. The list has 68 bytes a person, on the disk and about 150 in memory.
//
// The caller owes:
//
//  1. a login in front that names every person by one text that never changes, and lets nobody choose it;
//  2. a key that one issuer uses: a copy of it beside another list signs for everybody again.
package issuer
