// A worker process in which records misbehave by name: `ABORT…` ends the process at once, `DEFECT…` breaks a law of
// ours, and both have seen the card by then.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../cli/process/worker-process.ts'

await runWorkerProcess({
  script: fileURLToPath(import.meta.url),
  inspect: ({ reference }) => {
    if (reference?.startsWith('ABORT')) process.abort()
    if (reference?.startsWith('DEFECT')) throw new Error('made to fail')
  },
})
