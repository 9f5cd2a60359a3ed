// @panlearn/device: takes part in panlearn tasks from browsers and Node.
export { Device, type Options, type Outcome, type Ticket } from './device.js'
export { Agreement, type Policy } from './consent.js'
export { Refused } from './declaration.js'
export { fromIssuer, relay, type Issuer, type RelayOptions, type Transport } from './relay.js'
export type { Charge } from './ledger.js'
export { statement, type Statement } from './statement.js'
export { MemoryStore, eraseIndexedDB, indexedDB, type BrowserOptions, type Store } from './store.js'
export type { Event } from './features.js'
