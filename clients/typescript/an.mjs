import { build } from 'esbuild'
import { brotliCompressSync, constants } from 'node:zlib'
const b=(x)=>brotliCompressSync(x,{params:{[constants.BROTLI_PARAM_QUALITY]:11}}).length
const r = await build({ stdin:{contents:"export {Device,indexedDB,relay,Refused,eraseIndexedDB} from './dist/index.js'",resolveDir:'.',sourcefile:'page.js'}, bundle: true, minify: true, splitting:true,format: 'esm', target: 'es2022', write: false, metafile:true, outdir:'x' })
for (const [i,[n,o]] of Object.entries(r.metafile.outputs).entries()) console.log(n, o.bytes, b(r.outputFiles[i].contents), o.imports.map(x=>x.path+':'+x.kind).join(' '), o.entryPoint??'')
const rows=Object.entries(Object.values(r.metafile.outputs).find(o=>o.entryPoint?.includes('page')).inputs)
