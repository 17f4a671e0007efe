// A worker process with short times for re-encryption: a lease of half a second, and no wait for processes that write
// under a former key.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'

await runWorkerProcess({ script: fileURLToPath(import.meta.url), reseal: { leaseMs: 500, writersMs: 0 } })
