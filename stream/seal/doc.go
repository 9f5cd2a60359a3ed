// Package seal keeps what travels authentic and reports unreadable.
//
// Identities are Ed25519: the learner signs Task, Round and End, the stage signs its identity, Open, Claim, Batch
// and Close, each under a domain-separation prefix and its kind ([Identity.Sign], [Verify]). A reader pins the
// key that it expects; a message under any other key is refused.
//
// Reports are sealed with HPKE (RFC 9180, crypto/hpke) to the key of one round attempt ([RoundKey], [Seal]). The
// HPKE info binds the round manifest hash, attempt and the attempt's public key; the associated data binds
// the report ids, so that one ciphertext cannot be counted under two ids. The private key lives in the memory of the
// stage's process and is dropped when the attempt ends. Go gives no promise to zero memory: copies that the runtime
// made are part of what an intruder into the process may see.
package seal
