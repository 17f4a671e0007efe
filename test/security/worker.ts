// A worker process that misbehaves at certain references, after it has decrypted the card: at `ABORT…` it ends at once,
// at `DEFECT…` it throws an error.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../cli/process/worker-process.ts'

await runWorkerProcess({
  script: fileURLToPath(import.meta.url),
  inspect: ({ reference }) => {
    if (reference?.startsWith('ABORT')) process.abort()
    if (reference?.startsWith('DEFECT')) throw new Error('made to fail')
  },
})
