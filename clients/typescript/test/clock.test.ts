import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duration } from '../src/clock.js'

test('a pause while work is measured is no work', (t) => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  for (const pauses of [0, 1, 2]) {
    let run = 0
    assert.equal(duration(() => { now += run++ === pauses ? 60_000 : 4 }), 4, `a pause in run ${pauses}`)
  }
})
