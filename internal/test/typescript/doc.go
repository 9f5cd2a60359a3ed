// Package typescript runs clients/typescript, the device of browsers and Node, against real processes: a broker, a
// learner, a stage with places, and a relay. It has tests alone.
package typescript
