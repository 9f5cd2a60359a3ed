// Package manifest turns what travels into the value types of the cores, checked, and back: a mechanism into
// randomizer.Params, a place in a plan into shuffle.Config and accounting.Release, set, scales and scores into those
// of convex.
//
// It also checks, for all three roles alike, what a plan must satisfy ([CheckTask]), which phase a step belongs to
// ([PhaseOf]) and which rounds a plan allows ([Follows]): a device, the stage and the learner refuse the same rounds.
//
// And it computes how large the messages of a plan get ([SizesOf]), so that a plan that no broker takes is refused
// before it runs.
//
// Where it is: plan.go has CheckTask and Follows, prox.go what minimisers require of a plan, phase.go and place.go what
// a plan fixes of a step, mechanism.go and convex.go the conversions, sizes.go the sizes.
//
// Nothing here verifies a signature; package seal does, before.
//
// What a caller owes:
//
//  1. Verify the Task with seal, then CheckTask; keep HashOf its body.
//  2. Verify a Round with seal, then stream.CheckSubject, then Follows.
//  3. Only then take the mixer or the release of its [Place].
package manifest
