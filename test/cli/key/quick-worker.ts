// A worker process that reads its keys again, and says which it has, twice a second.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'

const keys = { watchMs: 500, followMs: 500, beatMs: 500 }
await runWorkerProcess({ script: fileURLToPath(import.meta.url), keys })
