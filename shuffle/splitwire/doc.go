// Package splitwire puts the messages of package split on the wire, and takes them off it: signatures, seals, and the
// attempt that each message names in clear. Leader and helper use the same functions, so that they agree.
package splitwire
