// The vectors of docs/vectors, which the Go device passes too.
import { readFileSync } from 'node:fs'

/** Reads a file of vectors. */
export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../../../docs/vectors/${name}.json`, import.meta.url), 'utf8')) as T
}
