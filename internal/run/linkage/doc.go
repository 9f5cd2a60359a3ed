// Package linkage audits what the parties of a task with tokens see of the same people: it runs a round of a few people
// with all real roles, keeps what issuer, relay, broker and stage each see, and looks for what two of them have in
// common.
//
// It promises one direction only. A link that is found is one: a value that represents one person at one party
// represents in another party's view. That none is found says that none of the kinds was there that package looks for:
//
//  1. eight bytes, which no other person has in common with this one, that are in both views as they are, in hexadecimal, in
//     base64 at any offset, or in a SHA-2 hash of something that the party saw; of letters sixteen;
//  2. a message that was not blinded, or by a factor that can be guessed: a small number, a hash of the person or the task, or
//     what follows from the nonce, its hash, or nothing;
//  3. one blinding factor of two people.
//
// Addresses and times are left out: who keeps them at issuer and relay links people, as docs/why/privacy.md says.
package linkage
