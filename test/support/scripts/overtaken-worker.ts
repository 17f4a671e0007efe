// A worker process that is overtaken: at the first record with the reference OVERTAKEN it blocks until the file in
// OVERTAKEN_FILE exists, and then throws an error. It works other records as any worker does.
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'

const file = process.env['OVERTAKEN_FILE'] ?? ''
const still = new Int32Array(new SharedArrayBuffer(4))
let isOvertaken = false

await runWorkerProcess({
  script: fileURLToPath(import.meta.url),
  inspect({ reference }) {
    if (reference !== 'OVERTAKEN' || isOvertaken) return
    isOvertaken = true
    writeFileSync(`${file}.standing`, '')
    while (!existsSync(file)) Atomics.wait(still, 0, 0, 20)
    throw new Error('broken law: whoever is overtaken has a bug')
  },
})
