// What a relay is asked, and what counts as its answer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat } from '../src/bytes.js'
import { relay } from '../src/relay.js'

test('requests that outlive their page stay below what browsers take, and carry no login', async () => {
  const asked: RequestInit[] = []
  const answers: ((r: Response) => void)[] = []
  const transport = relay('https://reports.example/', {
    fetch: ((url: string, init: RequestInit) => {
      assert.equal(url, 'https://reports.example/v1/tasks/churn/reports')
      asked.push(init)
      return new Promise<Response>((resolve) => answers.push(resolve))
    }) as typeof fetch,
  })('churn')
  const id = new Uint8Array(16).fill(7)
  const answer = (): Response => new Response(concat(Uint8Array.of(1), id, Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 9, 0)) as BodyInit)
  const first = transport.publish(1n, 1n, id, new Uint8Array(40_000))
  const second = transport.publish(1n, 1n, id, new Uint8Array(40_000))
  assert.deepEqual(asked.map((i) => i.keepalive), [true, false])
  answers.forEach((a) => a(answer()))
  assert.deepEqual(await Promise.all([first, second]), [{ status: 'stored', sequence: 9 }, { status: 'stored', sequence: 9 }])
  const third = transport.publish(1n, 1n, id, new Uint8Array(40_000))
  assert.equal(asked[2]?.keepalive, true)
  answers[2]!(new Response(await answer().arrayBuffer(), { status: 502 }))
  assert.deepEqual(await third, { status: 'unknown' })
  for (const init of asked) {
    assert.equal(init.credentials, 'omit')
    assert.equal(init.referrerPolicy, 'no-referrer')
    assert.deepEqual(init.headers, { 'Content-Type': 'text/plain' })
  }
})

test('an answer with another id, or none in time, is none', async () => {
  const id = new Uint8Array(16).fill(7)
  const other = concat(Uint8Array.of(1), new Uint8Array(16), Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 9, 0))
  const lying = relay('https://r.example', { fetch: () => Promise.resolve(new Response(other as BodyInit)) })('churn')
  assert.deepEqual(await lying.publish(1n, 1n, id, new Uint8Array(3)), { status: 'unknown' })
  const silent = relay('https://r.example', {
    fetch: ((_: string, init: RequestInit) => new Promise((_, reject) =>
      init.signal!.addEventListener('abort', () => reject(new Error('aborted'))))) as typeof fetch,
  })('churn')
  const keep = setTimeout(() => undefined, 60_000) // node ends where nothing but a time-out's signal is waited for
  assert.equal(await silent.place(1n, 1n, new Uint8Array(22), 20), null)
  clearTimeout(keep)
})
