// @panlearn/device: takes part in panlearn tasks from browsers and Node.
export { Device } from './device.js';
export { Agreement } from './consent.js';
export { Refused } from './declaration.js';
export { relay } from './relay.js';
export { MemoryStore, indexedDB } from './store.js';
