// Runs ONNX models for the tests: one job a line on standard input, its results as one line on standard output.
//   {"model": base64, "inputs": {name: {"type", "dims", "data"}}} -> {"outputs": {name: {"type", "dims", "data"}}} or {"error"}
// Numbers that are not finite travel as text.
import { createInterface } from 'node:readline';
import * as ort from 'onnxruntime-web';

ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'error';

function tensor({ type, dims, data }) {
  return new ort.Tensor(type, type === 'string' ? data : Float64Array.from(data, Number), dims);
}

function plain({ type, dims, data }) {
  const values = Array.from(data);
  return { type, dims: Array.from(dims, Number), data: type === 'string' ? values : values.map((x) => (Number.isFinite(x) ? x : String(x))) };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    const job = JSON.parse(line);
    const session = await ort.InferenceSession.create(Buffer.from(job.model, 'base64'));
    const inputs = Object.fromEntries(Object.entries(job.inputs).map(([name, t]) => [name, tensor(t)]));
    const outputs = await session.run(inputs);
    answer = {
      inputs: session.inputNames,
      outputs: Object.fromEntries(Object.entries(outputs).map(([name, t]) => [name, plain(t)])),
    };
    await session.release();
  } catch (e) {
    answer = { error: String(e) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
