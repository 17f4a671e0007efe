// A worker process that misbehaves at certain references: at POISON-CRASH it kills itself, at POISON-THROW it throws an
// error. It works other records as any worker does.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'

await runWorkerProcess({
  script: fileURLToPath(import.meta.url),
  inspect({ reference }) {
    if (reference === 'POISON-CRASH') process.kill(process.pid, 'SIGKILL')
    if (reference === 'POISON-THROW') throw new Error('broken law: poison is never worked')
  },
})
