// The store in a folder: records survive a crash, and one device at a time uses the folder.
import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Refused } from '../src/declaration.js'
import type { Charge } from '../src/ledger.js'
import { indexedDB } from '../src/index.js'
import { fileStore } from '../src/node.js'
import { fresh, join as joins, sending } from '../src/participation.js'

const inFolder = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'panlearn'))
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const charged = (key: string): ReturnType<typeof fresh> => {
  const p = fresh(key)
  joins(p, { round: 3, phase: 0, step: 2, most: 1, final: false, manifest: 'ab', report: Uint8Array.of(1, 2, 255) })
  sending(p, { number: 1, open: 'cd' }, false)
  p.sealed = Uint8Array.of(9, 0, 7)
  return p
}
const charge: Charge = {
  task: 'ab', name: 'churn', user: '', epsilon: 0.5, delta: 1e-6, rounds: 1, most: 1, standing: 1, open: 1, lost: false, byUser: false, at: 7,
}
const state = { task: 'ab', round: 3, step: 2, manifest: 'ab' }

test('a store in a folder has after a crash what was written', () => inFolder(async (folder) => {
  const store = fileStore(folder, 'churn')
  await store.write({ task: state, events: [charged('a'), charged('b c')], charges: [charge] })
  await store.write({ events: [{ ...charged('a'), state: 'counted', sealed: null }] })
  appendFileSync(join(folder, 'journal'), '{"name":"churn","events":[') // a write that a crash cut
  for (let i = 0; i < 2; i++) { // read, and read as it was written again
    const again = fileStore(folder, 'churn')
    assert.deepEqual(await again.task(), state)
    assert.deepEqual(await again.read('b c'), charged('b c'))
    assert.equal((await again.read('a'))?.state, 'counted')
    assert.deepEqual((await again.charged()).map((p) => p.key), ['b c'])
    assert.deepEqual(await again.charges(), [charge])
    const other = fileStore(folder, 'churn2')
    assert.equal(await other.read('a'), null)
    assert.deepEqual(await other.charges(), [charge]) // of all tasks
    await other.close()
  }
}))

test('the older of two devices with one store is refused its next write', () => inFolder(async (folder) => {
  const older = fileStore(folder, 'churn')
  const newer = fileStore(folder, 'churn')
  await newer.write({ events: [charged('a')] })
  await assert.rejects(older.write({ events: [charged('a')] }), /another process has this store/)
}))

test('a damaged journal is refused and left as it is', () => inFolder(async (folder) => {
  writeFileSync(join(folder, 'journal'), '{"name":"churn"}\n%\n')
  assert.throws(() => fileStore(folder, 'churn'), Refused)
  assert.equal(readFileSync(join(folder, 'journal'), 'utf8'), '{"name":"churn"}\n%\n')
}))

test('a browser that may delete its storage is refused, unless the page says that it may forget', async () => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  try {
    for (const [persisted, persist, wanted] of [[false, false, /may be deleted/], [true, false, /indexedDB|opens|undefined/], [false, true, /indexedDB|opens|undefined/]] as const) {
      Object.defineProperty(globalThis, 'navigator', {
        configurable: true, value: { storage: { persisted: () => Promise.resolve(persisted), persist: () => Promise.resolve(persist) } },
      })
      await assert.rejects(indexedDB('churn'), wanted) // node has no IndexedDB: the other two come as far as opening it
    }
  } finally {
    if (before) Object.defineProperty(globalThis, 'navigator', before)
    else delete (globalThis as { navigator?: unknown }).navigator
  }
})

test('a frame in a page of another site is refused', async () => {
  const page = globalThis as { top?: unknown }
  try {
    page.top = { get location(): never { throw new Error('another origin') } }
    await assert.rejects(indexedDB('churn', { mayForget: true }), /frame/)
  } finally {
    delete page.top
  }
})
