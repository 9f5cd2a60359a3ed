import { build } from 'esbuild'
import { brotliCompressSync, constants } from 'node:zlib'
const b=(x)=>brotliCompressSync(x,{params:{[constants.BROTLI_PARAM_QUALITY]:11}}).length
const r = await build({ stdin:{contents:"export {Device,indexedDB,relay,Refused,eraseIndexedDB} from './dist/index.js'",resolveDir:'.',sourcefile:'page.js'}, bundle: true, minify: true, splitting:true,format: 'esm', target: 'es2022', write: false, metafile:true, outdir:'x'})
for (const [n,o] of Object.entries(r.metafile.outputs)) { console.log(n,o.bytes); for (const [f,v] of Object.entries(o.inputs).sort((a,b)=>b[1].bytesInOutput-a[1].bytesInOutput)) if (v.bytesInOutput>200) console.log('   ',v.bytesInOutput,f)}
