import { build } from 'esbuild'
import { readFileSync, readdirSync } from 'node:fs'
import { brotliCompressSync, constants } from 'node:zlib'
const b=(x)=>brotliCompressSync(x,{params:{[constants.BROTLI_PARAM_QUALITY]:11}}).length
const names=new Set()
for (const f of readdirSync('src')) for (const m of readFileSync('src/'+f,'utf8').matchAll(/private (?:static |async |readonly |get |set )*([a-zA-Z]+)/g)) names.add(m[1])
console.log(names.size)
for (const mangle of [undefined, new RegExp('^('+[...names].filter(n=>!['label','number','place','state','value','loss','map','numbers','scale','out'].includes(n)).join('|')+')$')]) {
const r = await build({ stdin:{contents:"export {Device,indexedDB,relay,Refused,eraseIndexedDB} from './dist/index.js'",resolveDir:'.',sourcefile:'page.js'}, bundle: true, minify: true, splitting:true,format: 'esm', target: 'es2022', write: false, metafile:true, outdir:'x', mangleProps:mangle })
const outs=Object.entries(r.metafile.outputs); let eager=0
const text=Object.fromEntries(outs.map(([n],i)=>[n,r.outputFiles[i].contents]))
const seen=new Set(); const go=(n)=>{if(seen.has(n))return;seen.add(n);eager+=b(text[n]);for(const i of r.metafile.outputs[n].imports)if(i.kind!=='dynamic-import')go(i.path)}
go(outs.find(([n,o])=>o.entryPoint==='page.js')[0])
console.log(eager,[...seen].length)
}
