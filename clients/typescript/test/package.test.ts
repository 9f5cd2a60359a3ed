// What a page loads, and what is in no source.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { brotliCompressSync, constants } from 'node:zlib'
import { build } from 'esbuild'

const root = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..', '..')
const sources = readdirSync(join(root, 'src')).map((f) => ({ f, text: readFileSync(join(root, 'src', f), 'utf8') }))

async function bundle(entry: string): Promise<number> {
  const made = await build({ entryPoints: [join(root, 'dist', entry)], bundle: true, minify: true, format: 'esm', target: 'es2022', write: false })
  return brotliCompressSync(made.outputFiles[0]!.contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length
}

// The aim is 40 KB: README.md says what is missing to it.
test('a page loads at most 48 KB, and suite 3 is a chunk of its own', async (t) => {
  const [index, hybrid] = [await bundle('index.js'), await bundle('hybrid.js')]
  t.diagnostic(`brotli: ${index} bytes; hybrid ${hybrid}`)
  assert.ok(index <= 48_000, `${index} bytes`)
  assert.ok(hybrid <= 20_000, `${hybrid} bytes`)
  const all = await build({ entryPoints: [join(root, 'dist', 'index.js')], bundle: true, format: 'esm', write: false, metafile: true })
  for (const input of Object.keys(all.metafile.inputs)) assert.doesNotMatch(input, /ml-kem|hybrid|nats|protobuf|dist\/node/)
})

test('no source draws from a generator that is not the system\'s', () => {
  assert.ok(sources.length > 15)
  for (const { f, text } of sources) {
    assert.doesNotMatch(text, /Math\.random|console\.|EventSource|document\.cookie|localStorage/, f)
    if (f !== 'relay.ts') assert.doesNotMatch(text, /\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon/, f)
  }
})

test('what is published is what was built, with types and no tests', () => {
  const [made] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8' })) as
    { files: { path: string }[] }[]
  const files = made!.files.map((f) => f.path)
  const wanted = sources.flatMap(({ f }) => [`dist/${f.replace('.ts', '.js')}`, `dist/${f.replace('.ts', '.d.ts')}`])
  assert.deepEqual(files.sort(), [...wanted, 'LICENSE', 'README.md', 'package.json'].sort())
})
