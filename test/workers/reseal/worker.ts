// A worker process for which a dead worker's lease ends in half a second, and nobody writes under a former key for long.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'

await runWorkerProcess({ script: fileURLToPath(import.meta.url), reseal: { leaseMs: 500, writersMs: 0 } })
