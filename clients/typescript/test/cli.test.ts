// The command, as far as it goes without a relay: a test in Go runs it with one.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileStore } from '../src/node.js'

const root = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..', '..')
const command = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
  spawnSync(process.execPath, [join(root, 'dist', 'cli.js'), ...args], { encoding: 'utf8' })

test('the command says how it is used, and what is wrong', () => {
  const help = command('--help')
  assert.deepEqual([help.status, help.stderr], [0, ''])
  assert.match(help.stdout, /panlearn-device run --relay URL/)
  for (const [args, what] of [
    [[], /want run or ledger/], [['run'], /--relay/], [['run', '--wrong'], /--wrong/], [['ledger'], /--state/],
    [['run', '--relay', 'http://127.0.0.1:1', '--task', 'a', '--state', '/nowhere', '--events', '/nowhere', '--key', 'id'], /nowhere/],
  ] as const) {
    const got = command(...args)
    assert.equal(got.status, 2, got.stderr)
    assert.match(got.stderr, what)
  }
})

test('the command prints the ledger of a folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'device-'))
  try {
    const store = fileStore(folder, 'churn')
    await store.write({
      charges: [{ task: 'ab', name: 'churn', user: '', epsilon: 0.5, delta: 1e-6, rounds: 1, most: 1, standing: 1, open: 1, lost: false, byUser: false, at: 7 }],
    })
    writeFileSync(join(folder, 'policy.json'), '{"max_total_epsilon": 2, "period": "1h"}')
    const got = command('ledger', '--state', folder, '--policy', join(folder, 'policy.json'))
    assert.equal(got.status, 0, got.stderr)
    const said = JSON.parse(got.stdout) as Record<string, unknown>
    assert.deepEqual([said['epsilon'], said['max_total_epsilon'], said['period']], [0.5, 2, '1h0m0s'])
    await store.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
