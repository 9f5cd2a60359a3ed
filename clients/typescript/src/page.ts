// What pages import that are served as they are: all but what is for tests and for Node.
export { Device, Refused, eraseIndexedDB, fromIssuer, indexedDB, relay, statement } from './index.js'
