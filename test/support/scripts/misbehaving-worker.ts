// A worker process that does as it is told by a record's reference: it dies of POISON-CRASH, and POISON-THROW finds a
// bug in it. All else it works as any worker does.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'

await runWorkerProcess({
  script: fileURLToPath(import.meta.url),
  inspect({ reference }) {
    if (reference === 'POISON-CRASH') process.kill(process.pid, 'SIGKILL')
    if (reference === 'POISON-THROW') throw new Error('broken law: poison is never worked')
  },
})
