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

// What a page loads: device.js for a task of suite 2 in a browser that has Ed25519, and chunks where a task, or a browser,
// asks for one.
const budgets: Record<string, number> = { 'device.js': 40_000, 'rare.js': 7000, 'hybrid.js': 11_000, 'ed25519.js': 7000, 'grants.js': 16_000, 'whole.js': 7000 }

test('a page loads at most 40 KB, and each chunk stays within its budget', (t) => {
  execFileSync(process.execPath, ['bundle.mjs'], { cwd: root })
  const folder = join(root, 'build', 'bundle')
  assert.deepEqual(readdirSync(folder).sort(), Object.keys(budgets).sort())
  for (const [file, most] of Object.entries(budgets)) {
    const bytes = readFileSync(join(folder, file))
    const size = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length
    t.diagnostic(`brotli: ${file} ${size} bytes of ${most}`)
    assert.ok(size <= most, `${file}: ${size} bytes`)
    // The library of blind RSA brings a generator along that nothing calls: test/grants.test.ts sees what is drawn.
    const not = file === 'grants.js' ? /protobuf|nats/i : /Math\.random|protobuf|nats/i
    assert.ok(!not.test(bytes.toString()), `${file}: ${not}`)
  }
})

test('a page loads no chunk before a task asks', async () => {
  const { metafile } = await build({
    entryPoints: [join(root, 'dist', 'page.js')], bundle: true, splitting: true, format: 'esm', write: false, metafile: true, outdir: 'x',
  })
  const loaded = new Set<string>()
  const follow = (output: string): void => {
    for (const input of Object.keys(metafile.outputs[output]!.inputs)) loaded.add(input)
    for (const i of metafile.outputs[output]!.imports) if (i.kind === 'import-statement') follow(i.path)
  }
  follow(Object.keys(metafile.outputs).find((o) => metafile.outputs[o]!.entryPoint?.endsWith('dist/page.js'))!)
  assert.ok(loaded.size > 20)
  for (const input of loaded) assert.doesNotMatch(input, /ml-kem|hybrid|rare|public|softmax|noble\/ed25519|dist\/node/)
})

test('no source draws from a generator that is not the system\'s', () => {
  assert.ok(sources.length > 15)
  for (const { f, text } of sources) {
    assert.doesNotMatch(text, /Math\.random|console\.|EventSource|document\.cookie|localStorage|from '.*(nats|protobuf)/, f)
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
