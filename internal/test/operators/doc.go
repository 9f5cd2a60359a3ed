// Package operators tests both operators of trust split together: the stage as leader, the helper, their folders, and a
// broker that loses, repeats and delays; and each of them against the other one, with a broker that lies. It has tests
// alone.
package operators
