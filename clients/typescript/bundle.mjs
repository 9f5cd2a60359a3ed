// Bundles the device for pages that load it as it is: device.js, and beside it a file for each chunk, whole in itself. A
// bundler of an application may share modules between them; what a page loads then is more by what it shares.
import { build } from 'esbuild'

const chunks = ['rare', 'hybrid', 'ed25519', 'grants', 'whole']
const common = { bundle: true, minify: true, format: 'esm', target: 'es2022', charset: 'utf8', logLevel: 'warning', legalComments: 'inline' }
await build({ ...common, entryPoints: ['dist/page.js'], outfile: 'build/bundle/device.js', external: chunks.map((c) => `./${c}.js`) })
for (const c of chunks) await build({ ...common, entryPoints: [`dist/${c}.js`], outfile: `build/bundle/${c}.js` })
