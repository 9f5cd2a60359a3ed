// Package issuer is the reference issuer of grants: it signs one blinded message for each person of a task, as named by
// the application's login, and remembers for whom it did.
//
// It promises that a person gets one signature: what was signed for whom is synced before an answer leaves, the same
// message gets the same signature again, and another one of the same person is refused. It sees neither nonce nor
// signature of a token, so that it cannot link a report to a person. It keeps no name: a person is an HMAC under a key
// that follows from the private one.
//
// It remembers people in a list in its folder; the list's length is in a mark beside the key, on another disk if the
// operator chooses. An issuer whose list is missing, or shorter than its mark, does not start: it would sign a second
// time. The list has 68 bytes a person, on the disk and about 150 in memory.
//
// The caller owes:
//
//  1. a login in front that names every person by one text that never changes, and lets nobody choose it;
//  2. a key that one issuer uses: a copy of it beside another list signs for everybody again.
package issuer
