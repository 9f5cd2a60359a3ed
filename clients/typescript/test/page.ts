// A page of a test: its tab calls what the package has.
import * as panlearn from '../src/index.js'

Object.assign(globalThis, { panlearn })
