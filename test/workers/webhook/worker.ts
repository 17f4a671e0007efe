// A worker process for which the days between the attempts at a webhook go by in a second.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'
import { QUICK } from './quick.ts'

await runWorkerProcess({ script: fileURLToPath(import.meta.url), webhooks: QUICK })
