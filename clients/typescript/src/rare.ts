// What few tasks need: a chunk of its own (parts.ts), so that the others do not load it.
export { datePart } from './dates.js'
export { Fourier } from './fourier.js'
export { PublicMap, parsePublic } from './public.js'
export { clippedSlopes } from './softmax.js'
export { bucketsOf } from './words.js'
