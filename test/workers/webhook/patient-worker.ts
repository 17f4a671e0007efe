// A worker process with short delays between the attempts at a webhook, and patience at each.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'
import { PATIENT } from './quick.ts'

await runWorkerProcess({ script: fileURLToPath(import.meta.url), webhooks: PATIENT })
