// The words of a text (docs/reference/tasks.md, kind text).
import { utf8 } from './bytes.js'
import { murmur3 } from './murmur.js'

/** The simple lower case of a character: one character. */
const lower = (letter: string): string => (letter === '\u0130' ? 'i' : letter.toLowerCase())

/** The buckets that the first words of a text fall into, each once. */
export function bucketsOf(text: string, words: number, buckets: number, seed: number): number[] {
  const out = new Set<number>()
  let word = ''
  let length = 0
  let count = 0
  const end = (): void => {
    if (length > 0 && count < words) {
      out.add(murmur3(utf8(word), seed) % buckets)
      count++
    }
    word = ''
    length = 0
  }
  let left = 32 * words
  for (const letter of text) {
    if (left-- === 0) break
    if (!/[\p{L}\p{M}\p{N}]/u.test(letter)) end()
    else if (++length <= 32) word += lower(letter)
  }
  end()
  return [...out].sort((a, b) => a - b)
}
